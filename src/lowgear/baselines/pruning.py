"""Magnitude pruning of one gear, in one shot and without learning anew, and what a pruned network costs.

Of each layer the smallest weights are set to zero, the same share of every layer (Han et al., "Learning both weights
and connections for efficient neural networks", NeurIPS 2015, before their retraining). Biases stay. The half of the
last layer that only training needs is pruned apart from the half that acts, so that both keep the same share.

FLOPs follow the rule of `lowgear.policy.cost` with non-zero weights in the place of all: `2·nonzero + 3`, both Gaussian
heads counted. Bytes are those of compressed sparse rows: a float32 and an index for each non-zero weight that acts,
where each row begins, and the biases as float32.
"""

from dataclasses import replace

import numpy as np

from lowgear import LowgearError
from lowgear.policy.arrays import FloatArray
from lowgear.policy.file import Policy
from lowgear.policy.networks import Layers

FLOAT_BYTES = 4


def prune(policy: Policy, sparsity: float) -> Policy:
    """A policy whose only gear has so large a share of its weights set to zero, rounded down to whole weights."""
    if not 0 <= sparsity < 1:
        raise LowgearError(f"sparsity {sparsity:g}: write a share of the weights, from 0 to below 1")
    gear, act_dim = _gear(policy), policy.header.act_dim
    *hidden, (weight, bias) = policy.weights.gears[gear]
    heads = [_prune(weight[..., :act_dim], sparsity), _prune(weight[..., act_dim:], sparsity)]
    layers = [*((_prune(each, sparsity), own) for each, own in hidden), (np.concatenate(heads, axis=-1), bias)]
    gears = [layers if number == gear else other for number, other in enumerate(policy.weights.gears)]
    return replace(policy, weights=policy.weights._replace(gears=tuple(gears)))


def sparse_flops(policy: Policy) -> int:
    """FLOPs of one action, of the weights that are not zero."""
    return 2 * sum(int(np.count_nonzero(weight)) for weight, _ in policy.weights.gears[_gear(policy)]) + 3


def sparse_bytes(policy: Policy) -> int:
    """Bytes of the network that acts, as compressed sparse rows; a row is what one input is multiplied with."""
    layers: Layers = policy.weights.gears[_gear(policy)]
    *hidden, (weight, bias) = layers
    acting = [*hidden, (weight[..., : policy.header.act_dim], bias[..., : policy.header.act_dim])]
    return sum(_layer_bytes(weight[0], bias[0]) for weight, bias in acting)


def _layer_bytes(weight: FloatArray, bias: FloatArray) -> int:
    rows, columns = map(int, weight.shape)
    nonzero = int(np.count_nonzero(weight))
    values = nonzero * (FLOAT_BYTES + _index_bytes(columns - 1))
    return values + (rows + 1) * _index_bytes(nonzero) + int(bias.size) * FLOAT_BYTES


def _index_bytes(largest: int) -> int:
    """Of the narrowest whole numbers without sign, of 1, 2 or 4 bytes, that hold it."""
    return int(np.min_scalar_type(largest).itemsize)


def _prune(weight: FloatArray, sparsity: float) -> FloatArray:
    """Without the smallest; of equal ones the first go first."""
    found = weight.copy()
    smallest = np.argsort(np.abs(weight), axis=None, kind="stable")[: int(sparsity * weight.size)]
    found.reshape(-1)[smallest] = 0
    return found


def _gear(policy: Policy) -> int:
    if policy.header.forced_gear is None:
        raise LowgearError(
            f"a {policy.header.variant} policy has several gears and is not one network to prune: take a large-only one"
        )
    return policy.header.forced_gear
