"""The episode that a generated source carries, and the main() that replays it."""

import numpy as np

from lowgear.evaluation.record import Episode
from lowgear.export.c_arrays import array
from lowgear.export.check import tolerance
from lowgear.policy.file import Policy, PolicyHeader


def selftest_source(policy: Policy, name: str, example: Episode) -> str:
    """Compiled only with -DNAME_SELF_TEST: expected gears and actions of a whole episode, then bad observations."""
    header, bounds, upper, steps = policy.header, policy.bounds, name.upper(), example.steps
    half = (bounds.high - bounds.low) / 2
    return f"""\
#ifdef {upper}_SELF_TEST
#include <stdio.h>

{array(f"{name}_example_observation", example.observation)}\
{array(f"{name}_example_action", bounds.scale(example.action))}\
{array(f"{name}_example_gear", example.gear, "unsigned char")}\
{array(f"{name}_example_low", header.action_low)}\
{array(f"{name}_example_high", header.action_high)}\
{array(f"{name}_example_tolerance", tolerance([example]).action * np.maximum(half, np.finfo(np.float32).tiny))}
{_bad_input_source(header, name)}
int main(void)
{{
    float action[{header.act_dim}], worst = 0.0f;
    int t, j, wrong_gears = 0, wrong_actions = 0, outside;
    {name}_state state;
    {name}_init(&state);
    for (t = 0; t < {steps}; ++t) {{
        const int gear = {name}_step(&state, {name}_example_observation + t * {header.obs_dim}, action);
        wrong_gears += gear != {name}_example_gear[t];
        for (j = 0; j < {header.act_dim}; ++j) {{
            float gap = action[j] - {name}_example_action[t * {header.act_dim} + j];
            gap = gap < 0.0f ? -gap : gap;
            worst = gap > worst ? gap : worst;
            wrong_actions += !(gap <= {name}_example_tolerance[j]);
        }}
    }}
    outside = {name}_bad_input();
    printf("{name}: {steps} steps, %d wrong gears, %d wrong actions, largest difference %.1e, "
           "%d actions out of bounds for bad observations\\n",
        wrong_gears, wrong_actions, (double)worst, outside);
    return wrong_gears || wrong_actions || outside;
}}
#endif
"""


def _bad_input_source(header: PolicyHeader, name: str) -> str:
    """How many actions leave their bounds when sensors say NaN, infinity and worse."""
    return f"""\
static int {name}_bad_input(void)
{{
    volatile float huge = 3e38f, infinite = huge * huge;
    const float bad[6] = {{infinite - infinite, infinite, -infinite, huge, -huge, 1.0f}};
    float observation[{header.obs_dim}], action[{header.act_dim}];
    int i, j, k, wrong = 0;
    {name}_state state;
    {name}_init(&state);
    for (k = 0; k < 600; ++k) {{
        for (i = 0; i < {header.obs_dim}; ++i)
            observation[i] = bad[(k + i * (1 + k / 6)) % 6];
        {name}_step(&state, observation, action);
        for (j = 0; j < {header.act_dim}; ++j)
            wrong += !(action[j] >= {name}_example_low[j] && action[j] <= {name}_example_high[j]);
    }}
    return wrong;
}}
"""
