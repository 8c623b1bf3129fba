"""The source of a controller in C99: NAME.c, which needs NAME.h and nothing else.

It is a greedy controller: the master's best choice, the chosen gear's mean. Only that gear is computed.
Policies have no normalisation of observations, so there is none to carry; actions come scaled to the task's bounds.
"""

from collections.abc import Sequence

import numpy as np

from lowgear.evaluation.record import Episode
from lowgear.export.c_arrays import array, number, shape_of
from lowgear.export.c_header import about
from lowgear.export.c_maths import TANH_ERROR, asinh_source
from lowgear.export.c_network import (
    activation_source,
    columns_source,
    dense_source,
    gear_source,
    master_source,
    split_dial_row,
)
from lowgear.export.c_selftest import selftest_source
from lowgear.export.layers import exported_networks
from lowgear.policy.controller import OBSERVATION_LIMIT
from lowgear.policy.dial import SLACK, Dial
from lowgear.policy.file import Policy, PolicyHeader

NO_FAST_MATH = """\
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) || defined(_M_FP_FAST)
#error "compile without -ffast-math, -Ofast and -ffinite-math-only: they take out the check of observations for NaN"
#endif
"""


def c_source(policy: Policy, name: str, weights: str, example: Episode) -> str:
    """NAME.c, with a whole episode to test itself on."""
    header, upper, int8 = policy.header, name.upper(), weights == "int8"
    gears, whole_master = exported_networks(policy, weights)
    master, dial_row = split_dial_row(whole_master, header)
    shapes = {shape_of(layer) for layers in (*gears.values(), master or ()) for layer in layers}
    dial = header.dial if policy.turns and master is not None else None
    parts = [
        f'/* {about(header)} See {name}.h. */\n#include "{name}.h"\n',
        f"""\
/*
 * -D{upper}_LIBM       takes tanhf{"" if dial is None else " and asinhf"} from math.h; without it no library is needed
 * -D{upper}_SELF_TEST  adds a main() that replays the episode at the end of this file and returns 0 if all is well
 * Own tanh: within {TANH_ERROR:g} of the true one. Vector units: -O3 -march=native -ffp-contract=fast.
 */
#ifdef {upper}_LIBM
#include <math.h>
#endif
""",
        NO_FAST_MATH,
        "#include <stdint.h>\n" if int8 else "",
        columns_source(name),
        activation_source(name, header.activation),
        *(dense_source(name, shape, int8) for shape in sorted(shapes)),
        _bounds_source(policy, name),
        *(gear_source(name, gear, layers, header) for gear, layers in gears.items()),
        "" if master is None else master_source(name, master, dial_row, policy),
        _step_source(header, name, list(gears)),
        "" if dial is None else _dial_source(dial, name),
        selftest_source(policy, name, example),
    ]
    return "\n".join(part for part in parts if part)


def _bounds_source(policy: Policy, name: str) -> str:
    """From [-1, 1] to the action's bounds, and never beyond them; a sound observation of any."""
    low, high, arrays = policy.bounds.low, policy.bounds.high, ""
    if policy.bounds.is_unit:
        scale, lower, upper = "    (void)j;\n", "-1.0f", "1.0f"
    else:
        rows = {"low": low, "high": high, "middle": (low + high) / 2, "half": (high - low) / 2}
        arrays = "".join(array(f"{name}_{what}", row) for what, row in rows.items())
        scale = f"    x = {name}_middle[j] + {name}_half[j] * x;\n"
        lower, upper = f"{name}_low[j]", f"{name}_high[j]"
    limit = number(OBSERVATION_LIMIT)
    return f"""\
{arrays}static inline float {name}_within(float x, int j)
{{
{scale}    x = x < {lower} ? {lower} : x;
    return x > {upper} ? {upper} : x;
}}

/* A copy of an observation that is NaN or infinite somewhere: 0 for NaN, the limit for what is beyond it. */
static void {name}_sound(const float *observation, float *room)
{{
    int i;
    for (i = 0; i < {policy.header.obs_dim}; ++i) {{
        float x = observation[i] == observation[i] ? observation[i] : 0.0f;
        x = x > -{limit} ? x : -{limit};
        room[i] = x < {limit} ? x : {limit};
    }}
}}

/* Only weights near the end of a float's range still overflow: then the lower bound. */
static void {name}_finite(float *action)
{{
    int j;
    for (j = 0; j < {policy.header.act_dim}; ++j)
        action[j] = action[j] == action[j] ? action[j] : {lower};
}}
"""


def _step_source(header: PolicyHeader, name: str, used: Sequence[int]) -> str:
    """What keeps the state, and a step: again with a mended observation where the first one was not sound."""
    gears, forced = len(header.gears), header.forced_gear
    position = 0.0 if header.dial is None else header.dial.position(header.cost_coefficient)
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
    state->position = {number(position)};
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


def _dial_source(dial: Dial, name: str) -> str:
    upper = name.upper()
    start, end = (float(np.arcsinh(value / dial.knee)) for value in dial)
    lowest, highest = number(dial.low - abs(dial.low) * SLACK), number(dial.high * (1 + SLACK))
    slope, knee = number(2 / (end - start)), number(dial.knee)
    return f"""\
{asinh_source(name)}
int {name}_set_cost_coefficient({name}_state *state, float cost_coefficient)
{{
    const float low = {upper}_COST_COEFFICIENT_LOW, high = {upper}_COST_COEFFICIENT_HIGH;
    float position;
    if (!(cost_coefficient >= {lowest} && cost_coefficient <= {highest}))
        return -1;
    cost_coefficient = cost_coefficient > low ? cost_coefficient : low;
    cost_coefficient = cost_coefficient < high ? cost_coefficient : high;
    state->cost_coefficient = cost_coefficient;
    position = {slope} * ({name}_asinh(cost_coefficient / {knee}) - {number(start)}) - 1.0f;
    position = position > -1.0f ? position : -1.0f;
    state->position = position < 1.0f ? position : 1.0f;
    return 0;
}}
"""
