"""The header of a controller in C99: NAME.h, what a program calls, and how its symbols are named."""

import itertools
from collections.abc import Iterable, Sequence

from lowgear import __version__
from lowgear.export.c_arrays import number
from lowgear.export.layers import holds
from lowgear.export.plain import constants, plain
from lowgear.policy.controller import OBSERVATION_LIMIT
from lowgear.policy.file import Policy, PolicyHeader


def c_header(policy: Policy, name: str) -> str:
    """NAME.h."""
    header, upper = policy.header, name.upper()
    kept, after, more = _hold_text(header, name) if holds(header) else ("", "", "")
    dial = _dial_declarations(header, name) if policy.turns and header.forced_gear is None else ""
    observations, actions = _ranges(_observations(header)), _ranges(_actions(header))
    return f"""\
/*
 * {about(header)}
 * Written by Lowgear {__version__}. All state is the caller's: one {name}_state for each robot, no other memory is
 * written, so threads may share this code.
 *
 * Observation: {header.obs_dim} floats, in the units the environment gives them in (no normalisation):
{observations}
 * Action: {header.act_dim} floats within
{actions}
 *
 * Whatever comes in, the action is finite and within its bounds: an observation that is NaN is read as 0, an infinite
 * one acts as +-{OBSERVATION_LIMIT:g} would. -ffast-math takes this check out, so {name}.c does not compile with it.
 */
#ifndef {upper}_H
#define {upper}_H

#ifdef __cplusplus
extern "C" {{
#endif

#define {upper}_OBSERVATION_SIZE {header.obs_dim}
#define {upper}_ACTION_SIZE {header.act_dim}
#define {upper}_GEARS {len(header.gears)}
{_places(f"{upper}_OBS", header.observation_names)}{_places(f"{upper}_ACT", header.action_names)}
typedef struct {name}_state {{
    int choice;     /* the master's last pick: gear + {len(header.gears)} * duration */
    int left;       /* steps it still holds; 0: the master picks before the next action */
    float position; /* of the dial, -1 to 1 */
    float cost_coefficient; /* what it stands for; set both with {name}_set_cost_coefficient, where there is one */
{kept}}} {name}_state;

/* Makes a state ready for its first episode; the dial stands where it was when exported. */
void {name}_init({name}_state *state);

/* Begins a new episode; the dial stays as it is.{after} */
void {name}_reset({name}_state *state);

/* Reads an observation, writes an action, returns the gear that acted: 0 is the cheapest.{more} */
int {name}_step({name}_state *state, const float *observation, float *action);

/* The gear of the last step. */
int {name}_gear(const {name}_state *state);
{dial}
#ifdef __cplusplus
}}
#endif

#endif
"""


def _hold_text(header: PolicyHeader, name: str) -> tuple[str, str, str]:
    """What a gear that holds the last action adds: to the state, to a reset, to a step."""
    return (
        f"    float last_action[{header.act_dim}]; /* in -1 to 1, before it is scaled: what gear 0 repeats */\n",
        f" There is nothing to repeat, so\n   another gear than 0 acts first; {name}_gear gives -1 until then.",
        " It\n   repeats the last action.",
    )


def about(header: PolicyHeader) -> str:
    """One line about where the controller comes from."""
    gears = "/".join(plain(str(gear)) for gear in header.gears)
    what = f"{plain(header.variant)}, gears {gears}, seed {plain(header.seed)}, {plain(header.steps)} steps"
    return f"Controller for {plain(header.task)}: {what}."


def _observations(header: PolicyHeader) -> Iterable[tuple[int, str]]:
    """What each part of an observation is."""
    if header.observation_names:
        return [(1, plain(name)) for name in header.observation_names]
    return [(size, plain(key) or "observation") for key, size in header.layout]


def _actions(header: PolicyHeader) -> Iterable[tuple[int, str]]:
    """What each part of an action is, and its bounds; those with the same ones in one line where they have no name."""
    bounds = [f"{low:g} to {high:g}" for low, high in zip(header.action_low, header.action_high, strict=True)]
    if header.action_names:
        return [(1, f"{plain(name)}, {each}") for name, each in zip(header.action_names, bounds, strict=True)]
    return [(len(list(same)), each) for each, same in itertools.groupby(bounds)]


def _places(prefix: str, names: Sequence[str]) -> str:
    """The index of each name as a constant."""
    return "".join(f"#define {prefix}_{name} {place}\n" for place, name in enumerate(constants(names)))


def _ranges(parts: Iterable[tuple[int, str]]) -> str:
    """Lines of a comment that say what each (size, text) of a row is."""
    lines, start = [], 0
    for size, text in parts:
        where = f"[{start}]" if size == 1 else f"[{start}] to [{start + size - 1}]"
        lines.append(f" *   {where} {text}")
        start += size
    return "\n".join(lines)


def _dial_declarations(header: PolicyHeader, name: str) -> str:
    dial, upper = header.dial, name.upper()
    assert dial is not None
    return f"""
/* The dial: what compute is worth. Dearer towards the high end, where the cheap gears act more. */
#define {upper}_COST_COEFFICIENT_LOW {number(dial.low)}
#define {upper}_COST_COEFFICIENT_HIGH {number(dial.high)}
#define {upper}_COST_COEFFICIENT {number(header.cost_coefficient)} /* after {name}_init */

/* Turns the dial, from the next pick on. Returns 0; or -1 for what is NaN or not on the dial, and changes nothing. */
int {name}_set_cost_coefficient({name}_state *state, float cost_coefficient);
"""
