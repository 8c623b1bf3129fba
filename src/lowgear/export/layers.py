"""Which layers an export holds, and the policy that they amount to."""

from collections.abc import Sequence
from dataclasses import replace

from lowgear.export.c_arrays import Layer, gear_layers, master_layers
from lowgear.policy.controller import Layers
from lowgear.policy.file import Policy


def arrange(policy: Policy, weights: str) -> tuple[list[list[Layer]], list[Layer] | None]:
    """The gears that can act, and the master unless the gear is forced."""
    header = policy.header
    gears = [gear_layers(layers, header.act_dim, weights) for layers in policy.weights.gears]
    return gears, None if header.forced_gear is not None else master_layers(policy.weights.master, weights)


def rounded(policy: Policy, weights: str) -> Policy:
    """The policy with the weights that an export of this kind really has."""
    if weights == "float32":
        return policy
    gears, master = arrange(policy, weights)

    def back(layers: Sequence[Layer], originals: Layers) -> Layers:
        found = []
        for one, (weight, bias) in zip(layers, originals, strict=True):
            whole = weight.copy()
            whole[0, :, : one.shape.outputs] = one.exact
            found.append((whole, bias))
        return found

    kept = policy.weights.master if master is None else back(master, policy.weights.master)
    pairs = zip(gears, policy.weights.gears, strict=True)
    return replace(
        policy, weights=policy.weights._replace(gears=tuple(back(one, was) for one, was in pairs), master=kept)
    )
