"""Algorithm 1 of the paper's supplement, for P agents at once. Comments name its lines.

The paper takes one environment step, then one update. Here a chunk of steps is collected while as many updates are made
on the chunks before (`loop`), and the updates are spread over this machine's devices (`parallel`); a chunk of one step
is the paper's own schedule. Line 12, what the master pays, is left until a batch is sampled: the buffer keeps rewards
and picks, so that any cost coefficient can be paid for them.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lowgear.envs.protocol import Step
from lowgear.learning import normalisation, rng
from lowgear.learning.learners import AgentParameters, Metrics, State
from lowgear.learning.method import GearBatch, Method, sample_gear_batch, sample_picks
from lowgear.learning.normalisation import Normaliser, Statistics
from lowgear.learning.replay import Columns, Replay, UnpaidPicks, by_agent
from lowgear.learning.transitions import MasterTransitions
from lowgear.policy import dial
from lowgear.policy.arrays import FloatArray
from lowgear.policy.controller import Held
from lowgear.training.collect import Collector, FinishedEpisode

BOOSTED_UPDATES = 10_000  # over which an actor's rate falls from its boost


class Unrepeatable(Exception):  # noqa: N818
    """The same seeds and actions led an environment elsewhere."""


Learners = tuple[State, ...]  # of the gears, then the master's; P agents on every leading axis


def init(seeds: jax.Array, method: Method) -> Learners:
    """Line 1: fresh learners, each agent's from its own seed alone."""

    def one(seed: jax.Array) -> Learners:
        *gear_keys, master_key = jax.random.split(jax.random.key(seed), method.learner_count)
        gears = (learner.init(key) for learner, key in zip(method.gear_learners, gear_keys, strict=True))
        return (*gears, method.master.init(master_key))

    return jax.vmap(one)(seeds)


def collect(collector: Collector, rows: FloatArray, last: bool = False) -> list[FinishedEpisode]:
    """Lines 5 to 21 for every step of `rows`, (P, E, steps, width), which the buffer gets; the episodes that ended.

    With `last`, picks and episodes that are still open after the final step end there.
    """
    steps, episodes = rows.shape[2], []
    collector.begin_chunk(steps)
    for k in range(steps):
        collector.pick(k)  # lines 6 to 9
        before = collector.controller.last_action
        action = collector.act(k)  # line 10
        observation, step = collector.step(action)  # line 11
        choice, held = collector.controller.choice, collector.controller.advance(collector.ended, action)  # line 13
        store(rows[:, :, k], observation, action, step, choice, held, collector.columns)  # lines 15 to 17
        if before is not None:  # a gear can hold it, and the master sees it
            rows[:, :, k, collector.columns.last_action] = before
        episodes += collector.finish_episodes(k)  # lines 19 to 21; environments reset themselves
    if last:
        collector.columns.end(rows[:, :, -1])
    return episodes


def collect_again(collector: Collector, rows: FloatArray) -> list[FinishedEpisode]:
    """Take the steps of `rows` once more, as they were: episodes and picks then stand where they stood after them.

    Environments that do not repeat themselves are an error, but for those of agents that have stopped.
    """
    columns, episodes = collector.columns, []
    collector.begin_chunk(rows.shape[2])
    for k in range(rows.shape[2]):
        row = rows[:, :, k]
        collector.controller.choice = row[..., columns.choice].astype(np.int32)
        _, step = collector.step(row[..., columns.action])
        differs = step.last_observation.reshape(*rows.shape[:2], -1) != row[..., columns.next_observation]
        if not collector.retired.issuperset(np.flatnonzero(differs.any(axis=(1, 2))).tolist()):
            raise Unrepeatable
        collector.controller.advance(collector.ended, row[..., columns.action])
        episodes += collector.finish_episodes(k)
    return episodes


def store(
    row: FloatArray, observation: FloatArray, action: FloatArray, step: Step, choice: Any, held: Held, columns: Columns
) -> None:
    """Lines 15 to 17: one row for gears and master alike; a pick's transition is read off the rows of its steps."""
    shape = row.shape[:2]
    row[..., columns.observation] = observation
    row[..., columns.action] = action
    row[..., columns.reward] = step.reward.reshape(shape)
    row[..., columns.next_observation] = step.last_observation.reshape(*shape, -1)
    row[..., columns.alive] = ~step.terminated.reshape(shape)
    row[..., columns.ended] = (step.terminated | step.truncated).reshape(shape)
    row[..., columns.choice] = choice
    row[..., columns.age] = held.age
    row[..., columns.closed] = held.closed


