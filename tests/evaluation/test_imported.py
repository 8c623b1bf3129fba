"""Zips that the libraries themselves write act alike after they were imported: `make test-peers`."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.evaluation.imported import import_policy
from lowgear.policy.controller import Controller
from lowgear.policy.file import Policy
from lowgear.policy.foreign import ForeignPolicy

# SBX and flax warn of what JAX will drop.
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
TASK = "gym:Pendulum-v1"
ROUNDING = 1e-6  # of half an action's range, from the same network in float64
NORMALISED = 2e-6  # between two in float32 whose observations are normalised in other places
EXACT: dict[str, Any] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
}
ON_POLICY = ("PPO", "A2C", "TRPO")


def saved(
    path: Path, library: str, algorithm: str, policy: Any = "MlpPolicy", env: Any = "Pendulum-v1", **options: Any
) -> Path:
    """An untrained model as its library saves it."""
    arguments = {"net_arch": [16, 12]} | options.pop("policy_kwargs", {})
    buffer = {} if algorithm in (*ON_POLICY, "RecurrentPPO") else {"buffer_size": 100}
    kind = getattr(importlib.import_module(library), algorithm)
    kind(policy, env, seed=0, device="cpu", policy_kwargs=arguments, **buffer, **options).save(path)
    return path


def exact(foreign: ForeignPolicy, x: Any) -> Any:
    """Actions in [-1, 1] of Pendulum, whose bounds are ±2, in float64."""
    for weight, bias in foreign.layers[:-1]:
        x = EXACT[foreign.activation](x @ weight.astype(np.float64) + bias)
    weight, bias = foreign.layers[-1]
    out = x @ weight.astype(np.float64) + bias
    return np.tanh(out) if foreign.squash == "tanh" else np.clip(out / 2, -1, 1)


def ours(policy: Policy, seen: Any) -> Any:
    controller = Controller.from_policies([policy], len(seen))
    controller.pick(seen[None])
    return controller.act(seen[None])[0]


@pytest.mark.parametrize(
    ("library", "algorithm", "activation"),
    [
        ("stable_baselines3", "SAC", None),
        ("stable_baselines3", "SAC", "ELU"),
        ("stable_baselines3", "TD3", "LeakyReLU"),
        ("stable_baselines3", "DDPG", None),
        ("stable_baselines3", "PPO", None),
        ("stable_baselines3", "PPO", "SiLU"),
        ("stable_baselines3", "A2C", "ReLU"),
        ("sb3_contrib", "TQC", "Tanh"),
        ("sb3_contrib", "TRPO", None),
        ("sbx", "SAC", None),
        ("sbx", "SAC", "elu"),
        ("sbx", "TQC", "silu"),
        ("sbx", "TD3", "tanh"),
        ("sbx", "DDPG", "leaky_relu"),
        ("sbx", "PPO", None),
        ("sbx", "PPO", "relu"),
    ],
)
def test_every_algorithm(tmp_path: Path, library: str, algorithm: str, activation: str | None) -> None:
    functions = importlib.import_module("flax.linen" if library == "sbx" else "torch.nn")
    arguments = {} if activation is None else {"activation_fn": getattr(functions, activation)}
    path = saved(tmp_path / "model.zip", library, algorithm, policy_kwargs=arguments)
    imported = import_policy(path, TASK, check=True)
    assert imported.foreign.source.split()[1] == algorithm
    assert imported.foreign.hidden == (16, 12)
    assert imported.check is not None
    assert imported.check.observations == 1000
    seen = np.random.default_rng(0).uniform(-1, 1, (1000, 3)).astype(np.float32) * np.float32([1, 1, 8])
    wanted = exact(imported.foreign, seen.astype(np.float64))
    original = getattr(importlib.import_module(library), algorithm).load(path, device="cpu")
    theirs = original.predict(seen, deterministic=True)[0] / 2
    for actions in (ours(imported.policy, seen), theirs):
        np.testing.assert_allclose(actions, wanted, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("squash", [False, True])
def test_ppo_with_state_dependent_exploration(tmp_path: Path, squash: bool) -> None:
    arguments = {"squash_output": squash}
    path = saved(tmp_path / "model.zip", "stable_baselines3", "PPO", use_sde=True, policy_kwargs=arguments)
    imported = import_policy(path, TASK, check=True)
    assert imported.foreign.squash == ("tanh" if squash else "clip")
    assert imported.check is not None
    assert imported.check.largest_action_error < ROUNDING


def test_statistics_of_vec_normalize(tmp_path: Path) -> None:
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    env = VecNormalize(make_vec_env("Pendulum-v1", 2, seed=0), clip_obs=1.0)
    path = saved(tmp_path / "model.zip", "stable_baselines3", "PPO", env=env, n_steps=64, batch_size=64)
    env.reset()
    for _ in range(100):
        env.step([env.action_space.sample()] * 2)
    env.save(tmp_path / "vecnormalize.pkl")
    imported = import_policy(path, TASK, normalise=tmp_path / "vecnormalize.pkl", check=True)
    assert imported.foreign.normalised
    assert imported.check is not None
    assert imported.check.largest_action_error < NORMALISED


@pytest.mark.parametrize(
    ("library", "algorithm", "options", "words"),
    [
        ("stable_baselines3", "SAC", {"use_sde": True}, "use_sde"),
        ("stable_baselines3", "DQN", {"env": "CartPole-v1"}, "DQNPolicy"),
        ("stable_baselines3", "PPO", {"env": "CartPole-v1"}, "Discrete"),
        ("sb3_contrib", "RecurrentPPO", {"policy": "MlpLstmPolicy"}, "RecurrentActorCriticPolicy"),
        ("sb3_contrib", "CrossQ", {}, "CrossQPolicy"),
        ("sbx", "CrossQ", {}, "CrossQPolicy"),
        ("sbx", "SAC", {"policy": "SimbaPolicy", "policy_kwargs": {"net_arch": [16]}}, "Simba"),
    ],
)
def test_what_is_refused(tmp_path: Path, library: str, algorithm: str, options: dict[str, Any], words: str) -> None:
    path = saved(tmp_path / "model.zip", library, algorithm, **options)
    with pytest.raises(LowgearError, match=words):
        import_policy(path, TASK)


def test_an_activation_that_no_gear_has(tmp_path: Path) -> None:
    import torch

    path = saved(tmp_path / "m.zip", "stable_baselines3", "SAC", policy_kwargs={"activation_fn": torch.nn.Mish})
    with pytest.raises(LowgearError, match="Mish"):
        import_policy(path, TASK)
