"""Files of other libraries are read as they act; what cannot be a gear is refused by name."""

import base64
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.policy.fields import BadField
from lowgear.policy.foreign import read_foreign
from lowgear.policy.foreign.network import bounded
from tests.fixtures.foreign import FILES, FOLDER, HIGH, LOW, act, expected, observations


@pytest.mark.parametrize("name", FILES)
def test_actions_are_the_library_s(name: str) -> None:
    policy = read_foreign(FOLDER / name)
    assert np.abs(act(policy, observations()) - expected(Path(name).stem)).max() < 1e-6
    assert (policy.obs_dim, policy.act_dim) == (3, 1)


@pytest.mark.parametrize(
    ("name", "source", "hidden", "activation", "squash"),
    [
        ("sb3-sac.zip", "Stable-Baselines3 SAC", (4, 5), "relu", "tanh"),
        ("sb3-td3.zip", "Stable-Baselines3 TD3", (6, 5, 4), "silu", "tanh"),
        ("sb3-ppo.zip", "Stable-Baselines3 PPO", (4, 4), "elu", "clip"),
        ("sb3-tqc.zip", "Stable-Baselines3 TQC", (4, 5), "leaky_relu", "tanh"),
        ("sbx-sac.zip", "SBX SAC", (4, 5), "relu", "tanh"),
        ("cleanrl-sac.pt", "CleanRL SAC", (6, 5), "relu", "tanh"),
        ("cleanrl-ppo.pt", "CleanRL PPO", (4, 4), "tanh", "clip"),
    ],
)
def test_what_a_file_says_of_itself(name: str, source: str, hidden: Any, activation: str, squash: str) -> None:
    policy = read_foreign(FOLDER / name)
    assert policy.source.startswith(source)
    assert (policy.hidden, policy.activation, policy.squash) == (hidden, activation, squash)


@pytest.mark.parametrize("statistics", ["statistics.npz", "vecnormalize.pkl"])
def test_normalisation_is_in_the_first_layer(statistics: str) -> None:
    policy = read_foreign(FOLDER / "sb3-ppo.zip", normalise=FOLDER / statistics)
    found = act(policy, observations())
    assert np.abs(found - expected("sb3-ppo normalised")).max() < 1e-6
    assert np.abs(found - expected("sb3-ppo")).max() > 1e-3
    assert policy.observation_low is not None  # some observations were clipped
    assert (observations() < policy.observation_low).any()


def test_statistics_of_another_policy(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", mean=np.zeros(4), var=np.ones(4))
    with pytest.raises(LowgearError, match="of 4 numbers, but the policy sees 3"):
        read_foreign(FOLDER / "sb3-sac.zip", normalise=tmp_path / "other.npz")


def test_another_environment_s_bounds() -> None:
    with pytest.raises(BadField, match="of another environment"):
        bounded(read_foreign(FOLDER / "sb3-sac.zip"), LOW / 2, HIGH / 2)
    with pytest.raises(BadField, match="1 numbers, but the environment's 2"):
        bounded(read_foreign(FOLDER / "sb3-sac.zip"), np.full(2, -2.0), np.full(2, 2.0))


def edited(tmp_path: Path, name: str, **changes: Any) -> Path:
    """A fixture with other entries in its data."""
    source, path = zipfile.ZipFile(FOLDER / name), tmp_path / "edited.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for member in source.namelist():
            content = source.read(member)
            if member == "data":
                content = json.dumps(json.loads(content) | changes).encode()
            packed.writestr(member, content)
    return path


def named(module: str, name: str) -> dict[str, str]:
    """A pickle that is a name, as `data` has it."""
    return {":serialized:": base64.b64encode(f"\x80\x02c{module}\n{name}\n.".encode("latin-1")).decode()}


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("sb3-sac.zip", {"use_sde": True}, "use_sde"),
        (
            "sb3-ppo.zip",
            {"policy_class": named("stable_baselines3.common.policies", "ActorCriticCnnPolicy")},
            "CnnPolicy",
        ),
        ("sb3-ppo.zip", {"policy_class": named("stable_baselines3.dqn.policies", "DQNPolicy")}, "DQNPolicy"),
        (
            "sb3-ppo.zip",
            {"policy_class": named("sb3_contrib.common.recurrent.policies", "RecurrentActorCriticPolicy")},
            "RecurrentActorCriticPolicy",
        ),
        ("sbx-sac.zip", {"policy_class": named("sbx.crossq.policies", "CrossQPolicy")}, "CrossQPolicy"),
        ("sb3-ppo.zip", {"action_space": named("gymnasium.spaces.discrete", "Discrete")}, "action_space"),
        ("sb3-sac.zip", {"policy_kwargs": {"activation_fn": "Mish"}}, "activation is 'Mish'"),
        ("sb3-sac.zip", {"policy_kwargs": {"features_extractor_class": "x"}}, "features_extractor_class"),
        ("sb3-sac.zip", {"observation_space": {":serialized:": "%%%"}}, "base64"),
    ],
)
def test_what_no_gear_can_be(tmp_path: Path, name: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(LowgearError) as caught:
        read_foreign(edited(tmp_path, name, **changes))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_of_other_kinds(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for data in (b"", b"text", b"PK\x03\x04", b"\x80\x04.", bytes(1000)):
        path.write_bytes(data)
        for kind in (None, "sb3", "sbx", "cleanrl", "onnx"):
            with pytest.raises(LowgearError, match="cannot be imported"):
                read_foreign(path, kind)
    with pytest.raises(LowgearError, match="cannot be read"):
        read_foreign(tmp_path / "missing")
