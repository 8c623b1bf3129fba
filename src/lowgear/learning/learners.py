"""What a gear's learner is to the rest of the program: another off-policy learner is one file that fits this protocol.

Learners see one agent; the population axis is added by `jax.vmap` outside. They are static and hashable: all that
changes while they learn is in the state that they hand out and take back.
"""

from typing import Any, NamedTuple, Protocol

import jax

from lowgear.learning.networks import Mlp
from lowgear.learning.transitions import Transitions

Metrics = dict[str, jax.Array]
State = Any  # a pytree that only its learner looks into


class AgentParameters(NamedTuple):
    """Per-agent values, each (P,): what differs within a population without changing a shape."""

    seed: Any  # uint32
    cost_low: Any  # λ at the dial's low end; 0 is the no-cost ablation
    cost_high: Any  # λ at its high end; the same where the agent has one coefficient
    relative: Any  # bool: these are measured against the task's rewards, whose scale is found while training
    discount: Any
    master_discount: Any
    learning_rate: Any  # of the critics
    actor_learning_rate: Any  # of actor and temperature
    actor_boost: Any  # times that rate at first
    target_rate: Any  # τ of the target critics' moving average
    target_entropy: Any
    master_learning_rate: Any
    shared: Any  # bool; False is the separate-buffers ablation
    pessimism: Any  # 1: targets take the lesser of the twin critics, 0: their mean
    reward_scale: Any  # what the gears' rewards are divided by; found while training, or 1
    master_scale: Any  # what the master's are divided by; found while training, or 1
    choice_cost: Any = None  # (P, choices): known cost of each choice at λ = 1, where the master need not learn it


class GearLearner(Protocol):
    """Trains the actors of one gear, or of several that share what they learn.

    Hashable, and equal to another only where both compile to the same: a frozen dataclass of settings.
    """

    @property
    def gear_numbers(self) -> tuple[int, ...]:
        """Numbers of the gears that it trains."""

    @property
    def batch(self) -> int:
        """Transitions of an update."""

    @property
    def noise_dim(self) -> int:
        """Standard normal numbers that an update takes, for each transition."""

    @property
    def cycle(self) -> int:
        """Updates after which what an update does repeats; 1 where all do the same."""

    def init(self, key: jax.Array) -> State:
        """A fresh learner."""

    def update(
        self, state: State, batch: Transitions, noise: jax.Array, agent: AgentParameters, phase: int | jax.Array
    ) -> tuple[State, Metrics]:
        """One update, the one of number `phase` in its cycle; `noise` is flat, (batch · noise_dim,).

        The phase is an array, (), where one program makes the updates of every phase; 0 where the cycle is 1. Metrics
        that phase 0 does not have are never looked at.
        """

    def actors(self, state: State) -> tuple[Mlp, ...]:
        """What is deployed: the actor of each of its gears."""

    def flops(self) -> int:
        """Of the products of one update."""
