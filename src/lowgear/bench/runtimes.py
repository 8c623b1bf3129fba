"""The same networks in general runtimes: ONNX Runtime, and PyTorch as Stable-Baselines3 runs it."""

import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lowgear.evaluation.record import Episode
from lowgear.export.check import states_of
from lowgear.export.layers import activation_of, exported_networks
from lowgear.policy.file import Policy

Contender = Callable[[int], int]
STEPS = 200  # of an episode: these runtimes take microseconds whatever they are given


def onnx(policy: Policy, episode: Episode) -> dict[str, Contender]:
    """Each gear's model and the whole controller's, one call a step; nothing where the extra is not installed."""
    if importlib.util.find_spec("onnx") is None or importlib.util.find_spec("onnxruntime") is None:
        return {}
    from lowgear.export.onnx_format import OnnxController, session
    from lowgear.export.onnx_model import onnx_files

    files = onnx_files(policy)
    rows = [({"observation": row[None]},) for row in episode.observation[:STEPS]]
    contenders = {
        f"gear{gear}": _one_by_one(partial(session(files[f"gear{gear}.onnx"]).run, None), rows)
        for gear in range(len(policy.header.gears))
        if f"gear{gear}.onnx" in files  # one that holds the last action has none
    }
    states = list(zip(states_of(episode), episode.observation, strict=True))[:STEPS]
    return contenders | {"controller": _one_by_one(OnnxController(policy, files).step_from, states)}


def torch(policy: Policy, episode: Episode) -> dict[str, Contender]:
    """Each gear as a PyTorch module on the CPU, one thread; nothing where PyTorch is not installed."""
    if importlib.util.find_spec("torch") is None:
        return {}
    from torch import from_numpy, inference_mode, nn, set_num_threads

    set_num_threads(1)
    header, rows = policy.header, [(row[None].copy(),) for row in episode.observation[:STEPS]]
    activations = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU, "silu": nn.SiLU, "leaky_relu": nn.LeakyReLU}
    contenders: dict[str, Contender] = {}
    for gear, layers in exported_networks(policy).gears.items():
        parts: list[Any] = []
        for layer in layers:
            parts += [nn.Linear(*layer.weight.shape), activations[activation_of(header, gear)]()]
        module = nn.Sequential(*parts[:-1], nn.Tanh() if header.gears[gear].squash == "tanh" else nn.Hardtanh()).eval()
        clip = [from_numpy(bound) for bound in policy.weights.clips[gear] or ()] if policy.weights.clips else []

        def act(row: Any, module: Any = module, clip: Any = clip) -> None:
            seen = from_numpy(row)
            module(seen.clamp(*clip) if clip else seen).numpy()

        contenders[f"gear{gear}"] = inference_mode()(_one_by_one(act, rows))
    return contenders


def _one_by_one(step: Callable[..., Any], inputs: Sequence[tuple[Any, ...]]) -> Contender:
    """Calls `step` with each of the inputs, pass after pass."""

    def run(passes: int) -> int:
        for _ in range(passes):
            for each in inputs:
                step(*each)
        return passes * len(inputs)

    return run
