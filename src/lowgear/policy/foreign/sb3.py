"""Zips of Stable-Baselines3, and of sb3-contrib: `data` says what they are, `policy.pth` holds the weights.

`data` is JSON in which whatever JSON cannot hold is a pickle. Those that say what the policy is (its class, spaces,
arguments) are followed without being run; the others are not looked at. PPO's mean is in the actions' own units and
clipped; the other algorithms' goes through tanh and is scaled to the bounds. gSDE changes how PPO explores, not what
its mean is; SAC's with gSDE is clipped before tanh, which no gear does.
"""

import base64
import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from lowgear.policy import fields
from lowgear.policy.arrays import DoubleArray
from lowgear.policy.fields import BadField, shown
from lowgear.policy.foreign.network import ForeignPolicy, activation, check_layers, named_layer, numbered_layers
from lowgear.policy.foreign.pickles import Name, read_pickle
from lowgear.policy.foreign.records import is_made, numbers, state_of
from lowgear.policy.foreign.torch_file import Tensors, TorchFile
from lowgear.policy.foreign.zips import Archive
from lowgear.policy.tensors import unique

MOST_DATA = 1 << 26  # bytes
BOX = ("gymnasium.spaces.box.Box", "gym.spaces.box.Box")
SQUASHED = {
    "stable_baselines3.sac.policies.SACPolicy": "SAC",
    "sb3_contrib.tqc.policies.TQCPolicy": "TQC",
}
DETERMINISTIC = "stable_baselines3.td3.policies.TD3Policy"
ACTOR_CRITIC = "stable_baselines3.common.policies.ActorCriticPolicy"
READABLE = "SAC, TD3, DDPG, TQC, PPO and A2C with MlpPolicy can be imported"
FLATTEN = "stable_baselines3.common.torch_layers.FlattenExtractor"


class Spaces(NamedTuple):
    """What a policy sees, and the bounds of what it does."""

    obs_dim: int
    low: DoubleArray
    high: DoubleArray


def read_data(archive: Archive) -> dict[str, Any]:
    """What a zip says of its algorithm; pickles in it are still texts."""
    try:
        text = archive.read("data", MOST_DATA).decode("utf-8")
        return fields.entries("its data", json.loads(text, object_pairs_hook=unique))
    except (RecursionError, ValueError) as error:
        raise BadField(f"its data is no JSON ({fields.reason(error)})") from None


def entry_of(data: Mapping[str, Any], name: str) -> Any:
    """One entry of the data: as JSON has it, or what its pickle describes."""
    value = data.get(name)
    if type(value) is not dict or ":serialized:" not in value:
        return value
    try:
        pickle = base64.b64decode(fields.entry(value, ":serialized:"), validate=True)
    except (TypeError, ValueError):
        raise BadField(f"{name} is no pickle in base64") from None
    try:
        return read_pickle(pickle)
    except BadField as error:
        raise BadField(f"the pickle of {name} cannot be followed: {error}") from None


def class_of(data: Mapping[str, Any]) -> str:
    """The name of the policy's class."""
    found = entry_of(data, "policy_class")
    if not isinstance(found, Name):
        raise BadField(f"its policy is of a class of its own; {READABLE}")
    return str(found)


def spaces_of(data: Mapping[str, Any]) -> Spaces:
    """Of its environment: a flat observation, and bounded actions."""
    seen, done = (_box(data, name) for name in ("observation_space", "action_space"))
    shape = _shape("observation_space", seen)
    if len(shape) == 3:
        raise BadField(f"it sees images of {'x'.join(map(str, shape))}, but a gear sees state vectors")
    low, high = (_numbers("action_space", done, name) for name in ("low", "high"))
    return Spaces(math.prod(shape), low, high)


def arguments_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """The policy's arguments that were not left at their defaults."""
    found = entry_of(data, "policy_kwargs")
    if type(found) is not dict:
        raise BadField(f"its policy_kwargs are {shown(found)}, not an object")
    extractor = found.get("features_extractor_class")
    if extractor is not None and (not isinstance(extractor, Name) or str(extractor) != FLATTEN):
        raise BadField(
            f"its features_extractor_class is {shown(str(extractor))}: only flat observations can be imported"
        )
    return found


def version_of(archive: Archive) -> str:
    """Of Stable-Baselines3, as far as the zip says."""
    name = "_stable_baselines3_version"
    raw = archive.read(name, 100) if name in archive.names else b""
    text = raw.decode("ascii", "replace").strip()
    return text if text and all(letter.isalnum() or letter in ".+-" for letter in text) else ""


