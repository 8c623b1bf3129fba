"""The method: what each learner is fed and what the master is paid. Algorithm 1 of the paper's supplement.

The learners of P agents are one pytree with the agents on its leading axis. Gears and master learn from the same rows
but never from each other, so `learn` may be given all of them or a part, and parts may run side by side.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lowgear import dial, dqn, hindsight, noise, normaliser, replay, sac, scale
from lowgear.dqn import DqnSettings, DqnState, Picks
from lowgear.hindsight import Goals, Told
from lowgear.normaliser import Statistics
from lowgear.replay import Replay, ReplaySettings
from lowgear.sac import Bounds, SacKnobs, SacState, Transitions
from lowgear.scale import Scale

Metrics = dict[str, jax.Array]
Values = Any  # jax.Array, or NumPy's before it is on the device


class Knobs(NamedTuple):
    """Per-agent values, each (P,): what differs within a population without changing a shape."""

    seed: Values  # uint32
    cost_low: Values  # λ at the dial's low end; 0 is the no-cost ablation
    cost_ratio: Values  # of its ends; 1 where the agent has one coefficient
    discount: Values
    master_discount: Values
    gears: SacKnobs  # (P, gears) each
    master_learning_rate: Values
    shared: Values  # bool; False is the separate-buffers ablation
    normalise_observations: Values  # bool
    scale_rewards: Values  # bool: of the gears; the master is always paid the task's own
    reward_gain: Values  # what scaled rewards are multiplied by
    keep_values: Values  # bool: critics mean the same after the scale of rewards has changed
    tariff: Values | None = None  # (P, choices): what choices are known to cost at a coefficient of 1; see cost.tariff


LearnerState = SacState | DqnState
Learners = tuple[LearnerState, ...]  # the gears, cheapest first, then the master; P agents on every leading axis


class Method(NamedTuple):
    """The static side of the program: shapes and settings that every agent shares."""

    obs_dim: int
    act_dim: int
    gears: tuple[int, ...]  # hidden width of each gear's actor
    critic_units: tuple[int, ...]  # hidden width of each gear's critics
    gear_costs: tuple[float, ...]  # c_ω, gear 0 costs 1
    pick_cost: float  # what a pick adds to them; 0 where the master is not charged
    durations: int  # that the master chooses from
    dial: bool  # picks are paid at coefficients of a range, and the master's learner sees which
    master_units: int
    batch: int
    master_batch: int
    discount_by_step: bool  # the master's discount follows the steps a pick held; the paper applies it once a pick
    actor_activation: str
    dqn: DqnSettings
    replay: ReplaySettings
    goals: Goals | None = None  # None: no hindsight
    value_bounds: tuple[float, float] | None = None  # that the gears' targets are kept within, in the task's rewards
    priced: bool = False  # what choices cost is known: the master that acts holds what they earn, and sees no dial


class View(NamedTuple):
    """How learners see what one agent met."""

    observations: Scale
    reward_scale: jax.Array  # () what the gears' rewards are divided by


def init(knobs: Knobs, method: Method) -> Learners:
    """Fresh learners, each agent's from its own seed alone."""

    def one(knobs: Knobs) -> Learners:
        *gear_keys, master_key = jax.random.split(jax.random.key(knobs.seed), len(method.gears) + 1)
        gears = tuple(
            sac.init(
                key,
                method.obs_dim,
                method.act_dim,
                method.gears[number],
                method.critic_units[number],
                knobs.gears.first_alpha[number],
                knobs.gears.first_values[number],
            )
            for number, key in enumerate(gear_keys)
        )
        choices = len(method.gears) * method.durations
        return (*gears, dqn.init(master_key, method.obs_dim + method.dial, choices, method.master_units, method.priced))

    return jax.vmap(one)(knobs)


def meet(statistics: Statistics, chunk: jax.Array, knobs: Knobs, method: Method) -> Statistics:
    """The statistics of P agents after a chunk (P, K, width) of theirs, one environment's steps after another's."""
    columns, lanes = method.replay.columns, method.replay.lanes
    shift = 0.0 if method.goals is None else method.goals.shift

    def agent(statistics: Statistics, rows: jax.Array, knobs: Knobs) -> Statistics:
        rows = rows.reshape(lanes, -1, columns.width)
        return normaliser.update(
            statistics,
            rows[..., columns.observation],
            rows[..., columns.reward] + shift,
            rows[..., columns.ended],
            knobs.discount,
        )

    return jax.vmap(agent)(statistics, chunk, knobs)