def pay(picks: UnpaidPicks, agent: AgentParameters, uniform: jax.Array, method: Method) -> MasterTransitions:
    """Line 12: rewards minus λ times cost, and the discount over the time that a pick held.

    With a dial, each pick pays at a coefficient of its own, by `uniform` in [0, 1), which the master sees as its last
    input.
    """
    # An agent of one coefficient has nothing to set, and sees the middle of its dial.
    position = jnp.where(agent.cost_high > agent.cost_low, 2 * uniform - 1, 0.0)
    coefficient = dial.price(position, agent.cost_low, agent.cost_high, jnp) if method.dial else agent.cost_low
    batch = picks.transitions
    gear_cost = jnp.asarray(method.cost.gear_costs, jnp.float32)[batch.choice % method.replay.gear_count]
    elapsed = picks.steps.astype(jnp.float32) if method.discount_by_step else jnp.ones_like(picks.discounted_steps)
    reward = method.cost.master_reward(batch.reward, coefficient, gear_cost, picks.discounted_steps)
    batch = batch._replace(reward=reward / agent.master_scale, discount=batch.discount * agent.master_discount**elapsed)
    if not method.dial:
        return batch
    if agent.choice_cost is not None:
        batch = batch._replace(choice_cost=(coefficient / agent.master_scale)[:, None] * agent.choice_cost[None])
    return append_dial_position(batch, position)


def append_dial_position(batch: MasterTransitions, position: jax.Array) -> MasterTransitions:
    """The master's batch with the dial's position, (B,), as its last input."""

    def beside(observation: jax.Array) -> jax.Array:
        return jnp.concatenate([observation, position[:, None]], axis=-1)

    return batch._replace(observation=beside(batch.observation), next_observation=beside(batch.next_observation))


