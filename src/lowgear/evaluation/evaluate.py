"""Returns, gear shares and FLOPs of controllers over many episodes at once."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lowgear import LowgearError
from lowgear.envs.protocol import BatchEnv
from lowgear.evaluation.statistics import by_step, deviation, half_width, mean_interval
from lowgear.policy import fields
from lowgear.policy.arrays import BoolArray, DoubleArray, FloatArray, IntArray
from lowgear.policy.controller import Controller, chooser
from lowgear.policy.cost import CostModel
from lowgear.policy.file import Policy
from lowgear.policy.setting import deployed, own_setting, same_setting

ENVIRONMENTS_AT_MOST = 64  # making one costs EnvPool up to 50 ms


@dataclass(frozen=True)
class Played:
    """What happened, (P, episodes) each but the shares, (P, episodes, gears)."""

    returns: DoubleArray
    lengths: DoubleArray
    picks: DoubleArray
    gear_steps: DoubleArray
    success: DoubleArray | None  # at each episode's last step; None where no environment told of it
    missing: Mapping[int, str] = field(default_factory=dict)  # policies whose environments failed, and why: NaN above
    scored_by: str = "success"  # or "return": what episodes are judged by where success is told
    repeats: DoubleArray | None = None  # steps whose action was that of the step before
    changes: DoubleArray | None = None  # sums over steps of how far actions, in [-1, 1], went from those before


def play(
    policies: Sequence[Policy],
    env: BatchEnv,
    episodes: int,
    master: str,
    seed: int,
    progress: Callable[[int], None] | None = None,
    given_up: Callable[[], bool] = lambda: False,
    may_miss: bool = False,
) -> Played:
    """`episodes` episodes of every policy at its own coefficient, the same starts for each of them.

    Each environment plays a number of episodes fixed beforehand, so short episodes count no more than long ones. An
    environment that fails is an error, unless its policy `may_miss`. Raises CancelledError once it is `given_up`.
    """
    population, slots = len(policies), env.num_envs // len(policies)
    controller = Controller.from_policies(policies, slots)
    choose = chooser(master, np.random.default_rng((seed, 1)))
    tally = _Tally((population, slots), controller.gear_count)
    missing: dict[int, str] = {}

    def note(number: int, why: str) -> None:
        policy = number // slots
        missing.setdefault(policy, why)
        env.retired |= set(range(policy * slots, (policy + 1) * slots))

    if may_miss:
        env.on_bad, env.retired = note, set()
    record: list[list[list[tuple[Any, ...]]]] = [[[] for _ in range(slots)] for _ in range(population)]
    observation = env.reset(starts(seed, slots) * population).reshape(population, slots, -1)
    told = env.spec.has_success
    left = np.tile([len(range(slot, episodes, slots)) for slot in range(slots)], (population, 1))
    while (left > 0).any():
        if given_up():
            raise CancelledError
        if missing:
            left[list(missing)] = 0
        asked = controller.pick(observation, choose)
        action = controller.act(observation)
        step = env.step(action.reshape(population * slots, -1))
        ended = (step.terminated | step.truncated).reshape(population, slots)
        success = None if step.success is None else step.success.reshape(population, slots)
        told = told or success is not None
        tally.add(step.reward.reshape(population, slots), asked, controller.gear, action)
        controller.advance(ended)
        observation = step.observation.reshape(population, slots, -1)
        for p, s in zip(*np.nonzero(ended & (left > 0)), strict=True):
            record[p][s].append((*tally.row(p, s), success is not None and success[p, s]))
            left[p, s] -= 1
            if progress:
                progress(1)
        tally.clear(ended)
    nothing = (*[np.nan] * 3, np.full(controller.gear_count, np.nan), *[np.nan] * 3)
    ordered = [
        [nothing if p in missing else record[p][i % slots][i // slots] for i in range(episodes)]
        for p in range(population)
    ]
    returns, lengths, picks, gear_steps, repeats, changes, succeeded = (
        np.array([[row[c] for row in agent] for agent in ordered], np.float64) for c in range(7)
    )
    scored_by = "success" if env.spec.has_success else "return"
    at_last = succeeded if told else None
    return Played(returns, lengths, picks, gear_steps, at_last, missing, scored_by, repeats, changes)


def check_seed(seed: int) -> None:
    """Anything but a whole number of 0 or more is an error."""
    if not isinstance(seed, int | np.integer) or not 0 <= seed <= fields.MAX_COUNT:
        raise LowgearError(f"--seed {fields.shown(seed)}: write a whole number, 0 or more")


def starts(seed: int, slots: int) -> list[int]:
    """Seeds of the environments that a policy plays in."""
    return [int(np.random.SeedSequence((seed, slot)).generate_state(1)[0] >> 1) for slot in range(slots)]


def play_policies(
    policies: Sequence[Policy],
    make_env: Callable[[int], BatchEnv],
    episodes: int,
    master: str,
    seed: int,
    progress: Callable[[int], None] | None = None,
    slots: int | None = None,
    given_up: Callable[[], bool] = lambda: False,
    may_miss: bool = False,
) -> Played:
    """`episodes` episodes of every policy at its own coefficient, the same starts for each of them.

    Not more than ENVIRONMENTS_AT_MOST play at once, whatever the number of policies. Each policy plays in `slots` of
    them: starts are the same from call to call only for the same number.
    """
    check_seed(seed)
    slots = slots or slots_for(len(policies), episodes)
    size = max(1, ENVIRONMENTS_AT_MOST // slots)
    groups = [policies[i : i + size] for i in range(0, len(policies), size)]
    found = []
    for group in groups:
        env = make_env(len(group) * slots)
        try:
            found.append(play(group, env, episodes, master, seed, progress, given_up, may_miss))
        finally:
            env.close()
    returns, lengths, picks, gear_steps = (
        np.concatenate([getattr(part, name) for part in found])
        for name in ("returns", "lengths", "picks", "gear_steps")
    )
    success = None
    if any(part.success is not None for part in found):
        success = np.concatenate([0 * p.returns if p.success is None else p.success for p in found])
    missing = {number * size + policy: why for number, part in enumerate(found) for policy, why in part.missing.items()}
    motion = [_joined([part.repeats for part in found]), _joined([part.changes for part in found])]
    return Played(returns, lengths, picks, gear_steps, success, missing, found[0].scored_by, *motion)


def _joined(parts: Sequence[DoubleArray | None]) -> DoubleArray | None:
    """Of several groups; None where one of them did not tell."""
    told = [part for part in parts if part is not None]
    return np.concatenate(told) if len(told) == len(parts) else None


def at_settings(policies: Sequence[Policy], settings: Sequence[float] | int) -> list[tuple[int, Policy]]:
    """Every policy that has a dial at each setting, or at so many along it and at its own; the others as they are.

    Each with its policy's number.
    """
    found = []
    for number, policy in enumerate(policies):
        dial = policy.header.dial
        if dial is None or not policy.turns:
            found.append((number, deployed(policy)))
        else:
            values = _along(policy, dial.settings(settings)) if isinstance(settings, int) else settings
            found += [(number, deployed(policy, value)) for value in values]
    return found


def _along(policy: Policy, settings: Sequence[float]) -> list[float]:
    """The settings and, in its place among them, the policy's own."""
    own = own_setting(policy)
    return sorted([own, *(value for value in settings if not same_setting(value, own))])


