import numpy as np

from lowgear.baselines.generate import Generator
from tests.fixtures.probes import Counting
from tests.fixtures.teachers import layers


def actors(population):
    parts = [layers(p, 2, 3, 3, 2) for p in range(population)]
    return [(np.concatenate([p[i][0] for p in parts]), np.concatenate([p[i][1] for p in parts])) for i in range(3)]


def test_steps_go_on_from_batch_to_batch_and_say_how_they_end():
    generator = Generator(Counting([3, 4]), [0])
    first, returns = generator.collect(actors(1), 2)
    assert first.observation[0, :, 0].tolist() == [[0, 0], [0, 1]]
    assert np.isnan(returns).all()
    second, returns = generator.collect(actors(1), 2)
    assert second.observation[0, :, 0].tolist() == [[0, 2], [0, 0]]
    assert second.last_observation[0, :, 0].tolist() == [[0, 3], [0, 1]]
    assert second.terminated[0].tolist() == [[1, 0], [0, 0]]  # even environments end for real
    assert second.over[0].tolist() == [[1, 0], [0, 1]]
    assert returns.tolist() == [(6 + 10) / 2]


def test_raw_actions_are_draws_around_the_mean():
    network = [(np.zeros((1, 2, 3), np.float32), np.zeros((1, 3), np.float32)), *actors(1)[1:]]
    network[-1] = (np.zeros((1, 3, 2), np.float32), np.array([[0.5, np.log(0.1)]], np.float32))
    rollout, _ = Generator(Counting([9] * 50), [0]).collect(network, 40)
    assert abs(rollout.raw.mean() - 0.5) < 0.01
    assert abs(rollout.raw.std() - 0.1) < 0.01


def test_a_student_draws_the_same_alone_and_in_company():
    weights = actors(2)
    company = Generator(Counting([5] * 4), [1, 7])
    alone = Generator(Counting([5] * 2), [7])
    mine = [(w[1:], b[1:]) for w, b in weights]
    for _ in range(2):
        # Observations name the environment, so only the noise is compared: raw less its mean.
        theirs, own = company.collect(weights, 3)[0], alone.collect(mine, 3)[0]
    assert theirs.raw.shape == (2, 3, 2, 1)
    assert company._noise(3)[1].tolist() == alone._noise(3)[0].tolist()
    assert not np.array_equal(theirs.raw[0], theirs.raw[1])
    assert np.isfinite(own.raw).all()
