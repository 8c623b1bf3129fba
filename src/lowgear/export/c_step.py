"""The part of a controller's C that keeps its state: init, reset, and a step."""

from collections.abc import Sequence

from lowgear.export.c_arrays import array, number
from lowgear.policy.file import PolicyHeader


def step_source(header: PolicyHeader, name: str, used: Sequence[int]) -> str:
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
    counter, is_wrong = _soundness(header)
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
{counter}    {name}_act(state, observation, action);
{is_wrong} {{
        float room[{header.obs_dim}];
        *state = before;
        {name}_sound(observation, room);
        {name}_act(state, room, action);
        {name}_finite(action);
    }}
    return {name}_gear(state);
}}
"""


def _soundness(header: PolicyHeader) -> tuple[str, str]:
    """Declarations, and what says that an action is NaN: every number of it from three layers, or only some."""
    if all(gear.is_plain for gear in header.gears):
        return "", "    if (action[0] != action[0])"
    look = f"    for (j = 0; j < {header.act_dim}; ++j)\n        wrong |= action[j] != action[j];\n"
    return "    int j, wrong = 0;\n", f"{look}    if (wrong)"
