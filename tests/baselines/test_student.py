import jax
import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.baselines import student
from lowgear.evaluation import evaluate
from lowgear.policy import cost
from lowgear.policy.controller import Controller
from lowgear.policy.file import load as load_policy
from lowgear.policy.gears import gears_of
from tests.fixtures.teachers import origin, valley, valley_demonstrations


def policies(seeds=(0, 1), units=5):
    networks = student.init(seeds, origin(), units)
    return networks, student.policies_of(student.layers_of(networks), "bc", [origin()] * 2, seeds, [10, 20])


def test_a_student_plays_as_its_network_does():
    networks, (_, second) = policies()
    observation = np.linspace(-1, 1, 7, dtype=np.float32)[:, None]
    network = jax.tree.map(lambda x: x[1], networks)
    played = Controller.from_policies([second], 7).act_with(0, observation[None])[0]
    np.testing.assert_allclose(played, student.mean_action(network, observation), atol=1e-6)


def test_a_student_is_priced_by_its_width_and_saves_against_its_teacher():
    _, found = policies()
    played = evaluate.play_policies(found, valley, 4, "greedy", 0)
    figures = evaluate.summarise(played, 0, found[0].header.cost)
    assert figures["flops_per_step"] == cost.policy_flops(1, 1, 5)
    assert figures["flops_reduction"] == 1 - cost.policy_flops(1, 1, 5) / cost.policy_flops(1, 1, 64)
    assert figures["gear_share"] == [1.0, 0.0]


def test_a_student_is_a_policy_file_like_any_other(tmp_path):
    _, (first, _) = policies()
    first.save(tmp_path / "student.safetensors")
    loaded = load_policy(tmp_path / "student.safetensors")
    assert loaded.header == first.header
    assert (loaded.header.variant, loaded.header.forced_gear, loaded.header.gears) == ("bc", 0, gears_of((5, 64)))
    np.testing.assert_array_equal(loaded.weights.gears[0][0][0], first.weights.gears[0][0][0])


def test_a_seed_starts_the_same_alone_and_in_company():
    alone, company = student.init([7], origin(), 4), student.init([3, 7], origin(), 4)
    np.testing.assert_array_equal(alone[0].weight[0], company[0].weight[1])
    assert not np.array_equal(company[0].weight[0], company[0].weight[1])


def test_shorter_sets_of_pairs_are_padded():
    pairs = student.stack_pairs([valley_demonstrations(1, 3), valley_demonstrations(4, 50)], 210)
    assert pairs.observations.shape == pairs.actions.shape == (2, 210, 1)
    assert pairs.rows.tolist() == [3, 200]


@pytest.mark.parametrize(
    ("count", "units", "seeds", "message"),
    [
        (2, 8, [0], "2 sets of demonstrations for 1 seeds"),
        (0, 8, [], "0 sets"),
        (1, 0, [0], "0 units"),
        (1, 8, [-1], "seed -1"),
    ],
)
def test_what_no_population_can_be_made_of(count, units, seeds, message):
    with pytest.raises(LowgearError, match=message):
        student.check([valley_demonstrations(2, 2)] * count, units, seeds)
