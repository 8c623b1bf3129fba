"""Checkpoints of CleanRL: the state dict of an actor, or of actor and critics in a tuple, as `torch.save` writes it.

SAC has fc1, fc2, fc_mean and TD3 and DDPG fc_mu, both with the scale and the bias of their actions. PPO has actor_mean
with tanh between its layers; its mean is in the actions' own units and clipped by the environment, which also
normalises what it sees: those statistics are not in the file.
"""

import numpy as np

from lowgear.policy.fields import BadField, entry
from lowgear.policy.foreign.network import ForeignPolicy, Layer, check_layers, named_layer, numbered_layers
from lowgear.policy.foreign.records import numbers
from lowgear.policy.foreign.torch_file import Tensors, TorchFile

SQUASHED = {"fc_mean": "SAC", "fc_mu": "TD3"}
OUTSIDE = (
    "CleanRL's PPO normalises observations in its environment, outside of this file: give those statistics with "
    "--normalise if yours did"
)
READABLE = "state dicts of CleanRL's SAC, TD3, DDPG and PPO for continuous actions can be imported"


def read_cleanrl(data: bytes) -> ForeignPolicy:
    """The policy in a checkpoint of CleanRL."""
    for tensors in TorchFile(data).dicts():
        for head, algorithm in SQUASHED.items():
            if f"{head}.weight" in tensors:
                return _squashed(tensors, head, algorithm)
        if any(name.startswith("actor_mean.") for name in tensors):
            layers = check_layers(numbered_layers(tensors, "actor_mean."))
            return ForeignPolicy("CleanRL PPO", layers, "tanh", "clip", notes=(OUTSIDE,))
        if any(name.startswith(("network.", "actor.")) for name in tensors):
            raise BadField(f"it is an actor for discrete actions or images; {READABLE}")
    raise BadField(f"it holds no actor that is known; {READABLE}")


def _squashed(tensors: Tensors, head: str, algorithm: str) -> ForeignPolicy:
    """fc1, fc2, ... and the head, with the bounds of the actions."""
    layers: list[Layer] = []
    while f"fc{len(layers) + 1}.weight" in tensors:
        layers.append(named_layer(tensors, f"fc{len(layers) + 1}"))
    known = {f"fc{number + 1}" for number in range(len(layers))} | {head, "fc_logstd", "action_scale", "action_bias"}
    for name in tensors:
        if name.rsplit(".", 1)[0] not in known:
            raise BadField(f"its actor has {name[:60]!a}, which is no layer of CleanRL's {algorithm}; {READABLE}")
    checked = check_layers([*layers, named_layer(tensors, head)])
    scale, bias = (numbers(name, entry(tensors, name)).ravel() for name in ("action_scale", "action_bias"))
    count = checked[-1][1].size
    if scale.size not in (1, count) or bias.size not in (1, count) or scale.min(initial=1) <= 0:
        raise BadField(f"action_scale and action_bias are not of the {count} numbers of an action")
    scale, bias = np.broadcast_to(scale, count), np.broadcast_to(bias, count)
    return ForeignPolicy(f"CleanRL {algorithm}", checked, "relu", "tanh", bias - scale, bias + scale)
