"""`--format numpy`: the policy file, the code of Lowgear that acts, and a program around them.

`lowgear/__init__.py` and `lowgear/policy/` go into the export as they are. They need NumPy and safetensors alone, so
the export runs where Lowgear is not installed.
"""

import runpy
import tempfile
from importlib.resources import files as package_files
from pathlib import Path

from lowgear.export.check import ExportedStep
from lowgear.export.plain import check_name
from lowgear.export.source import ExportFiles, ExportRequest
from lowgear.policy.arrays import FloatArray

PROGRAM = "controller.py"
TEXT = '''\
"""Runs {policy}. Needs NumPy and safetensors; the code that acts is in lowgear/, beside this file.

    python controller.py          acts on a few observations of zeros
"""

from pathlib import Path

import numpy as np

from lowgear.policy import controller
from lowgear.policy.file import load


class Controller:
    """One controller: `step(observation)` gives the action and the gear; `reset()` begins a new episode."""

    def __init__(self, path, cost_coefficient=None):
        policy = load(path)
        self.policy = policy if cost_coefficient is None else policy.at(cost_coefficient)
        self.header = self.policy.header
        self.network = controller.Controller.from_policies([self.policy])

    def reset(self):
        self.network.begin(np.ones((1, 1), bool))

    def step(self, observation):
        x = controller.readable(np.asarray(observation, np.float32).reshape(1, 1, self.header.obs_dim))
        self.network.pick(x)
        gear, action = int(self.network.gear[0, 0]), self.policy.bounds.scale(self.network.act(x))[0, 0]
        self.network.advance(np.zeros((1, 1), bool))
        return action, gear


if __name__ == "__main__":
    robot = Controller(Path(__file__).with_name("{policy}"))
    for _ in range(5):
        action, gear = robot.step(np.zeros(robot.header.obs_dim))
        print(f"gear {{gear}}: {{action}}")
'''


def export_numpy(request: ExportRequest) -> ExportFiles:
    """NAME.safetensors, controller.py and the package it needs, checked."""
    source, file = request.source, f"{check_name(request.name)}.safetensors"
    with tempfile.TemporaryDirectory(prefix="lowgear-") as folder:
        policy_path, program = Path(folder, file), Path(folder, PROGRAM)
        source.policy.save(policy_path)
        program.write_text(TEXT.format(policy=file), encoding="utf-8")
        checked = source.check(WrittenController(program, policy_path), source.episodes(request.episodes), PROGRAM)
        files = {file: policy_path.read_bytes(), PROGRAM: program.read_bytes()}
    return ExportFiles(files | deployed_package(), {"checked": checked})


def deployed_package() -> dict[str, bytes]:
    """The part of Lowgear that acts: the files of its root and of `lowgear.policy`, as they are."""
    modules = [module for module in package_files("lowgear.policy").iterdir() if module.name.endswith(".py")]
    package = {f"lowgear/policy/{module.name}": module.read_bytes() for module in modules}
    return {"lowgear/__init__.py": package_files("lowgear").joinpath("__init__.py").read_bytes()} | package


class WrittenController:
    """A controller.py that can be put into any state."""

    def __init__(self, program: Path, policy_path: Path) -> None:
        self._controller = runpy.run_path(str(program))["Controller"](policy_path)

    def step_from(self, choice: int, left: int, observation: FloatArray) -> ExportedStep:
        """One step from a state."""
        network = self._controller.network
        network.choice[:] = choice
        network.age[:] = 0 if left == 0 else network.periods[choice // network.gears] - left
        action, gear = self._controller.step(observation)
        return ExportedStep(int(network.choice[0, 0]), gear, action)