def slots_for(population: int, episodes: int) -> int:
    """How many environments each controller plays in at once."""
    return max(1, min(episodes, ENVIRONMENTS_AT_MOST // population))


def evaluation_row(played: Played, place: int, agent: int, policy: Policy) -> dict[str, Any]:
    """One controller as a row of what `lowgear evaluate --json` prints; `place` is where it stands in `played`."""
    header = policy.header
    about = {
        "agent": agent,
        "variant": header.variant,
        "seed": header.seed,
        "cost_coefficient": header.cost_coefficient,
        "relative_coefficient": header.relative_coefficient,
    }
    interval = mean_interval(played.returns[place])
    return about | summarise(played, place, header.cost) | {"return_interval": list(interval)}


def summarise(played: Played, agent: int, cost: CostModel) -> dict[str, Any]:
    """One controller's figures as `lowgear evaluate --json` gives them."""
    steps, picks = played.lengths[agent].sum(), played.picks[agent].sum()
    share = played.gear_steps[agent].sum(axis=0) / steps
    flops = float(cost.flops(share, picks / steps))
    returns = played.returns[agent]
    return {
        "return_mean": float(returns.mean()),
        "return_std": deviation(returns),
        "return_ci95": half_width(returns),
        "success_rate": None if played.success is None else float(played.success[agent].mean()),
        "scored_by": played.scored_by if played.success is not None else "return",
        "gear_share": share.tolist(),
        "large_share": float(share[-1]),
        "period_mean": float(steps / picks) if picks else None,
        "flops_per_step": flops,
        "flops_reduction": cost.reduction(flops),
        "flops_reduction_ci95": half_width(flops_by_step(played, agent, cost)) / cost.gear_flops[-1],
        "episode_length_mean": float(played.lengths[agent].mean()),
        **_motion(played, agent, cost),
    }


def _motion(played: Played, agent: int, cost: CostModel) -> dict[str, float | None]:
    """How often a controller decides, and how its actions go from step to step.

    Decisions are forward passes, of gears that compute and of the master. Steps after an episode's first are counted
    as repeated where no number of the action changed; the jerk is the mean absolute change of an action's numbers.
    """
    computing = [gear for gear, flops in enumerate(cost.gear_flops) if flops]
    decisions = played.gear_steps[agent][:, computing].sum(axis=1) + played.picks[agent]
    later = max(1.0, float((played.lengths[agent] - 1).sum()))
    return {
        "decisions_mean": float(decisions.mean()),
        "repeated_share": None if played.repeats is None else float(played.repeats[agent].sum() / later),
        "jerk": None if played.changes is None else float(played.changes[agent].sum() / later),
    }


def scored_by_success(row: Mapping[str, Any]) -> bool:
    """Whether the score of a row is its success rate: in tasks with goals; others are judged by their return."""
    return row["success_rate"] is not None and row.get("scored_by") != "return"


def score_of(row: Mapping[str, Any]) -> float:
    """Success rate where the task has goals, else return."""
    return float(row["success_rate"] if scored_by_success(row) else row["return_mean"])


def flops_each(played: Played, agent: int, cost: CostModel) -> DoubleArray:
    """FLOPs per step of each of one controller's episodes."""
    each: DoubleArray = cost.flops(played.gear_steps[agent], played.picks[agent]) / played.lengths[agent]
    return each


def flops_by_step(played: Played, agent: int, cost: CostModel) -> DoubleArray:
    """The same, each episode counted by its length: their mean is that of all steps."""
    return by_step(flops_each(played, agent, cost), played.lengths[agent])


class _Tally:
    """Running sums of the episodes under way, (P, slots)."""

    def __init__(self, shape: tuple[int, int], gears: int) -> None:
        self.returns, self.lengths, self.picks = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.repeats, self.changes = np.zeros(shape), np.zeros(shape)
        self.gear_steps = np.zeros((*shape, gears))
        self._number = np.arange(gears)
        self._last_action: FloatArray | None = None

    def add(self, reward: FloatArray, asked: BoolArray, gear: IntArray, action: FloatArray) -> None:
        if self._last_action is not None:
            change, later = np.abs(action - self._last_action), self.lengths > 0
            self.repeats += later & (change == 0).all(axis=-1)
            self.changes += later * change.mean(axis=-1)
        self._last_action = action
        self.returns += reward
        self.picks += asked
        self.lengths += 1
        self.gear_steps += gear[..., None] == self._number

    def row(self, p: int, s: int) -> tuple[Any, ...]:
        at = (p, s)
        return (
            self.returns[at],
            self.lengths[at],
            self.picks[at],
            self.gear_steps[at].copy(),
            self.repeats[at],
            self.changes[at],
        )

    def clear(self, where: BoolArray) -> None:
        for sums in (self.returns, self.lengths, self.picks, self.gear_steps, self.repeats, self.changes):
            sums[where] = 0
