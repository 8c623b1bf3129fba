"""The method's static side, and the batches that its learners update on.

Learners are numbered: those of the gears first, the master last. Every random number is a function of the agent's seed,
the learner's number and the time, so batches depend on nothing else.
"""

from typing import NamedTuple

import jax

from lowgear.learning import hindsight, normalisation, replay, rng
from lowgear.learning.dqn import Dqn
from lowgear.learning.hindsight import Goals, Relabelling
from lowgear.learning.learners import AgentParameters, GearLearner
from lowgear.learning.normalisation import Normaliser
from lowgear.learning.replay import Replay, ReplaySettings, UnpaidPicks
from lowgear.learning.transitions import Transitions
from lowgear.policy.cost import CostModel


class Method(NamedTuple):
    """Shapes and settings that every agent of a population shares."""

    gear_learners: tuple[GearLearner, ...]
    master: Dqn
    cost: CostModel
    replay: ReplaySettings
    dial: bool  # picks are paid at coefficients of a range, and the master's learner sees which
    discount_by_step: bool  # the master's discount follows the steps a pick held; the paper applies it once a pick
    goals: Goals | None = None  # None: no hindsight
    normalise_observations: bool = False  # by running statistics, for gears and master
    scale_rewards: bool = False  # of gears and master, by the running return
    relative_costs: bool = False  # some agents' cost coefficients are measured against the running return
    lenient_twins: bool = (
        False  # the mean of the twin critics counts until an episode ends for real, then their minimum
    )

    @property
    def tracks_statistics(self) -> bool:
        """Whether what agents meet is kept account of."""
        return self.normalise_observations or self.scale_rewards or self.lenient_twins or self.relative_costs

    @property
    def learner_count(self) -> int:
        """How many there are, the master's included."""
        return len(self.gear_learners) + 1

    def name(self, number: int) -> str:
        """What a learner is called in metrics."""
        if number == len(self.gear_learners):
            return "master"
        return "gear" + "_".join(map(str, self.gear_learners[number].gear_numbers))

    def flops(self, number: int) -> int:
        """Of the products of one update of a learner."""
        return self.master.flops() if number == len(self.gear_learners) else self.gear_learners[number].flops()

    def sampled_list(self, number: int) -> int:
        """The list of rows that a learner samples from: its gear's, or the master's."""
        return (
            self.replay.gear_count if number == len(self.gear_learners) else self.gear_learners[number].gear_numbers[0]
        )


class GearBatch(NamedTuple):
    """What a gear's learner updates on."""

    transitions: Transitions
    noise: jax.Array  # standard normal, flat


def sample_gear_batch(
    number: int,
    buffer: Replay,
    agent: AgentParameters,
    normaliser: Normaliser | None,
    time: jax.Array,
    method: Method,
) -> GearBatch:
    """One agent's batch for a gear's learner, relabelled and normalised."""
    learner = method.gear_learners[number]
    row, new = _sample(number, learner.batch, buffer, agent, time, method)
    batch = replay.transitions(buffer.rows, row, agent.discount, method.replay.columns)
    if new is not None and method.goals is not None:
        batch = hindsight.relabel(batch, new, agent.discount, method.goals)
    if normaliser is not None:
        batch = normalisation.normalise(batch, normaliser)
    if method.scale_rewards:
        batch = batch._replace(reward=batch.reward / agent.reward_scale)
    # Flat: with a short last axis the compiler's loop over these would not be vectorised.
    noise = rng.normal(agent.seed, rng.stream(rng.ACTIONS, number), time, learner.batch * learner.noise_dim)
    return GearBatch(batch, noise)


def sample_picks(
    buffer: Replay, agent: AgentParameters, normaliser: Normaliser | None, time: jax.Array, method: Method
) -> UnpaidPicks:
    """One agent's batch for the master, relabelled and normalised; its costs are not paid yet."""
    weight = agent.master_discount if method.discount_by_step else jax.numpy.float32(1)
    row, new = _sample(len(method.gear_learners), method.master.batch, buffer, agent, time, method)
    if new is None or method.goals is None:
        steps = replay.steps_of_picks(buffer.rows, row, method.replay)
    else:
        steps = hindsight.relabel_picks(buffer.rows, row, new, method.goals, method.replay)
    picks = replay.picks(buffer.rows, row, steps, weight, method.replay)
    if new is not None and method.goals is not None:
        picks = picks._replace(transitions=hindsight.replace_goals(picks.transitions, new, method.goals))
    if normaliser is not None:
        picks = picks._replace(transitions=normalisation.normalise(picks.transitions, normaliser))
    return picks


def _sample(
    number: int, size: int, buffer: Replay, agent: AgentParameters, time: jax.Array, method: Method
) -> tuple[jax.Array, Relabelling | None]:
    """Rows for a learner's batch, and new goals for them on a task with goals."""

    def uniform(purpose: int) -> jax.Array:
        return rng.uniform(agent.seed, rng.stream(purpose, number), time, size)

    row = replay.sample_rows(buffer.samples, method.sampled_list(number), uniform(rng.ROWS))
    if method.goals is None:
        return row, None
    of_picks = number == len(method.gear_learners)
    new = hindsight.sample_goals(buffer, row, uniform(rng.GOALS), method.goals, method.replay, of_picks=of_picks)
    return row, new