def read_sb3(archive: Archive) -> ForeignPolicy:
    """The policy in a zip of Stable-Baselines3."""
    data = read_data(archive)
    kind = class_of(data)
    if kind not in (*SQUASHED, DETERMINISTIC, ACTOR_CRITIC):
        raise BadField(f"its policy is a {shown(kind.rsplit('.', 1)[-1])}; {READABLE}")
    spaces, arguments = spaces_of(data), arguments_of(data)
    dicts = TorchFile(archive.read("policy.pth")).dicts()
    if len(dicts) != 1:
        raise BadField(f"its policy.pth holds {len(dicts)} state dicts, not one")
    tensors, squash = dicts[0], "tanh"
    for name in tensors:
        if "features_extractor" in name:
            raise BadField(f"its policy has a features extractor with weights ({shown(name)}); {READABLE}")
    default, algorithm = "ReLU", SQUASHED.get(kind, "")
    if kind in SQUASHED:
        if data.get("use_sde") is not False:
            raise BadField(
                f"its {algorithm} was trained with use_sde, which clips the mean before tanh: train it without"
            )
        layers = [*numbered_layers(tensors, "actor.latent_pi."), named_layer(tensors, "actor.mu")]
    elif kind == DETERMINISTIC:
        algorithm = "DDPG" if arguments.get("n_critics") == 1 else "TD3"
        layers = numbered_layers(tensors, "actor.mu.")
    else:
        default, algorithm = "Tanh", _actor_critic(data)
        squash = "tanh" if arguments.get("squash_output") is True else "clip"
        layers = _actor_critic_layers(tensors)
    chosen = arguments.get("activation_fn", default)
    named = chosen.name if isinstance(chosen, Name) and chosen.module.startswith("torch.nn.modules.") else chosen
    return in_spaces(
        ForeignPolicy(
            " ".join(("Stable-Baselines3", algorithm, version_of(archive))).strip(),
            check_layers(layers),
            activation(named if type(named) is str else str(named)),
            squash,
        ),
        spaces,
    )


def in_spaces(policy: ForeignPolicy, spaces: Spaces) -> ForeignPolicy:
    """The policy with the bounds of its file; layers that are not of its spaces' sizes are refused."""
    if policy.obs_dim != spaces.obs_dim or policy.act_dim != spaces.low.size:
        raise BadField(
            f"its layers take {policy.obs_dim} numbers and give {policy.act_dim}, but its spaces have {spaces.obs_dim} "
            f"and {spaces.low.size}"
        )
    return ForeignPolicy(
        policy.source, policy.layers, policy.activation, policy.squash, spaces.low, spaces.high, notes=policy.notes
    )


def _actor_critic(data: Mapping[str, Any]) -> str:
    """The algorithms share a class; what they are told tells them apart."""
    return "PPO" if "clip_range" in data else "TRPO" if "cg_max_steps" in data else "A2C"


def _actor_critic_layers(tensors: Tensors) -> list[Any]:
    if any(name.startswith("mlp_extractor.shared_net") for name in tensors):
        raise BadField("its actor and critic share layers, as before Stable-Baselines3 1.8: train it with a later one")
    return [*numbered_layers(tensors, "mlp_extractor.policy_net."), named_layer(tensors, "action_net")]


def _box(data: Mapping[str, Any], name: str) -> dict[Any, Any]:
    found = entry_of(data, name)
    if not is_made(found, *BOX):
        kind = str(getattr(found, "maker", "")).rsplit(".", 1)[-1] or shown(found)
        raise BadField(
            f"its {name} is {shown(kind)}: a gear has a flat Box of observations and a bounded Box of actions"
        )
    return state_of(found, name)


def _shape(name: str, box: dict[Any, Any]) -> tuple[int, ...]:
    axes = fields.items(f"the shape of {name}", box.get("_shape"), 0, 8)
    return tuple(fields.whole(f"an axis of {name}", axis, 1, 2**20) for axis in axes)


def _numbers(name: str, box: dict[Any, Any], end: str) -> DoubleArray:
    try:
        found = numbers(f"{end} of {name}", fields.entry(box, end)).ravel()
    except BadField as error:
        raise BadField(f"{error}: a gear has bounded actions") from None
    if found.size != math.prod(_shape(name, box)) or np.abs(found).max(initial=0) > 1e30:
        raise BadField(f"{end} of {name} does not have the numbers of its shape")
    return found
