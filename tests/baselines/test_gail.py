from dataclasses import replace

import jax
import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.baselines import gail
from lowgear.baselines.gail import MODERN, GailSettings
from lowgear.baselines.student import stack_pairs
from lowgear.baselines.trpo import TrpoSettings
from lowgear.evaluation import evaluate
from tests.fixtures.teachers import valley, valley_demonstrations

SMALL = GailSettings(steps=2048, batch_steps=256, environments=4)
DATA = valley_demonstrations(20, 20)


def test_the_papers_settings():
    paper = GailSettings()
    assert (paper.steps, paper.batch_steps, paper.policy_updates) == (4_000_000, 1024, 3)
    assert (paper.adversary_units, paper.adversary_entropy, paper.trpo.value_rate) == (100, 1e-3, 3e-4)


def test_three_updates_of_the_policy_to_one_of_the_adversary():
    counted = []
    gail.update_policy.clear_cache()
    gail.update_adversary.clear_cache()
    history = gail.fit([DATA], valley, 4, [0], SMALL, lambda *progress: counted.append(progress)).history
    assert (gail.update_policy._cache_size(), gail.update_adversary._cache_size()) == (1, 1)  # compiled once
    updated = ~np.isnan(history["adversary_loss"][:, 0])
    assert updated.tolist() == [False, False, True, False, False, True, False, False]
    assert counted == [(steps, 2048) for steps in range(256, 2049, 256)]
    assert (history["kl"] <= 0.0151).all()


def test_same_seed_equal_other_seed_different_alone_and_in_company():
    settings = replace(SMALL, steps=512, policy_updates=1)
    longer = valley_demonstrations(30, 20, seed=1)
    alone, again = (gail.fit([DATA], valley, 4, [3], settings) for _ in range(2))
    company = gail.fit([longer, DATA], valley, 4, [2, 3], settings)
    first, same, beside = (s.policies[-1].weights.gears[0][0][0] for s in (alone, again, company))
    np.testing.assert_array_equal(first, same)
    # Batched products round otherwise, and conjugate gradients enlarge that: equal to what a float32 can promise.
    np.testing.assert_allclose(first, beside, atol=2e-2)
    np.testing.assert_array_equal(alone.history["episode_return"][0, 0], company.history["episode_return"][0, 1])
    assert not np.allclose(first, company.policies[0].weights.gears[0][0][0], atol=5e-2)


def test_students_learn_the_valley_without_seeing_its_reward():
    one_step = TrpoSettings(discount=0.0, value_rate=3e-3)
    faster = replace(MODERN, steps=25_600, batch_steps=256, environments=4, adversary_rate=3e-3, trpo=one_step)
    students = gail.fit([DATA] * 2, valley, 16, [0, 1], faster)
    start = gail.fit([DATA] * 2, valley, 16, [0, 1], replace(faster, steps=256))
    before, after = (
        evaluate.play_policies(s.policies, valley, 20, "greedy", 0).returns.mean(axis=1) for s in (start, students)
    )
    assert (before < 12).all()
    assert (after > 17).all()  # of 20
    assert {p.header.variant for p in students.policies} == {"gail"}
    assert students.policies[0].header.steps == 25_600


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps 0"),
        ({"environments": 7}, "cannot share batches"),
        ({"batch_steps": 64}, "value batches of 128"),
    ],
)
def test_bad_settings_are_errors(change, message):
    with pytest.raises(LowgearError, match=message):
        gail.fit([DATA], valley, 4, [0], replace(SMALL, **change))


def test_padding_of_a_shorter_set_is_never_seen():
    short, long = valley_demonstrations(1, 3), valley_demonstrations(4, 50)
    pairs = stack_pairs([short, long])
    state = gail.init(jax.numpy.stack([jax.random.key(0)] * 2), pairs, 4, SMALL)
    mean = state.adversary.moments.mean[0, 0]
    assert short.observations.min() <= mean <= short.observations.max()
