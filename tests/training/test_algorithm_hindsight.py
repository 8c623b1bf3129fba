"""Hindsight in Algorithm 1: agents and learners still never read each other, and a host is asked once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.envs.goals import Asked, Distance
from lowgear.learning import replay
from lowgear.learning.hindsight import Goals
from lowgear.learning.replay import Columns, ReplaySettings
from lowgear.training import algorithm
from lowgear.training.parallel import ParallelLearner
from tests.fixtures import methods
from tests.fixtures.compilations import compilations
from tests.fixtures.goals import Host
from tests.fixtures.methods import agent, assert_close, buffer_of, equal, only, parameters

COLUMNS = Columns(obs_dim=3, act_dim=1)  # what is seen, what is achieved, what is desired
PERIOD, CHUNK, CAPACITY, UPDATES = 3, 12, 48, 40
ALL = (0, 1, 2)
GOALS = Goals(achieved=(1, 2), desired=(2, 3), rule=Distance(1.0), share=0.8, shift=0.0, ends=False)
METHOD = methods.method(
    obs_dim=3, replay=ReplaySettings(COLUMNS, 2, PERIOD, 1_000, track_episodes=True), goals=GOALS._replace(ends=True)
)
WITHOUT = METHOD._replace(goals=None, replay=METHOD.replay._replace(track_episodes=False))
compiled = jax.jit(algorithm.update, static_argnames=("which", "updates", "method"))
init = jax.jit(algorithm.init, static_argnames="method")


def walk(rng: np.random.Generator, count: int, gear=None) -> np.ndarray:
    """Rows of one agent that walks about; episodes end here and there, some of them for real."""
    rows = np.zeros((count, COLUMNS.width), np.float32)
    age, at, goal = 0, 0.0, 5.0
    for row in rows:
        if age == 0:
            picked = int(rng.integers(2)) if gear is None else gear
        age += 1
        row[COLUMNS.observation] = rng.normal(), at, goal
        at += rng.normal()
        row[COLUMNS.next_observation] = rng.normal(), at, goal
        row[COLUMNS.action] = rng.uniform(-1, 1)
        row[COLUMNS.reward] = -float(abs(at - goal) > 1)
        ended = rng.random() < 0.15
        row[COLUMNS.alive] = not (ended and rng.random() < 0.5)
        row[COLUMNS.choice], row[COLUMNS.age] = picked, age
        row[COLUMNS.closed] = ended or age == PERIOD
        row[COLUMNS.ended] = ended
        age = 0 if row[COLUMNS.closed] else age
        if ended:
            at, goal = 0.0, float(rng.normal() * 5)
    return rows


def written(rows: np.ndarray, shared: jax.Array) -> replay.Replay:
    return buffer_of(rows, shared, METHOD.replay, CAPACITY, CHUNK)


def run(buffer, agents, learners=None, which=ALL, method=METHOD, time=0):
    learners = init(agents.seed, METHOD) if learners is None else learners
    mine = tuple(learners[number] for number in which)
    return compiled(mine, buffer, agents, None, jnp.int32(time), which=which, updates=UPDATES, method=method)


@pytest.fixture(scope="module")
def population():
    """Three agents of different seeds that lived different lives; the last has separate buffers."""
    agents = parameters([4, 5, 6], shared=jnp.array([True, True, False]))
    rng = np.random.default_rng(0)
    return written(np.stack([walk(rng, CAPACITY + 2 * CHUNK) for _ in range(3)]), agents.shared), agents


@pytest.fixture(scope="module")
def together(population):
    return run(*population)


def test_every_learner_learns_and_says_so(population, together) -> None:
    fresh = init(population[1].seed, METHOD)
    for new, old in zip(together[0], fresh, strict=True):
        for p in range(3):
            assert not equal(agent(new.params, slice(p, p + 1)), agent(old.params, slice(p, p + 1)))
    for metric in together[1].values():
        assert metric.shape == (3,)
        assert np.isfinite(metric).all()


@pytest.mark.parametrize("which", [0, 2])
def test_an_agent_learns_the_same_alone_and_in_company(population, together, which: int) -> None:
    buffer, agents = population
    part = slice(which, which + 1)
    fresh = agent(init(agents.seed, METHOD), part)  # cut out: to compile them for one agent takes long
    alone, metrics = run(only(buffer, part), agent(agents, part), fresh)
    assert_close(alone, agent(together[0], part))
    assert_close(metrics, agent(together[1], part))


@pytest.mark.parametrize("which", [(1,), (0, 2)])
def test_a_part_of_the_learners_learns_as_all_do(population, together, which) -> None:
    part, metrics = run(*population, which=which)
    assert_close(part, tuple(together[0][number] for number in which))
    assert_close(metrics, {name: together[1][name] for name in metrics})


def test_updates_are_repeatable_and_the_time_matters(population, together) -> None:
    assert equal(run(*population)[0], together[0])
    for later, other in zip(run(*population, time=UPDATES)[0], together[0], strict=True):
        assert not equal(later.params, other.params)


def test_hindsight_makes_a_difference_and_none_where_nothing_is_relabelled(population, together) -> None:
    buffer, agents = population
    some = (0, 2)
    # A shift is a bonus for every step: the same as if the environment had paid it.
    never = METHOD._replace(goals=METHOD.goals._replace(share=1e-12, shift=0.5))
    left, said = run(buffer, agents, which=some, method=never)
    paid = buffer._replace(rows=buffer.rows.at[..., COLUMNS.reward].add(0.5), episodes=None)
    without, metrics = run(paid, agents, which=some, method=WITHOUT)
    assert_close(left, without)
    assert_close(said, metrics)
    plainly, _ = run(buffer._replace(episodes=None), agents, which=some, method=WITHOUT)
    for one, number in zip(plainly, some, strict=True):
        assert not equal(one.params, together[0][number].params)


def test_a_gear_without_rows_stays_exactly_as_it_was() -> None:
    agents = parameters([1, 2, 3], shared=jnp.array([False, True, True]))
    rng = np.random.default_rng(1)
    buffer = written(np.stack([walk(rng, CAPACITY, gear=0) for _ in range(3)]), agents.shared)
    fresh = init(agents.seed, METHOD)
    new, _ = run(buffer, agents, fresh)
    assert equal(agent(new[1], slice(0, 1)), agent(fresh[1], slice(0, 1)))
    for learner, where in ((0, 0), (2, 0), (1, 1)):
        part = slice(where, where + 1)
        assert not equal(agent(new[learner].params, part), agent(fresh[learner].params, part))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(new))


def test_separate_buffers_learn_from_own_steps_but_any_goal_of_the_episode() -> None:
    agents = parameters([1, 1, 1], shared=jnp.array([False, False, False]))
    rows = np.stack([walk(np.random.default_rng(2), CAPACITY)] * 3)
    large = rows[0, :, COLUMNS.choice] == 1
    assert 0 < large.sum() < CAPACITY

    def small_gears(column: int) -> bool:
        """Whether the small gears stay alike when this column of the large gear's steps changes."""
        changed = rows.copy()
        changed[1, large, column] += 3
        new, _ = run(written(changed, agents.shared), agents)
        return equal(agent(new[0], slice(0, 1)), agent(new[0], slice(1, 2)))

    assert small_gears(COLUMNS.reward)
    assert not small_gears(COLUMNS.next_observation.start + 1)  # what it achieved is a goal for both


