import numpy as np

from lowgear.baselines.rollouts import RolloutSampler
from tests.fixtures.probes import Counting
from tests.fixtures.teachers import layers


def actors(population):
    parts = [layers(p, 2, 3, 3, 2) for p in range(population)]
    return [(np.concatenate([p[i][0] for p in parts]), np.concatenate([p[i][1] for p in parts])) for i in range(3)]


def test_steps_go_on_from_batch_to_batch_and_say_how_they_end():
    sampler = RolloutSampler(Counting([3, 4]), [0])
    first, returns = sampler.collect(actors(1), 2)
    assert first.observation[0, :, 0].tolist() == [[0, 0], [0, 1]]
    assert np.isnan(returns).all()
    second, returns = sampler.collect(actors(1), 2)
    assert second.observation[0, :, 0].tolist() == [[0, 2], [0, 0]]
    assert second.last_observation[0, :, 0].tolist() == [[0, 3], [0, 1]]
    assert second.terminated[0].tolist() == [[1, 0], [0, 0]]  # even environments end for real
    assert second.ended[0].tolist() == [[1, 0], [0, 1]]
    assert returns.tolist() == [(6 + 10) / 2]


def test_raw_actions_are_draws_around_the_mean():
    network = [(np.zeros((1, 2, 3), np.float32), np.zeros((1, 3), np.float32)), *actors(1)[1:]]
    network[-1] = (np.zeros((1, 3, 2), np.float32), np.array([[0.5, np.log(0.1)]], np.float32))
    rollout, _ = RolloutSampler(Counting([9] * 50), [0]).collect(network, 40)
    assert abs(rollout.raw.mean() - 0.5) < 0.01
    assert abs(rollout.raw.std() - 0.1) < 0.01


def test_a_student_samples_the_same_alone_and_in_company():
    # Networks that see nothing: observations name the environment, which differs from company to company.
    weights = [(np.zeros_like(weight), bias) for weight, bias in actors(2)]
    alone, company = RolloutSampler(Counting([5] * 2), [7]), RolloutSampler(Counting([5] * 4), [1, 7])
    for _ in range(2):
        own, _ = alone.collect([(weight[1:], bias[1:]) for weight, bias in weights], 3)
        both, _ = company.collect(weights, 3)
        assert both.raw.shape == (2, 3, 2, 1)
        assert own.raw[0].tolist() == both.raw[1].tolist() != both.raw[0].tolist()
