"""The same networks in general runtimes: ONNX Runtime, and PyTorch as Stable-Baselines3 runs it."""

import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lowgear.evaluation.record import Episode
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
    }
    states = list(zip(episode.choice.tolist(), episode.left.tolist(), episode.observation, strict=True))[:STEPS]
    return contenders | {"controller": _one_by_one(OnnxController(policy, files).step_from, states)}


def torch(policy: Policy, episode: Episode) -> dict[str, Contender]:
    """Each gear as a PyTorch module on the CPU, one thread; nothing where PyTorch is not installed."""
    if importlib.util.find_spec("torch") is None:
        return {}
    from torch import from_numpy, inference_mode, nn, set_num_threads

    set_num_threads(1)
    header, rows = policy.header, [(row[None].copy(),) for row in episode.observation[:STEPS]]
    activation = nn.Tanh if header.activation == "tanh" else nn.ReLU
    contenders: dict[str, Contender] = {}
    for gear, kind in enumerate(header.gears):
        units = kind.hidden[0]
        hidden = (nn.Linear(header.obs_dim, units), activation(), nn.Linear(units, units), activation())
        module = nn.Sequential(*hidden, nn.Linear(units, header.act_dim), nn.Tanh()).eval()

        def act(row: Any, module: Any = module) -> None:
            module(from_numpy(row)).numpy()

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
