"""What the master learns from where a gear holds the last action, and actors of any depth."""

import jax
import jax.numpy as jnp
import numpy as np

from lowgear.learning import hindsight, networks, normalisation, replay
from lowgear.learning.hindsight import Goals, Relabelling
from lowgear.learning.normalisation import Normaliser
from lowgear.learning.replay import Columns, ReplaySettings
from lowgear.learning.sac import Sac
from lowgear.learning.transitions import MasterTransitions
from lowgear.policy.cost import policy_flops
from tests.fixtures.methods import SAC

COLUMNS = Columns(obs_dim=2, act_dim=2, keeps_last=True)
SETTINGS = ReplaySettings(COLUMNS, 2, 3, 100)


def test_the_last_action_stands_at_the_end_of_a_row() -> None:
    plain = Columns(2, 2)
    assert plain.width == COLUMNS.width - 2
    assert plain.last_action == slice(plain.width, plain.width)
    assert COLUMNS.last_action == slice(plain.width, plain.width + 2)
    for name in ("observation", "next_observation", "action", "reward", "alive", "choice", "age", "closed", "ended"):
        assert getattr(plain, name) == getattr(COLUMNS, name)


def lived() -> np.ndarray:
    """Two picks, of 3 steps and of 2."""
    rows = np.arange(5 * COLUMNS.width, dtype=np.float32).reshape(5, -1)
    rows[:, COLUMNS.age] = 1, 2, 3, 1, 2
    rows[:, COLUMNS.alive] = 1
    rows[:, COLUMNS.choice] = 0, 0, 0, 1, 1
    return rows


def picks_of(rows: np.ndarray, last: jax.Array) -> MasterTransitions:
    """The master's transitions that end in these rows."""
    buffer = jnp.asarray(rows)
    steps = replay.steps_of_picks(buffer, last, SETTINGS)
    return replay.picks(buffer, last, steps, jnp.float32(1), SETTINGS).transitions


def test_picks_begin_with_the_action_before_them_and_end_with_their_own() -> None:
    rows = lived()
    last = jnp.array([2, 4])
    found = picks_of(rows, last)
    for number, (first, end) in enumerate([(0, 2), (3, 4)]):
        before = [*rows[first, COLUMNS.observation], *rows[first, COLUMNS.last_action]]
        after = [*rows[end, COLUMNS.next_observation], *rows[end, COLUMNS.action]]
        np.testing.assert_array_equal(found.observation[number], before)
        np.testing.assert_array_equal(found.next_observation[number], after)


def test_the_last_action_is_not_normalised() -> None:
    batch = picks_of(lived(), jnp.array([2, 4]))
    mean, std = jnp.array([3.0, -1.0]), jnp.array([2.0, 0.5])
    found = normalisation.normalise(batch, Normaliser(mean, std))
    for seen, raw in ((found.observation, batch.observation), (found.next_observation, batch.next_observation)):
        np.testing.assert_allclose(seen[:, :2], (raw[:, :2] - mean) / std)
        np.testing.assert_array_equal(seen[:, 2:], raw[:, 2:])


def test_other_goals_leave_the_last_action_alone() -> None:
    batch = picks_of(lived(), jnp.array([2, 4]))
    goals = Goals((0, 1), (1, 2), None, 1.0, 0.0, False)
    new = Relabelling(jnp.array([True, False]), jnp.array([[-7.0], [-8.0]]), None)
    found = hindsight.replace_goals(batch, new, goals)
    for seen, raw in ((found.observation, batch.observation), (found.next_observation, batch.next_observation)):
        np.testing.assert_array_equal(seen[0], [raw[0, 0], -7, *raw[0, 2:]])
        np.testing.assert_array_equal(seen[1], raw[1])


def test_actors_of_any_depth() -> None:
    for hidden in ((5,), (5, 4), (5, 4, 3)):
        actor = networks.init_actor(jax.random.key(0), 6, 2, hidden)
        assert [layer.weight.shape for layer in actor] == list(zip((6, *hidden), (*hidden, 4), strict=True))
        assert networks.mlp(actor, jnp.ones((3, 6)), "tanh").shape == (3, 4)
    same = networks.init_actor(jax.random.key(0), 6, 2, (5, 5)), networks.init_actor(jax.random.key(0), 6, 2, 5)
    jax.tree.map(np.testing.assert_array_equal, *same)


def test_the_flops_of_an_update_follow_the_actors_layers() -> None:
    def flops(units: int | tuple[int, ...]) -> int:
        return Sac(0, 6, 2, units, 7, 16, SAC).flops()

    assert flops(5) == flops((5, 5))

    def forward(*hidden: int) -> int:
        return (policy_flops(6, 2, hidden) - 3) // 2

    # Targets, the actor's own forward pass and both of its gradients, without that of the observations.
    for hidden in ((5,), (5, 4, 3)):
        own = 4 * forward(*hidden) - 6 * hidden[0]
        plain = 4 * forward(5, 5) - 6 * 5
        assert flops(hidden) - flops(5) == 2 * 16 * (own - plain)
