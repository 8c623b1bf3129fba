"""`--format numpy`: the policy file, and a program of a page that runs it with NumPy and safetensors alone."""

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

from lowgear.export.check import Stepped, compare, demand
from lowgear.export.form import Exported, Request
from lowgear.policy.controller import FloatArray

PROGRAM = "controller.py"
TEXT = '''\
"""Runs {policy} with lowgear.policy.controller: NumPy and safetensors, no JAX and no environment.

    python controller.py          acts on a few observations of zeros
"""

from pathlib import Path

import numpy as np

from lowgear.policy import controller as runtime
from lowgear.policy.file import load as load_policy


class Controller:
    """One controller: `step(observation)` gives the action and the gear; `reset()` begins a new episode."""

    def __init__(self, path, cost_coefficient=None):
        policy = load_policy(path)
        if cost_coefficient is not None:
            policy = policy.at(cost_coefficient)
        self.header, self.weights = policy.header, policy.weights
        dial = self.header.dial
        self.position = None if dial is None else np.float32([[dial.position(self.header.cost_coefficient)]])
        self.low, self.high = np.array(self.header.action_low), np.array(self.header.action_high)
        self.reset()

    def reset(self):
        self.shifter = runtime.Shifter((1, 1), len(self.header.gears), self.header.periods)

    def step(self, observation):
        header, shifter = self.header, self.shifter
        x = np.asarray(observation, np.float32).reshape(1, 1, header.obs_dim)
        if header.forced_gear is not None:
            shifter.pick(np.full((1, 1), header.forced_gear))
        elif shifter.due[0, 0]:
            shifter.pick(runtime.values(self.weights, x, self.position, header.activation).argmax(axis=-1))
        gear = int(shifter.gear[0, 0])
        unit = runtime.act(self.weights.gears, x, shifter.gear, header.activation)[0, 0]
        shifter.release(shifter.advance(np.zeros((1, 1), bool)))
        action = np.clip(self.low + (unit.astype(np.float64) + 1) / 2 * (self.high - self.low), self.low, self.high)
        return action.astype(np.float32), gear


if __name__ == "__main__":
    controller = Controller(Path(__file__).with_name("{policy}"))
    for _ in range(5):
        action, gear = controller.step(np.zeros(controller.header.obs_dim))
        print(f"gear {{gear}}: {{action}}")
'''


def export_numpy(request: Request) -> Exported:
    """NAME.safetensors and controller.py, checked."""
    policy, file = request.source.policy, f"{request.name}.safetensors"
    episodes = request.source.episodes(request.episodes)
    with tempfile.TemporaryDirectory(prefix="lowgear-") as folder:
        place = Path(folder)
        policy.save(place / file)
        (place / PROGRAM).write_text(TEXT.format(policy=file), encoding="utf-8")
        checked = demand(compare(policy, _Written(place, file), episodes), PROGRAM)
        files = {file: (place / file).read_bytes(), PROGRAM: (place / PROGRAM).read_bytes()}
    return Exported(files, {"checked": checked.to_json()})


class _Written:
    """The program as it was written, put into any state."""

    def __init__(self, place: Path, file: str) -> None:
        spec = importlib.util.spec_from_file_location("exported_controller", place / PROGRAM)
        assert spec is not None
        assert spec.loader is not None
        module: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._controller = module.Controller(place / file)

    def step(self, choice: int, left: int, observation: FloatArray) -> Stepped:
        shifter = self._controller.shifter
        shifter.choice[:] = choice
        shifter.age[:] = 0 if left == 0 else shifter.periods[choice // shifter.gears] - left
        action, gear = self._controller.step(observation)
        return Stepped(int(shifter.choice[0, 0]), gear, action)