def view(statistics: Statistics, knobs: Knobs, method: Method) -> View:
    """How the learners of P agents see, by what the agents have met so far."""

    def agent(statistics: Statistics, knobs: Knobs) -> View:
        found = normaliser.observation_scale(statistics, method.goals)
        seen = Scale(
            jnp.where(knobs.normalise_observations, found.centre, 0.0),
            jnp.where(knobs.normalise_observations, found.spread, 1.0),
        )
        reward_scale = normaliser.reward_scale(statistics) / knobs.reward_gain
        return View(seen, jnp.where(knobs.scale_rewards, reward_scale, 1.0))

    return jax.vmap(agent)(statistics, knobs)


class Batch(NamedTuple):
    """What one update of a gear learns from."""

    steps: Transitions
    noise: jax.Array  # (2·B·act,) normal, next actions' then current ones'


def learn(
    learners: Learners,
    ring: Replay,
    knobs: Knobs,
    view: View,
    time: jax.Array,
    which: tuple[int, ...],
    updates: int,
    method: Method,
) -> tuple[Learners, Metrics]:
    """Update the learners numbered `which` as many times as told, each time on fresh batches.

    `time` counts the updates before these: it is the clock of the random numbers. Metrics are means, (P,) each.
    """
    ring = replay.by_agent(ring, method.replay.lanes)
    batches = _batches(ring, knobs, view, time + jnp.arange(updates), which, method)

    def agent(states: Learners, knobs: Knobs, view: View, batches: tuple[Batch | Picks, ...]) -> Any:
        results = [
            _update(number, state, batch, knobs, view, method)
            for number, state, batch in zip(which, states, batches, strict=True)
        ]
        metrics = {
            f"{learner_name(number, method)}_{name}": value
            for number, (_, found) in zip(which, results, strict=True)
            for name, value in found.items()
        }
        return tuple(state for state, _ in results), metrics

    def body(states: Learners, batches: tuple[Batch | Picks, ...]) -> tuple[Learners, Metrics]:
        new_states, metrics = jax.vmap(agent)(states, knobs, view, batches)
        return new_states, metrics

    def on_scale(learner: LearnerState) -> LearnerState:
        if isinstance(learner, DqnState):
            return learner
        scaled: SacState = jax.vmap(sac.rescale)(learner, view.reward_scale, knobs.keep_values)
        return scaled

    new_learners, metrics = jax.lax.scan(body, tuple(map(on_scale, learners)), batches)
    # A learner with nothing to draw from stays as it is: a gear may never have been used.
    ready = (ring.lists.stop > ring.lists.start).any(axis=1)
    kept = tuple(
        _keep(ready[:, number], new, old) for number, new, old in zip(which, new_learners, learners, strict=True)
    )
    return kept, jax.tree.map(lambda m: m.mean(axis=0), metrics)


def _batches(
    ring: Replay, knobs: Knobs, view: View, times: jax.Array, which: tuple[int, ...], method: Method
) -> tuple[Batch | Picks, ...]:
    """The batches of all updates, (updates, P, B, ...), of each learner.

    Drawn at once: inside a loop the compiler would draw anew for every use of a number.
    """
    agents = Replay(0, 0, None if ring.episodes is None else 0, None)  # type: ignore[arg-type]

    def of_agent(number: int, ring: Replay, knobs: Knobs, view: View, time: jax.Array) -> Batch | Picks:
        draw = _draw(number, method, knobs.seed, ring, time)
        if number == len(method.gears):
            return _picks(ring.rows, knobs, view, draw, method)
        return Batch(_steps(ring.rows, knobs, view, draw, method), draw.chance)

    def of_learner(number: int) -> Batch | Picks:
        every_agent = jax.vmap(partial(of_agent, number), (agents, 0, 0, None))
        found: Batch | Picks = jax.vmap(every_agent, (None, None, None, 0))(ring, knobs, view, times)
        return found

    return tuple(of_learner(number) for number in which)


def learner_name(number: int, method: Method) -> str:
    """What a learner is called in metrics."""
    return f"gear{number}" if number < len(method.gears) else "master"


def pay(rows: replay.PickRows, coefficient: jax.Array, discount: jax.Array, method: Method) -> Picks:
    """The master's batch: rewards minus λ times cost, and the discount over the time a pick held.

    The cost is that of the pick itself and c_ω for each step that really ran.
    """
    picks = rows.picks
    gear = picks.choice % len(method.gears)
    cost = jnp.asarray(method.gear_costs, jnp.float32)[gear] * rows.held + method.pick_cost
    elapsed = rows.duration.astype(jnp.float32) if method.discount_by_step else jnp.ones_like(rows.held)
    return picks._replace(reward=picks.reward - coefficient * cost, discount=picks.discount * discount**elapsed)


