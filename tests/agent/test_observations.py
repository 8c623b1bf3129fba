from dataclasses import replace

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.agent.observations import as_rows
from lowgear.envs import wrap
from tests.fixtures.probes import Countdown
from tests.fixtures.weights import HEADER

NESTED = replace(HEADER, obs_dim=5, layout=(("arm.b", 4), ("taken", 1)))


def test_a_dict_within_a_dict_is_read_as_training_reads_it():
    env = wrap(Countdown, 3)
    trained_on = env.reset([0, 1, 2])
    header = replace(HEADER, obs_dim=env.spec.obs_dim, layout=env.spec.layout)
    one, single = as_rows(Countdown().reset()[0], header)
    assert single
    np.testing.assert_array_equal(one, trained_on[:1])
    many, single = as_rows({"taken": np.zeros((3, 1)), "arm": {"b": np.full((3, 2, 2), 0.5)}}, header)
    assert not single
    np.testing.assert_array_equal(many, trained_on)


def test_keys_with_dots_and_batches_of_one():
    flat = {"arm.b": np.arange(4), "taken": np.array([9])}
    rows, single = as_rows(flat, NESTED)
    assert (rows.tolist(), single) == ([[0, 1, 2, 3, 9]], True)
    rows, single = as_rows({"arm": {"b": np.arange(4)[None]}, "taken": np.array([[9]])}, NESTED)
    assert (rows.tolist(), single) == ([[0, 1, 2, 3, 9]], False)


def test_arrays_of_a_box_that_is_not_flat():
    header = replace(HEADER, obs_dim=4, layout=(("", 4),))
    assert as_rows(np.zeros((2, 2)), header)[1]
    rows, single = as_rows(np.zeros((3, 2, 2)), header)
    assert (rows.shape, single) == ((3, 4), False)


@pytest.mark.parametrize(
    ("observation", "named"),
    [
        ({"arm": {"c": np.zeros(4)}, "taken": np.zeros(1)}, "no 'arm.b'"),
        ({"arm": np.zeros(4), "taken": np.zeros(1)}, "no 'arm.b'"),
        ({"arm": {"b": np.zeros((2, 4))}, "taken": np.zeros((3, 1))}, r"'taken' has the shape \(3, 1\)"),
        ({"arm": {"b": np.zeros(3)}, "taken": np.zeros(1)}, r"'arm.b' has the shape \(3,\)"),
        (np.zeros((2, 3)), r"shape \(3,\)"),
        (np.float32(1), r"shape \(\)"),
    ],
)
def test_what_does_not_fit_is_named(observation, named):
    with pytest.raises(LowgearError, match=named):
        as_rows(observation, NESTED)
