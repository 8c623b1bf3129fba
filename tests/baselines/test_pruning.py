"""Pruned policies and what they cost, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.baselines.pruning import prune, sparse_bytes, sparse_flops
from lowgear.policy.controller import Controller
from lowgear.policy.cost import policy_flops
from lowgear.policy.file import Policy
from lowgear.policy.networks import Weights
from tests.fixtures.policies import HEADER, policy_of

LARGE = replace(HEADER, obs_dim=2, layout=(("x", 2),), gears=(1, 2), variant="large-only", forced_gear=1)


def by_hand() -> Policy:
    """Two inputs, two layers of two units, one action: a mean and a log standard deviation."""
    first = np.array([[[4.0, -1.0], [0.5, 3.0]]], np.float32)
    second = np.array([[[-2.0, 0.1], [0.2, 5.0]]], np.float32)
    heads = np.array([[[1.0, 0.3], [-0.4, 2.0]]], np.float32)
    layers = [(each, np.full((1, 2), 0.25, np.float32)) for each in (first, second, heads)]
    whole = policy_of(LARGE)
    return Policy(LARGE, Weights((whole.weights.gears[0], layers), whole.weights.master, whole.weights.tariff))


def test_the_smallest_weights_of_every_layer_and_of_each_head_go() -> None:
    layers = prune(by_hand(), 0.5).weights.gears[1]
    found = [weight[0].tolist() for weight, _ in layers]
    assert found[0] == [[4.0, 0.0], [0.0, 3.0]]
    assert found[1] == [[-2.0, 0.0], [0.0, 5.0]]
    assert found[2] == [[1.0, 0.0], [0.0, 2.0]]
    assert all((bias == 0.25).all() for _, bias in layers)


def test_flops_are_those_of_weights_that_are_not_zero() -> None:
    assert sparse_flops(by_hand()) == 2 * 12 + 3 == policy_flops(2, 1, 2)
    assert sparse_flops(prune(by_hand(), 0.5)) == 2 * 6 + 3
    assert sparse_flops(prune(by_hand(), 0.75)) == 2 * (1 + 1 + 2) + 3  # of a head's two weights one goes


def test_bytes_are_those_of_compressed_sparse_rows() -> None:
    # A float and an index of one byte for each weight, a byte for each of rows + 1 starts, a float for each bias. The
    # log standard deviation does not act, and is not kept.
    assert sparse_bytes(by_hand()) == 2 * (4 * 5 + 3 + 2 * 4) + (2 * 5 + 3 + 1 * 4)
    assert sparse_bytes(prune(by_hand(), 0.5)) == 2 * (2 * 5 + 3 + 2 * 4) + (1 * 5 + 3 + 1 * 4)


def test_wide_layers_have_wider_indices() -> None:
    header = replace(LARGE, gears=(1, 300))
    hidden = 2 * 300 * (4 + 2) + 3 * 2 + 300 * 4, 300 * 300 * (4 + 2) + 301 * 4 + 300 * 4, 300 * (4 + 1) + 301 * 2 + 4
    assert sparse_bytes(policy_of(header)) == sum(hidden)


def test_a_pruned_policy_plays_without_them_and_the_original_stays() -> None:
    whole = by_hand()
    pruned = prune(whole, 0.5)
    observation = np.array([[[1.0, -2.0]]], np.float32)
    controller = Controller.from_policies([pruned])
    controller.pick(observation)
    hidden = np.tanh([4 * 1 + 0.25, 3 * -2 + 0.25])
    hidden = np.tanh([-2 * hidden[0] + 0.25, 5 * hidden[1] + 0.25])
    assert controller.act(observation)[0, 0, 0] == pytest.approx(np.tanh(hidden[0] + 0.25), abs=1e-6)
    assert sparse_flops(whole) == policy_flops(2, 1, 2)


@pytest.mark.parametrize("sparsity", [-0.1, 1.0, float("nan")])
def test_what_is_no_share_is_refused(sparsity: float) -> None:
    with pytest.raises(LowgearError, match=r"sparsity .*: write a share of the weights, from 0 to below 1"):
        prune(by_hand(), sparsity)


def test_a_controller_that_switches_is_refused() -> None:
    with pytest.raises(LowgearError, match=r"has several gears .* take a large-only one"):
        prune(policy_of(), 0.5)
