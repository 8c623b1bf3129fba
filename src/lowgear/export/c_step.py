"""The part of a controller's C that keeps its state: init, reset, and a step."""

from collections.abc import Sequence

from lowgear.export.c_arrays import array, number
from lowgear.export.layers import holds
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
    calls += f"        {name}_gear{used[-1]}(x, action);\n"
    first, clear, declared, fixed = forced or 0, "", "", "action"
    if holds(header):
        pick, calls = f"    int j;\n{pick}", _kept_calls(header, name, used)
        first, declared, fixed = -1, "    int j;\n", "action, state->last_action"
        clear = f"    for (j = 0; j < {header.act_dim}; ++j)\n        state->last_action[j] = 0.0f;\n"
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
{declared}    state->choice = {first};
    state->left = 0;
{clear}}}

int {name}_gear(const {name}_state *state)
{{
    return state->choice % {gears};
}}

static void {name}_act({name}_state *state, const float *restrict x, float *restrict action)
{{
{pick}{calls}}}

int {name}_step({name}_state *state, const float *observation, float *action)
{{
    const {name}_state before = *state;
{counter}    {name}_act(state, observation, action);
{is_wrong} {{
        float room[{header.obs_dim}];
        *state = before;
        {name}_sound(observation, room);
        {name}_act(state, room, action);
        {name}_finite({fixed});
    }}
    return {name}_gear(state);
}}
"""


def _kept_calls(header: PolicyHeader, name: str, used: Sequence[int]) -> str:
    """A gear that computes writes the last action, gear 0 leaves it as it is; then it is scaled."""
    text = "".join(
        f"    {'else ' * (place > 0)}if (gear == {gear})\n        {name}_gear{gear}(x, state->last_action);\n"
        for place, gear in enumerate(used)
    )
    return f"""\
{text}\
    for (j = 0; j < {header.act_dim}; ++j)
        action[j] = {name}_within(state->last_action[j], j);
"""


def _soundness(header: PolicyHeader) -> tuple[str, str]:
    """Declarations, and what says that an action is NaN.

    Through tanh and three layers a NaN reaches every number of it; a rectifier may stop it on its way to some.
    """
    if header.activation == "tanh" and all(gear.is_plain for gear in header.gears):
        return "", "    if (action[0] != action[0])"
    look = f"    for (j = 0; j < {header.act_dim}; ++j)\n        wrong |= action[j] != action[j];\n"
    return "    int j, wrong = 0;\n", f"{look}    if (wrong)"
