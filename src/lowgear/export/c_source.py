"""The source of a controller in C99: NAME.c, which needs NAME.h and nothing else.

It is a greedy controller: the master's best choice, the chosen gear's mean. Only that gear is computed.
Policies have no normalisation of observations, so there is none to carry; actions come scaled to the task's bounds.
"""

import numpy as np

from lowgear.evaluation.record import Episode
from lowgear.export.c_activations import accuracy_of, activation_source, functions_of, libm_of
from lowgear.export.c_arrays import array, number, shape_of
from lowgear.export.c_header import about
from lowgear.export.c_maths import asinh_source
from lowgear.export.c_network import columns_source, dense_source, gear_source, master_source, split_master
from lowgear.export.c_selftest import selftest_source
from lowgear.export.c_step import step_source
from lowgear.export.layers import exported_networks, holds
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
    header, upper = policy.header, name.upper()
    networks = exported_networks(policy, weights)
    gears, master = networks.gears, None if networks.master is None else split_master(networks.master, header)
    layers = [layer for network in gears.values() for layer in network] + ([] if master is None else master.all_layers)
    products = sorted({(shape_of(layer), layer.scale is not None) for layer in layers})
    dial, functions = header.dial if policy.turns and master is not None else None, functions_of(header, networks)
    libm = [*libm_of(functions), *([] if dial is None else ["asinhf"])]
    parts = [
        f'/* {about(header)} See {name}.h. */\n#include "{name}.h"\n',
        f"""\
/*
 * -D{upper}_LIBM       takes {" and ".join(libm) or "nothing"} from math.h; without it no library is needed
 * -D{upper}_SELF_TEST  adds a main() that replays the episode at the end of this file and returns 0 if all is well
 * {accuracy_of(functions)}Vector units: -O3 -march=native -ffp-contract=fast.
 */
#ifdef {upper}_LIBM
#include <math.h>
#endif
""",
        NO_FAST_MATH,
        "#include <stdint.h>\n" if any(int8 for _, int8 in products) or "expf" in libm else "",
        columns_source(name),
        activation_source(name, functions),
        *(dense_source(name, *product) for product in products),
        _bounds_source(policy, name),
        *(gear_source(name, gear, own, header, networks.clips.get(gear)) for gear, own in gears.items()),
        "" if master is None else master_source(name, master, policy),
        step_source(header, name, list(gears)),
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

{_finite_source(policy.header, name, lower)}"""


def _finite_source(header: PolicyHeader, name: str, lower: str) -> str:
    why = "/* Only weights near the end of a float's range still overflow: then the lower bound. */"
    if not holds(header):
        return f"""\
{why}
static void {name}_finite(float *action)
{{
    int j;
    for (j = 0; j < {header.act_dim}; ++j)
        action[j] = action[j] == action[j] ? action[j] : {lower};
}}
"""
    return f"""\
{why}
static void {name}_finite(float *action, float *last_action)
{{
    int j;
    for (j = 0; j < {header.act_dim}; ++j)
        if (action[j] != action[j]) {{
            action[j] = {lower};
            last_action[j] = -1.0f;
        }}
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