def show(picks: Picks, position: jax.Array) -> Picks:
    """The master's batch with the dial's position, (B,), as its last input."""

    def beside(observation: jax.Array) -> jax.Array:
        return jnp.concatenate([observation, position[:, None]], axis=-1)

    return picks._replace(observation=beside(picks.observation), next_observation=beside(picks.next_observation))


class Draw(NamedTuple):
    """What chance decides of one update of one learner."""

    rows: jax.Array  # (B,) int32: the rows that make its batch
    chance: jax.Array  # for a gear (2·B·act,) normal, next actions' then current ones'; for the master (B,) positions
    told: Told | None  # its goals, with hindsight


def _draw(number: int, method: Method, seed: jax.Array, ring: Replay, time: jax.Array) -> Draw:
    is_master = number == len(method.gears)
    size = method.master_batch if is_master else method.batch

    def uniform(purpose: int) -> jax.Array:
        return noise.uniform(seed, noise.stream(purpose, number), time, size)

    rows = replay.draw(ring.lists, number, uniform(noise.ROWS))
    told: Told | None = None
    if method.goals is not None:
        told = hindsight.tell(ring, rows, uniform(noise.GOALS), method.goals, method.replay, of_picks=is_master)
    if is_master:
        return Draw(rows, 2 * uniform(noise.PRICES) - 1, told)
    # Flat: with a short last axis the compiler's loop over these would not be vectorised.
    normal = noise.normal(seed, noise.stream(noise.ACTIONS, number), time, 2 * size * method.act_dim)
    return Draw(rows, normal, told)


def _update(
    number: int, state: LearnerState, batch: Batch | Picks, knobs: Knobs, view: View, method: Method
) -> tuple[LearnerState, Metrics]:
    """One update of one agent's learner."""
    if isinstance(state, DqnState):
        assert isinstance(batch, Picks)
        return dqn.update(state, batch, knobs.master_learning_rate, method.dqn)
    assert isinstance(batch, Batch)
    noise = batch.noise.reshape(2, method.batch, method.act_dim)
    own: SacKnobs = jax.tree.map(lambda value: value[number], knobs.gears)
    bounds = None if method.value_bounds is None else Bounds(*(b / view.reward_scale for b in method.value_bounds))
    return sac.update(state, batch.steps, noise, own, method.actor_activation, bounds)


def _steps(rows: jax.Array, knobs: Knobs, view: View, draw: Draw, method: Method) -> Transitions:
    """A gear's batch."""
    steps = replay.transitions(rows, draw.rows, knobs.discount, method.replay.columns)
    if draw.told is not None and method.goals is not None:
        steps = hindsight.steps(steps, draw.told, knobs.discount, method.goals)
    steps = steps._replace(reward=steps.reward / view.reward_scale)
    return scale.see(steps, view.observations)


def _picks(rows: jax.Array, knobs: Knobs, view: View, draw: Draw, method: Method) -> Picks:
    """The master's batch, paid: at the agent's coefficient, or with a dial at a fresh one for each pick."""
    weight = knobs.master_discount if method.discount_by_step else jnp.float32(1)
    if draw.told is None or method.goals is None:
        steps = replay.steps_of_picks(rows, draw.rows, method.replay)
    else:
        steps = hindsight.picks(rows, draw.rows, draw.told, method.goals, method.replay)
    found = replay.picks(rows, draw.rows, steps, weight, method.replay)
    if draw.told is not None and method.goals is not None:
        found = found._replace(picks=hindsight.with_goals(found.picks, draw.told, method.goals))
    found = found._replace(picks=scale.see(found.picks, view.observations))
    if not method.dial:
        return pay(found, knobs.cost_low, knobs.master_discount, method)
    # An agent of one coefficient has nothing to set, and sees the middle of its dial.
    position = jnp.where(knobs.cost_ratio > 1, draw.chance, 0.0)
    coefficient = dial.price(position, knobs.cost_low, knobs.cost_ratio)
    picks = show(pay(found, coefficient, knobs.master_discount, method), position)
    if knobs.tariff is None:
        return picks
    return picks._replace(charge=coefficient[:, None] * knobs.tariff[None])


def _keep(ready: jax.Array, new: LearnerState, old: LearnerState) -> LearnerState:
    """`new` for the agents that are ready, `old` for the others."""

    def choose(n: jax.Array, o: jax.Array) -> jax.Array:
        return jnp.where(ready.reshape(ready.shape + (1,) * (n.ndim - 1)), n, o)

    kept: LearnerState = jax.tree.map(choose, new, old)
    return kept