def test_a_host_is_asked_once_for_each_learner_and_chunk(population, together) -> None:
    host = Host()
    method = METHOD._replace(goals=METHOD.goals._replace(rule=host))
    learners, metrics = run(*population, method=method)
    jax.block_until_ready(learners)
    batch, picks = METHOD.gear_learners[0].batch, METHOD.master.batch
    # The first 2: what was achieved, and the goal itself.
    assert sorted(host.shapes) == sorted([(UPDATES, 3, 2, batch, 1)] * 2 + [(UPDATES, 3, 2, picks, PERIOD, 1)])
    assert_close(learners, together[0])
    assert_close(metrics, together[1])


def test_an_environment_is_asked_for_plain_numpy_arrays(population, together) -> None:
    """Not for JAX's: its operations inside a callback wait for the very device that waits for the answer."""
    kinds = set()

    class Walk:
        def compute_reward(self, achieved, desired, info):  # noqa: ARG002
            kinds.update((type(achieved), type(desired)))
            return -(np.abs(np.asarray(achieved) - np.asarray(desired)).sum(axis=-1) > 1).astype(np.float32)

    method = METHOD._replace(goals=METHOD.goals._replace(rule=Asked("walk", Walk())))
    assert_close(run(*population, which=(2,), method=method)[0], together[0][2:])
    assert kinds == {np.ndarray}


class Failing(Host):
    def __init__(self, error: Exception) -> None:
        self.error = error

    def reward(self, achieved, desired):  # noqa: ARG002
        raise self.error


def test_a_host_that_fails_is_named_without_a_traceback(caplog) -> None:
    with pytest.raises(LowgearError, match=r"^walk: compute_reward raised$"):
        learned(Failing(LowgearError("walk: compute_reward raised")), 1)
    assert not caplog.records  # JAX logs what a callback raises, with a traceback


def test_what_else_goes_wrong_in_the_background_is_raised_too() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="no room"):
        learned(Failing(MemoryError("no room")), 2)


def learned(rule, cores: int):
    """What one agent with separate buffers knows after its ring has wrapped."""
    method = METHOD._replace(goals=METHOD.goals._replace(rule=rule))
    rows = walk(np.random.default_rng(3), 5 * CHUNK)[None]
    learner = ParallelLearner(method, parameters([1], shared=jnp.array([False])), CAPACITY, cores=cores)

    def go(number: int) -> None:
        learner.insert(rows[:, number * CHUNK : (number + 1) * CHUNK])
        learner.start(CHUNK)
        learner.wait()

    try:
        assert len(learner.jobs) == cores
        go(0)
        with compilations() as names:
            for number in range(1, 5):
                go(number)
        assert not names
        return learner.states()
    finally:
        learner.close()


@pytest.fixture(scope="module")
def uncut():
    return learned(Distance(1.0), 1)


@pytest.mark.parametrize("rule", [Distance(1.0), Host()], ids=["device", "host"])
def test_the_cut_over_learners_changes_nothing_and_nothing_compiles_twice(uncut, rule) -> None:
    assert_close(learned(rule, 2), uncut)