def update(
    learners: Learners,
    buffer: Replay,
    agents: AgentParameters,
    statistics: Statistics | None,
    time: jax.Array,
    *,
    which: tuple[int, ...],
    updates: int,
    method: Method,
    unrolled: bool = True,
) -> tuple[Learners, Metrics]:
    """Lines 23 to 25, `updates` times, for the learners numbered `which`; metrics are means, (P,) each.

    Learners never read each other, so any part of them may be updated at once. `time` counts the updates before these.
    Where updates differ in turn, as when actors step with every second one, `unrolled` compiles a whole cycle of them.
    Otherwise one update chooses what it does, which is compiled sooner; on GPUs that was not tried.
    """
    buffer = by_agent(buffer, method.replay.environments)
    normaliser = normalisers(statistics, method)
    agents = _boosted(agents, time)
    if statistics is not None:
        agents = _informed(agents, statistics, method)
    # Sampled for all updates at once: inside a loop the compiler would draw anew for every use of a number.
    batches = tuple(
        _batches(number, buffer, agents, normaliser, time + jnp.arange(updates), method) for number in which
    )

    cycle = math.lcm(*(method.gear_learners[number].cycle for number in which if number < len(method.gear_learners)))

    def update_agent(
        states: Learners, agent: AgentParameters, batches: tuple[Any, ...], phase: int | jax.Array
    ) -> tuple[Learners, Metrics]:
        new_states: list[State] = []
        metrics: Metrics = {}
        for number, state, batch in zip(which, states, batches, strict=True):
            if isinstance(batch, MasterTransitions):
                new_state, found = method.master.update(state, batch, agent)  # line 24
            else:
                learner = method.gear_learners[number]
                own_phase = phase % learner.cycle if learner.cycle > 1 else 0
                new_state, found = learner.update(state, batch.transitions, batch.noise, agent, own_phase)  # line 25
            new_states.append(new_state)
            metrics |= {f"{method.name(number)}_{name}": value for name, value in found.items()}
        return tuple(new_states), metrics

    def update_all(states: Learners, turn: tuple[int | jax.Array, tuple[Any, ...]]) -> tuple[Learners, Metrics]:
        phase, batches = turn
        return jax.vmap(partial(update_agent, phase=phase))(states, agents, batches)

    def update_cycle(states: Learners, batches: tuple[Any, ...]) -> tuple[Learners, Metrics]:
        metrics: Metrics = {}
        for phase in range(cycle):
            states, found = update_all(states, (phase, jax.tree.map(lambda x, phase=phase: x[phase], batches)))
            metrics = found | metrics  # of the cycle's first update that has them
        return states, metrics

    if unrolled:
        cycles = jax.tree.map(lambda x: x.reshape(updates // cycle, cycle, *x.shape[1:]), batches)
        new_learners, metrics = jax.lax.scan(update_cycle, learners, cycles)
    else:
        new_learners, metrics = jax.lax.scan(update_all, learners, (jnp.arange(updates) % cycle, batches))
        metrics = jax.tree.map(lambda m: m[::cycle], metrics)
    kept = tuple(
        _where(_can_sample(buffer, number, method), new, old)  # line 23
        for number, new, old in zip(which, new_learners, learners, strict=True)
    )
    return kept, jax.tree.map(lambda m: m.mean(axis=0), metrics)


def observe(statistics: Statistics, chunk: jax.Array, agents: AgentParameters, method: Method) -> Statistics:
    """The statistics of P agents after a chunk (P, K, width) of theirs, one environment's steps after another's."""
    columns = method.replay.columns
    if method.goals is not None:
        chunk = chunk.at[..., columns.reward].add(method.goals.shift)

    def one(statistics: Statistics, rows: jax.Array, agent: AgentParameters) -> Statistics:
        rows = rows.reshape(method.replay.environments, -1, columns.width)
        return normalisation.observe(statistics, rows, columns, agent.discount, agent.master_discount)

    return jax.vmap(one)(statistics, chunk, agents)


def normalisers(statistics: Statistics | None, method: Method) -> Normaliser | None:
    """Of P agents; None where observations are seen as they are."""
    if statistics is None or not method.normalise_observations:
        return None
    found: Normaliser = jax.vmap(partial(normalisation.normaliser, goals=method.goals))(statistics)
    return found


def cost_units(statistics: Statistics, agents: AgentParameters, method: Method) -> jax.Array:
    """The cost coefficient at which a step of the dearest gear costs what a typical step earns, (P,).

    Relative coefficients are measured in it.
    """
    earned = (1 - agents.master_discount) * jax.vmap(normalisation.reward_scale)(statistics.master_returns)
    units: jax.Array = earned / method.cost.gear_costs[-1]
    return units


def _boosted(agents: AgentParameters, time: jax.Array) -> AgentParameters:
    """The agents' parameters with the actors' rates of that time: a critic that knows little asks for large steps."""
    left = jnp.maximum(0.0, 1 - time / BOOSTED_UPDATES)
    return agents._replace(actor_learning_rate=agents.actor_learning_rate * (1 + left * (agents.actor_boost - 1)))


def _informed(agents: AgentParameters, statistics: Statistics, method: Method) -> AgentParameters:
    """The agents' parameters with what follows from what they have met."""
    if method.scale_rewards:
        agents = agents._replace(
            reward_scale=jax.vmap(normalisation.reward_scale)(statistics.gear_returns),
            master_scale=jax.vmap(normalisation.reward_scale)(statistics.master_returns),
        )
    if method.relative_costs:
        unit = jnp.where(agents.relative, cost_units(statistics, agents, method), 1.0)
        agents = agents._replace(cost_low=unit * agents.cost_low, cost_high=unit * agents.cost_high)
    if method.lenient_twins:
        agents = agents._replace(pessimism=(statistics.ends > 0).astype(jnp.float32))
    return agents


def _batches(
    number: int,
    buffer: Replay,
    agents: AgentParameters,
    normaliser: Normaliser | None,
    times: jax.Array,
    method: Method,
) -> GearBatch | MasterTransitions:
    """A learner's batches of all agents at all times, (updates, P, B, ...)."""

    def one(buffer: Replay, agent: AgentParameters, normaliser: Normaliser | None, time: jax.Array) -> Any:
        if number < len(method.gear_learners):
            return sample_gear_batch(number, buffer, agent, normaliser, time, method)
        uniform = rng.uniform(agent.seed, rng.stream(rng.COEFFICIENTS, number), time, method.master.batch)
        return pay(sample_picks(buffer, agent, normaliser, time, method), agent, uniform, method)

    axes = Replay(0, 0, None if buffer.episodes is None else 0, None)  # type: ignore[arg-type]
    each_agent = jax.vmap(one, (axes, 0, 0, None))
    found: GearBatch | MasterTransitions = jax.vmap(partial(each_agent, buffer, agents, normaliser))(times)
    return found


def _can_sample(buffer: Replay, number: int, method: Method) -> jax.Array:
    """Whose learner has anything to sample, (P,): with separate buffers a gear may never have been used."""
    samples = buffer.samples
    return (samples.stop > samples.start).any(axis=1)[:, method.sampled_list(number)]


def _where(condition: jax.Array, new: State, old: State) -> State:
    """`new` for the agents where the condition, (P,), holds, `old` for the others."""
    return jax.tree.map(lambda n, o: jnp.where(condition.reshape(-1, *(1,) * (n.ndim - 1)), n, o), new, old)
