"""Zips of SBX: Stable-Baselines3's format, but the whole policy, flax's parameters in it, is one pickle of `data`.

That pickle holds code, which is never looked at: the record of its `actor_state` leads to the parameters. Activations
are functions there; they are known by their names.
"""

from typing import Any

from lowgear.policy import fields
from lowgear.policy.fields import BadField, shown
from lowgear.policy.foreign.network import ForeignPolicy, Layer, activation, check_layers, layer
from lowgear.policy.foreign.pickles import Made, Name
from lowgear.policy.foreign.records import is_made, state_of
from lowgear.policy.foreign.sb3 import class_of, entry_of, in_spaces, read_data, spaces_of, version_of
from lowgear.policy.foreign.zips import Archive

HEADS = {  # layers behind the hidden ones, the mean first
    "sbx.sac.policies.SACPolicy": ("SAC", 2, "tanh"),
    "sbx.tqc.policies.TQCPolicy": ("TQC", 2, "tanh"),
    "sbx.td3.policies.TD3Policy": ("TD3", 1, "tanh"),
    "sbx.ppo.policies.PPOPolicy": ("PPO", 1, "clip"),
}
READABLE = "SAC, TQC, TD3, DDPG and PPO of SBX with MlpPolicy can be imported"
ACTORS = ("sbx.common.policies.SquashedGaussianActor", "sbx.td3.policies.Actor", "sbx.ppo.policies.Actor")


def is_sbx(archive: Archive) -> bool:
    """Whether a zip of Stable-Baselines3's format is SBX's."""
    return class_of(read_data(archive)).startswith("sbx.")


def read_sbx(archive: Archive) -> ForeignPolicy:
    """The policy in a zip of SBX."""
    data = read_data(archive)
    kind = class_of(data)
    if kind not in HEADS:
        raise BadField(f"its policy is a {shown(kind.rsplit('.', 1)[-1])}; {READABLE}")
    algorithm, heads, squash = HEADS[kind]
    state = state_of(entry_of(data, "policy"), "its policy")
    actor = state.get("actor")
    if not is_made(actor, *ACTORS):
        raise BadField(f"its actor is {shown(actor)}; {READABLE}")
    if data.get("use_sde") is not False:
        raise BadField(f"its {algorithm} was trained with use_sde: train it without")
    if state_of(actor, "its actor").get("features_extractor") is not None:
        raise BadField(f"its actor has a features extractor; {READABLE}")
    layers = _dense_layers(state_of(state.get("actor_state"), "its actor_state"))
    if len(layers) <= heads - 1:
        raise BadField(f"its actor has {len(layers)} layers")
    if algorithm == "TD3" and data.get("policy_delay") == 1 and data.get("target_noise_clip") == 0.0:
        algorithm = "DDPG"
    source = " ".join(("SBX", algorithm, version_of(archive) and f"(Stable-Baselines3 {version_of(archive)})")).strip()
    name = _function_name(state_of(actor, "its actor").get("activation_fn"))
    policy = ForeignPolicy(source, check_layers(layers[: len(layers) - heads + 1]), activation(name), squash)
    return in_spaces(policy, spaces_of(data))


def _dense_layers(train_state: dict[Any, Any]) -> list[Layer]:
    """Dense_0, Dense_1, ... of flax's parameters."""
    outer = fields.entries("its parameters", _plain(fields.entry(train_state, "params")))
    dense = fields.entries("its parameters", _plain(fields.entry(outer, "params")))
    count = sum(1 for name in dense if type(name) is str and name.startswith("Dense_"))
    strange = [name for name in dense if name not in {f"Dense_{n}" for n in range(count)} and name != "log_std"]
    if strange:
        raise BadField(f"its actor has {shown(strange[0])}, which is no linear layer; {READABLE}")
    found = []
    for number in range(count):
        name = f"Dense_{number}"
        parts = fields.entries(name, _plain(dense[name]))
        found.append(layer(name, fields.entry(parts, "kernel"), fields.entry(parts, "bias"), False))
    return found


def _plain(value: Any) -> Any:
    """A dict, also where flax has frozen it."""
    if is_made(value, "flax.core.frozen_dict.FrozenDict") and value.arguments:
        return value.arguments[0]
    return value


def _function_name(value: Any) -> str:
    """The name of a function of JAX, from whichever of its records there is."""
    if isinstance(value, Name):
        return value.name.rsplit(".", 1)[-1] if value.module.startswith(("jax.", "flax.")) else str(value)
    state: Any = value.state if isinstance(value, Made) else None
    if isinstance(state, tuple) and state and type(state[0]) is dict:
        state = state[0]
    if type(state) is not dict:
        return shown(value)
    name, module = state.get("__name__", state.get("function_name")), state.get("__module__")
    inner = state.get("fun")
    if module is None and isinstance(inner, Made) and len(inner.arguments) > 1 and type(inner.arguments[1]) is dict:
        module = inner.arguments[1].get("__name__")
    if type(name) is not str or type(module) is not str or not module.startswith(("jax.", "flax.")):
        return f"{module}.{name}" if type(name) is str else shown(value)
    return name
