"""Every export against the network that it came from, step by step, on recorded episodes.

Before each step the exported controller is given the state that the network was in, so that one difference is counted
once and does not carry on. A pick may differ only where the network's two best values tie within rounding. Rounding is
the network's own: how far its float32 sums are from the same ones in double precision. Where observations hardly vary,
their normalisation makes large weights of opposite effect, and sums in another order differ in the fifth digit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from lowgear import LowgearError
from lowgear.evaluation.record import Episode
from lowgear.policy.arrays import DoubleArray, FloatArray
from lowgear.policy.controller import Controller
from lowgear.policy.file import Policy
from lowgear.policy.networks import doubled

TOLERANCE = 1e-5  # of an action, in halves of its range; and of the master's values, relative, below which they tie
LOOSEST = 1e-2  # the most that is ever allowed
ROUNDINGS = 10  # times the network's own rounding, where that is more: sums one after the other round more than NumPy's


class StateBefore(NamedTuple):
    """The state of a controller before a step."""

    choice: int
    left: int  # steps that the choice still holds
    last_action: FloatArray  # in [-1, 1], which a gear that holds would repeat
    fresh: bool  # an episode begins, and there is no last action


class ExportedStep(NamedTuple):
    """What an exported controller did in one step."""

    choice: int
    gear: int
    action: FloatArray  # in the environment's units
    last_action: FloatArray | None = None  # as its state has it afterwards, in [-1, 1]; None where no gear holds it


class ExportedController(Protocol):
    """An exported controller that can be put into any state."""

    def step_from(self, state: StateBefore, observation: FloatArray) -> ExportedStep:
        """One step from a state."""


class Tolerance(NamedTuple):
    """What counts as the same."""

    action: float  # in halves of its range
    value: float  # of the master, relative to the best: below it two tie


@dataclass(frozen=True)
class Comparison:
    """What a comparison found, as it stands in export.json."""

    episodes: int
    steps: int
    picks: int
    wrong_gears: int  # picks or gears that differ, ties not counted
    ties: int  # picks that differ where the best values tie
    largest_action_error: float  # in halves of the action's range
    allowed_action_error: float
    from_environment: bool  # False: random observations


def compare(exported: ExportedController, episodes: Sequence[Episode], from_environment: bool = True) -> Comparison:
    """Play recorded episodes through an exported controller."""
    wrong, ties, largest, allowed = 0, 0, 0.0, tolerance(episodes)
    for episode in episodes:
        policy, gears = episode.policy, len(episode.policy.header.gears)
        network, tied = Controller.from_policies([policy]), margins(episode) <= allowed.value
        for t, (state, observation) in enumerate(zip(states_of(episode), episode.observation, strict=True)):
            choice, gear = int(episode.choice[t]), int(episode.gear[t])
            step = exported.step_from(state, observation)
            expected = episode.action[t]
            if (step.choice, step.gear) != (choice, gear):
                tie = bool(tied[t]) and step.gear == step.choice % gears
                ties, wrong = ties + tie, wrong + (not tie)
                expected = gear_action(network, step.gear, observation, state)
            largest = max(largest, action_error(policy, step.action, policy.bounds.scale(expected)))
            if step.last_action is not None:
                largest = max(largest, _largest(step.last_action, expected))
    return Comparison(
        episodes=len(episodes),
        steps=sum(episode.steps for episode in episodes),
        picks=sum(int(episode.asked.sum()) for episode in episodes),
        wrong_gears=wrong,
        ties=ties,
        largest_action_error=largest,
        allowed_action_error=allowed.action,
        from_environment=from_environment,
    )


def states_of(episode: Episode) -> Iterator[StateBefore]:
    """The states that its controller was in before each step."""
    previous = 0
    for t, (choice, last_action) in enumerate(zip(episode.choice.tolist(), episode.last_action, strict=True)):
        yield StateBefore(previous if episode.due[t] else choice, int(episode.left[t]), last_action, t == 0)
        previous = choice


def put(network: Any, state: StateBefore) -> None:
    """Bring a `Controller`, ours or an export's own, into a state."""
    network.choice[:] = state.choice
    network.age[:] = 0 if state.left == 0 else network.periods[state.choice // network.gear_count] - state.left
    if network.fresh is not None:
        network.last_action[:], network.fresh[:] = state.last_action, state.fresh


def require_equal(comparison: Comparison, what: str) -> Comparison:
    """The comparison, if the export acts as the network; else an error."""
    if comparison.wrong_gears or not comparison.largest_action_error <= comparison.allowed_action_error:
        raise LowgearError(
            f"{what} does not act as the network it came from: {comparison.wrong_gears} of {comparison.steps} steps in "
            f"another gear, actions off by up to {comparison.largest_action_error:.2g} of half their range (allowed "
            f"{comparison.allowed_action_error:.2g}); nothing was written"
        )
    return comparison


def tolerance(episodes: Sequence[Episode]) -> Tolerance:
    """What two ways to compute the same network may differ by on these episodes."""
    found = [_rounding(episode) for episode in episodes]
    largest = (ROUNDINGS * max(column) for column in zip(*found, strict=True))
    return Tolerance(*(min(LOOSEST, max(TOLERANCE, each)) for each in largest))


def _rounding(episode: Episode) -> Tolerance:
    """How far the network's own sums are from the same ones in double precision."""
    policy = episode.policy
    action, values = _outputs(policy, episode)
    exact_action, exact_values = _outputs(replace(policy, weights=doubled(policy.weights)), episode)
    largest = np.maximum(1.0, np.abs(exact_values).max(axis=-1, keepdims=True))
    return Tolerance(_finite_gap(action, exact_action), _finite_gap(values / largest, exact_values / largest))


def _outputs(policy: Policy, episode: Episode) -> tuple[FloatArray, FloatArray]:
    """Actions and the master's values at every step of an episode; values of 0 where there is none."""
    network = Controller.from_policies([policy], episode.steps)
    network.choice[:] = episode.choice
    if network.last_action is not None and network.fresh is not None:
        network.last_action[:], network.fresh[:] = episode.last_action, np.arange(episode.steps) == 0
    observation = episode.observation[None].astype(policy.weights.gears[-1][-1][0].dtype)
    values = network.values(observation)[0] if episode.asked.any() else np.zeros((episode.steps, 1))
    return network.act(observation)[0], np.where(np.isfinite(values), values, 0)


def _finite_gap(one: npt.NDArray[np.floating], other: npt.NDArray[np.floating]) -> float:
    """The largest difference of those that are numbers."""
    gap = np.abs(one.astype(np.float64) - other)
    return float(gap[np.isfinite(gap)].max(initial=0.0))


def margins(episode: Episode) -> DoubleArray:
    """By how much the best value led the next at each step, relative; infinite where the master was not asked."""
    if not episode.asked.any():
        return np.full(episode.steps, np.inf)
    best = np.sort(episode.values.astype(np.float64), axis=-1)[:, -2:]
    lead: DoubleArray = (best[:, 1] - best[:, 0]) / np.maximum(1.0, np.abs(best[:, 1]))
    return np.where(episode.asked, lead, np.inf)


def clearest(episodes: Sequence[Episode]) -> Episode:
    """The episode whose closest pick is the least close, up to a tie if there is one: no rounding turns its picks."""
    episode = max(episodes, key=lambda episode: float(margins(episode).min()))
    ties = np.flatnonzero(margins(episode) <= tolerance([episode]).value)
    return episode.until(int(ties[0])) if ties.size and ties[0] > 0 else episode


def action_error(policy: Policy, action: FloatArray, expected: FloatArray) -> float:
    """The largest difference of two actions, in halves of the range; infinite where one is not finite."""
    half = np.maximum((policy.bounds.high - policy.bounds.low) / 2, 1e-30)
    return _largest(action / half, expected / half)


def gear_action(network: Controller, gear: int, observation: FloatArray, state: StateBefore) -> FloatArray:
    """What one gear of the network does, in [-1, 1]; NaN of a gear that does not exist."""
    if not 0 <= gear < network.gear_count:
        return np.full_like(state.last_action, np.nan)
    action: FloatArray = network.act_with(gear, observation[None, None], state.last_action[None, None])[0, 0]
    return action


def _largest(found: npt.NDArray[np.floating], expected: npt.NDArray[np.floating]) -> float:
    """The largest difference; infinite where one is not finite."""
    gap = np.abs(found.astype(np.float64) - expected)
    return float(gap.max()) if np.isfinite(gap).all() else float("inf")
