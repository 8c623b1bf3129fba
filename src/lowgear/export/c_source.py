"""The source of a controller in C99: NAME.c, which needs NAME.h and nothing else.

It is a greedy controller: the master's best choice, the chosen gear's mean. Only that gear is computed.
Policies have no normalisation of observations, so there is none to carry; actions come scaled to the task's bounds.
"""

from collections.abc import Sequence

import numpy as np

from lowgear.export.c_arrays import array, number
from lowgear.export.c_header import OBSERVATION_LIMIT, about
from lowgear.export.c_maths import TANH_ERROR, log_source
from lowgear.export.c_network import activation_source, columns_source, dense_source, gear_source, master_source
from lowgear.export.c_selftest import selftest_source
from lowgear.export.episode import Episode, position
from lowgear.export.layers import arrange
from lowgear.policy.file import Policy, PolicyHeader


def c_source(policy: Policy, name: str, weights: str, example: Episode) -> str:
    """NAME.c, with a whole episode to test itself on."""
    header, upper = policy.header, name.upper()
    gears, master = arrange(policy, weights)
    used = [header.forced_gear] if header.forced_gear is not None else list(range(len(gears)))
    networks = [gears[gear] for gear in used]
    shapes = {one.shape for layers in networks for one in layers}
    if master is not None:
        trimmed = [one.shape for one in master]
        if header.sees_position:
            trimmed[0] = trimmed[0]._replace(inputs=header.obs_dim)
        shapes |= set(trimmed)
    dial = policy.turns and master is not None
    parts = [
        f'/* {about(header)} See {name}.h. */\n#include "{name}.h"\n',
        f"""\
/*
 * -D{upper}_LIBM       takes tanhf{" and logf" if dial else ""} from math.h; without it no library is needed
 * -D{upper}_SELF_TEST  adds a main() that replays the episode at the end of this file and returns 0 if all is well
 * Own tanh: within {TANH_ERROR:g} of the true one. Vector units: -O3 -march=native -ffp-contract=fast.
 */
#ifdef {upper}_LIBM
#include <math.h>
#endif
""",
        "#include <stdint.h>\n" if weights == "int8" else "",
        columns_source(name),
        activation_source(name, header.activation),
        *(dense_source(name, shape, weights == "int8") for shape in sorted(shapes)),
        _within_source(header, name),
        _sound_source(header, name),
        *(gear_source(name, gear, gears[gear], header) for gear in used),
        "" if master is None else master_source(name, master, policy),
        _step_source(header, name, used),
        _dial_source(policy, name) if dial else "",
        selftest_source(header, name, example),
    ]
    return "\n".join(part for part in parts if part)


def _within_source(header: PolicyHeader, name: str) -> str:
    """From [-1, 1] to the action's bounds, and never beyond them."""
    low, high = np.array(header.action_low), np.array(header.action_high)
    if _is_unit(header):
        arrays, scale, lower, upper = "", "    (void)j;\n", "-1.0f", "1.0f"
    else:
        rows = {"low": low, "high": high, "middle": (low + high) / 2, "half": (high - low) / 2}
        arrays = "".join(array(f"{name}_{what}", row) for what, row in rows.items())
        scale = f"    x = {name}_middle[j] + {name}_half[j] * x;\n"
        lower, upper = f"{name}_low[j]", f"{name}_high[j]"
    return f"""\
{arrays}static inline float {name}_within(float x, int j)
{{
{scale}    x = x < {lower} ? {lower} : x;
    return x > {upper} ? {upper} : x;
}}
"""


def _is_unit(header: PolicyHeader) -> bool:
    return all(low == -1 for low in header.action_low) and all(high == 1 for high in header.action_high)


def _sound_source(header: PolicyHeader, name: str) -> str:
    lower = "-1.0f" if _is_unit(header) else f"{name}_low[j]"
    limit = number(OBSERVATION_LIMIT)
    return f"""\
/* A copy of an observation that is NaN or infinite somewhere: 0 for NaN, the limit for what is beyond it. */
static void {name}_sound(const float *observation, float *room)
{{
    int i;
    for (i = 0; i < {header.obs_dim}; ++i) {{
        float x = observation[i] == observation[i] ? observation[i] : 0.0f;
        x = x > -{limit} ? x : -{limit};
        room[i] = x < {limit} ? x : {limit};
    }}
}}

/* Only weights near the end of a float's range still overflow: then the lower bound. */
static void {name}_finite(float *action)
{{
    int j;
    for (j = 0; j < {header.act_dim}; ++j)
        action[j] = action[j] == action[j] ? action[j] : {lower};
}}
"""


def _step_source(header: PolicyHeader, name: str, used: Sequence[int]) -> str:
    return f"""\
{_act_source(header, name, used)}
int {name}_step({name}_state *state, const float *observation, float *action)
{{
    const {name}_state before = *state;
    {name}_act(state, observation, action);
    if (action[0] != action[0]) {{
        float room[{header.obs_dim}];
        *state = before;
        {name}_sound(observation, room);
        {name}_act(state, room, action);
        {name}_finite(action);
    }}
    return {name}_gear(state);
}}
"""


def _act_source(header: PolicyHeader, name: str, used: Sequence[int]) -> str:
    """What keeps the state, and the step of an observation that is sound."""
    gears, forced = len(header.gears), header.forced_gear
    periods, pick = "", "    (void)state;\n"
    if forced is None:
        periods = array(f"{name}_periods", header.periods, "int") + "\n"
        pick = f"""\
    int gear;
    if (state->left <= 0) {{
        state->choice = {name}_pick(x, state);
        state->left = {name}_periods[state->choice / {gears}];
    }}
    --state->left;
    gear = {name}_gear(state);
"""
    calls = "".join(f"    if (gear == {gear})\n        {name}_gear{gear}(x, action);\n    else\n" for gear in used[:-1])
    return f"""\
{periods}void {name}_init({name}_state *state)
{{
    state->position = {number(position(header))};
    state->cost_coefficient = {number(header.cost_coefficient)};
    {name}_reset(state);
}}

void {name}_reset({name}_state *state)
{{
    state->choice = {forced or 0};
    state->left = 0;
}}

int {name}_gear(const {name}_state *state)
{{
    return state->choice % {gears};
}}

static void {name}_act({name}_state *state, const float *restrict x, float *restrict action)
{{
{pick}{calls}        {name}_gear{used[-1]}(x, action);
}}
"""


def _dial_source(policy: Policy, name: str) -> str:
    dial = policy.header.dial
    assert dial is not None
    upper = name.upper()
    return f"""\
{log_source(name)}
int {name}_set_cost_coefficient({name}_state *state, float cost_coefficient)
{{
    const float low = {upper}_COST_COEFFICIENT_LOW, high = {upper}_COST_COEFFICIENT_HIGH;
    float position;
    if (!(cost_coefficient >= low * 0.999999f && cost_coefficient <= high * 1.000001f))
        return -1;
    cost_coefficient = cost_coefficient > low ? cost_coefficient : low;
    cost_coefficient = cost_coefficient < high ? cost_coefficient : high;
    state->cost_coefficient = cost_coefficient;
    position = {number(2 / np.log(dial.ratio))} * {name}_log(cost_coefficient / low) - 1.0f;
    state->position = position < 1.0f ? position : 1.0f;
    return 0;
}}
"""
