"""Every export against the network that it came from, step by step.

Before each step the exported controller is given the state that the network was in, so that one difference is counted
once and does not carry on. A pick may differ only where the network's two best values tie within rounding.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from lowgear import LowgearError
from lowgear.export.episode import TOLERANCE, Episode, bounds
from lowgear.policy import controller
from lowgear.policy.controller import FloatArray
from lowgear.policy.file import Policy


class Stepped(NamedTuple):
    """What an exported controller did in one step."""

    choice: int
    gear: int
    action: FloatArray


class Controller(Protocol):
    """An exported controller that can be put into any state."""

    def step(self, choice: int, left: int, observation: FloatArray) -> Stepped:
        """One step from a state."""


@dataclass(frozen=True)
class Checked:
    """What a comparison found."""

    episodes: int
    steps: int
    picks: int
    wrong_gears: int  # picks or gears that differ, ties not counted
    ties: int  # picks that differ where the best values tie
    largest_action_error: float  # in halves of the action's range
    from_environment: bool  # False: random observations

    def to_json(self) -> dict[str, Any]:
        """As it stands in export.json."""
        return asdict(self)


def compare(policy: Policy, controller: Controller, episodes: Sequence[Episode]) -> Checked:
    """Play stored episodes through an exported controller."""
    half = np.maximum((bounds(policy).high - bounds(policy).low) / 2, 1e-30)
    wrong, ties, worst = 0, 0, 0.0
    for episode in episodes:
        previous = 0
        for t, observation in enumerate(episode.observation):
            due = bool(episode.due[t])
            found = controller.step(previous if due else int(episode.choice[t]), int(episode.left[t]), observation)
            expected = episode.action[t]
            if found.choice != episode.choice[t] or found.gear != episode.gear[t]:
                tie = due and found.gear == found.choice % len(policy.header.gears) and episode.margin[t] <= TOLERANCE
                ties, wrong = ties + tie, wrong + (not tie)
                expected = _action(policy, found.gear, observation)
            gap = np.abs(found.action.astype(np.float64) - expected) / half
            worst = max(worst, float(gap.max())) if np.isfinite(gap).all() else float("inf")
            previous = int(episode.choice[t])
    return Checked(
        episodes=len(episodes),
        steps=sum(len(episode.observation) for episode in episodes),
        picks=0 if policy.header.forced_gear is not None else sum(int(episode.due.sum()) for episode in episodes),
        wrong_gears=wrong,
        ties=ties,
        largest_action_error=worst,
        from_environment=all(episode.from_environment for episode in episodes),
    )


def demand(checked: Checked, what: str) -> Checked:
    """The comparison, if the export is the network; else an error."""
    if checked.wrong_gears or not checked.largest_action_error <= TOLERANCE:
        raise LowgearError(
            f"{what} does not act as the network it came from: {checked.wrong_gears} of {checked.steps} steps in "
            f"another gear, actions off by up to {checked.largest_action_error:.2g} of half their range (allowed "
            f"{TOLERANCE:g}); nothing was written"
        )
    return checked


def _action(policy: Policy, gear: int, observation: FloatArray) -> FloatArray:
    if not 0 <= gear < len(policy.header.gears):
        return np.full(policy.header.act_dim, np.nan, np.float32)
    number = np.full((1, 1), gear, np.int32)
    action = controller.act(policy.weights.gears, observation[None, None], number, policy.header.activation)
    scaled: FloatArray = bounds(policy).scale(action)[0, 0]
    return scaled
