"""The same networks in general runtimes: ONNX Runtime, and PyTorch as Stable-Baselines3 runs it."""

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowgear.export.episode import Episode
from lowgear.policy.file import Policy

Contender = Callable[[int], int]
STEPS = 200  # of an episode: these runtimes take microseconds whatever they are given


def onnx(policy: Policy, episodes: Sequence[Episode]) -> dict[str, Contender]:
    """Each gear's model and the whole controller's, one call a step; nothing where the extra is not installed."""
    if importlib.util.find_spec("onnx") is None or importlib.util.find_spec("onnxruntime") is None:
        return {}
    from lowgear.export.onnx_format import Controller, models, session

    files = models(policy)
    rows = [row[None] for row in episodes[0].observation[:STEPS]]
    found: dict[str, Contender] = {}
    for gear in range(len(policy.header.gears)):
        run = session(files[f"gear{gear}.onnx"]).run

        def alone(passes: int, run: Any = run) -> int:
            for _ in range(passes):
                for row in rows:
                    run(None, {"observation": row})
            return passes * len(rows)

        found[f"gear{gear}"] = alone
    if "controller.onnx" in files:
        controller, episode = Controller(policy, files["controller.onnx"]), episodes[0]
        states = list(zip(episode.choice.tolist(), episode.left.tolist(), episode.observation, strict=True))[:STEPS]

        def whole(passes: int) -> int:
            for _ in range(passes):
                for choice, left, observation in states:
                    controller.step(choice, left, observation)
            return passes * len(states)

        found["controller"] = whole
    return found


def torch(policy: Policy, episodes: Sequence[Episode]) -> dict[str, Contender]:
    """Each gear as a PyTorch module on the CPU, one thread; nothing where PyTorch is not installed."""
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch as library

    library.set_num_threads(1)
    header = policy.header
    activation = library.nn.Tanh if header.activation == "tanh" else library.nn.ReLU
    rows = [np.ascontiguousarray(row[None]) for row in episodes[0].observation[:STEPS]]
    found: dict[str, Contender] = {}
    for gear, units in enumerate(header.gears):
        sizes = ((header.obs_dim, units), (units, units), (units, header.act_dim))
        linear = [library.nn.Linear(a, b) for a, b in sizes]
        module = library.nn.Sequential(
            linear[0], activation(), linear[1], activation(), linear[2], library.nn.Tanh()
        ).eval()

        def alone(passes: int, module: Any = module) -> int:
            with library.inference_mode():
                for _ in range(passes):
                    for row in rows:
                        module(library.from_numpy(row)).numpy()
            return passes * len(rows)

        found[f"gear{gear}"] = alone
    return found
