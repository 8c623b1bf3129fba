"""What the imitators train: networks of a gear's own shape, and the policies they become.

A student is saved as a small-only agent is: it is gear 0, always forced, so that its price follows
`lowgear.policy.cost`. The other gear has the teacher's width and weights of zero: it never runs, and is there so that
FLOPs saved are counted against the teacher. The master is as small as a master can be, and is never asked.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lowgear import LowgearError
from lowgear.baselines.demonstrations import Demonstrations, Origin
from lowgear.config.ranges import MAX_SEED
from lowgear.learning.networks import Mlp, init_actor, mlp
from lowgear.learning.normalisation import LEAST_STD, Normaliser
from lowgear.policy.arrays import FloatArray
from lowgear.policy.file import Policy, PolicyHeader
from lowgear.policy.gears import gears_of
from lowgear.policy.networks import Layers, Weights

ACTIVATION = "tanh"


@dataclass(frozen=True)
class Students:
    """P trained students, and how the training went."""

    policies: tuple[Policy, ...]
    history: dict[str, FloatArray]  # (time, P) each; time is epochs, rounds or batches


class Pairs(NamedTuple):
    """What P students are taught with, padded to N pairs each."""

    observations: jax.Array  # (P, N, obs)
    actions: jax.Array  # (P, N, act)
    rows: jax.Array  # (P,): how many pairs are real


def stack_pairs(demonstrations: Sequence[Demonstrations], capacity: int = 0) -> Pairs:
    """The pairs of each student, with room for the longest set, or for `capacity` pairs if those are more."""
    rows = [len(d) for d in demonstrations]
    capacity = max(capacity, *rows)

    def padded(arrays: Sequence[FloatArray]) -> jax.Array:
        return jnp.asarray(np.stack([np.pad(array, ((0, capacity - len(array)), (0, 0))) for array in arrays]))

    return Pairs(
        padded([d.observations for d in demonstrations]),
        padded([d.actions for d in demonstrations]),
        jnp.asarray(rows, jnp.int32),
    )


def normaliser_of(demonstrations: Sequence[Demonstrations]) -> Normaliser:
    """Mean and spread of each student's observations, (P, obs)."""
    seen = [d.observations.astype(np.float64) for d in demonstrations]
    mean, std = (np.stack([measure(one, axis=0) for one in seen]) for measure in (np.mean, np.std))
    return Normaliser(mean.astype(np.float32), np.maximum(std, LEAST_STD).astype(np.float32))


def init(seeds: Sequence[int], origin: Origin, units: int) -> Mlp:
    """Fresh networks, one for each seed, P on the leading axis of every array."""
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    networks: Mlp = jax.vmap(lambda key: init_actor(key, origin.obs_dim, origin.act_dim, units))(keys)
    return networks


def mean_action(network: Mlp, observation: jax.Array) -> jax.Array:
    """What a student does: the deterministic action in [-1, 1], (B, act)."""
    head = mlp(network, observation, ACTIVATION)
    return jnp.tanh(head[..., : head.shape[-1] // 2])


def layers_of(networks: Mlp) -> Layers:
    """Networks of a population on the host."""
    return [(np.array(layer.weight), np.array(layer.bias)) for layer in networks]


def policies_of(
    networks: Layers, variant: str, origins: Sequence[Origin], seeds: Sequence[int], steps: Sequence[int]
) -> tuple[Policy, ...]:
    """Each of P networks as a policy; `steps` are the pairs or environment steps it learned from."""
    return tuple(
        _policy([(weight[p : p + 1], bias[p : p + 1]) for weight, bias in networks], variant, origin, seed, count)
        for p, (origin, seed, count) in enumerate(zip(origins, seeds, steps, strict=True))
    )


def _policy(network: Layers, variant: str, origin: Origin, seed: int, steps: int) -> Policy:
    header = PolicyHeader(
        task=origin.task,
        recipe=origin.recipe,
        variant=variant,
        seed=seed,
        cost_coefficient=0.0,
        dial=None,
        steps=steps,
        obs_dim=origin.obs_dim,
        act_dim=origin.act_dim,
        layout=origin.layout,
        action_low=origin.action_low,
        action_high=origin.action_high,
        gears=gears_of((network[0][0].shape[-1], origin.units)),
        master_units=1,
        periods=(1,),
        activation=ACTIVATION,
        forced_gear=0,
        boltzmann=False,
        hindsight=False,
    )
    unused = _zeros(origin.obs_dim, origin.units, origin.units, 2 * origin.act_dim)
    return Policy(header, Weights((network, unused), _zeros(origin.obs_dim, 1, 1, 2)))


def _zeros(*sizes: int) -> Layers:
    return [
        (np.zeros((1, fan_in, fan_out), np.float32), np.zeros((1, fan_out), np.float32))
        for fan_in, fan_out in itertools.pairwise(sizes)
    ]


def check(demonstrations: Sequence[Demonstrations], units: int, seeds: Sequence[int]) -> None:
    """Refuse what no population can be made of."""
    if not demonstrations or len(demonstrations) != len(seeds):
        raise LowgearError(
            f"{len(demonstrations)} sets of demonstrations for {len(seeds)} seeds: every student needs one of each"
        )
    sizes = {(d.origin.task, d.origin.obs_dim, d.origin.act_dim) for d in demonstrations}
    if len(sizes) > 1:
        raise LowgearError(f"students of different tasks do not train together: {sorted(sizes)}")
    if units < 1:
        raise LowgearError(f"{units} units: write 1 or more")
    for seed in seeds:
        if not 0 <= seed <= MAX_SEED:
            raise LowgearError(f"seed {seed} is outside 0 to {MAX_SEED}")
