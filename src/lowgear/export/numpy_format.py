"""`--format numpy`: the policy file, the code of Lowgear that acts, and a program around them.

`lowgear/policy/` goes into the export as a package of another name, NAME_policy, whose modules import each other under
that name. It needs NumPy and safetensors alone, so the export runs where Lowgear is not installed, or is another
version.
"""

import importlib
import inspect
import runpy
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files as package_files
from pathlib import Path

from lowgear import LowgearError
from lowgear.export.check import ExportedStep, StateBefore, put
from lowgear.export.plain import check_name
from lowgear.export.source import ExportFiles, ExportRequest
from lowgear.policy.arrays import FloatArray

PROGRAM = "controller.py"
TEXT = '''\
"""Runs {policy}. Needs NumPy and safetensors; the code that acts is in {package}/, beside this file.

    python controller.py          acts on a few observations of zeros
"""

from pathlib import Path

import numpy as np

from {package} import controller
from {package}.file import load


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
    source, name = request.source, check_name(request.name)
    file, package = f"{name}.safetensors", f"{name}_policy"
    with tempfile.TemporaryDirectory(prefix="lowgear-") as folder:
        source.policy.save(Path(folder, file))
        files = {file: Path(folder, file).read_bytes(), **deployed_package(package)}
        files[PROGRAM] = TEXT.format(policy=file, package=package).encode()
        for path, data in files.items():
            Path(folder, path).parent.mkdir(exist_ok=True)
            Path(folder, path).write_bytes(data)
        with _imported_from(folder, package):
            written = WrittenController(Path(folder, PROGRAM), Path(folder, file))
        checked = source.check(written, source.episodes(request.episodes), PROGRAM)
    return ExportFiles(files, {"checked": checked})


def deployed_package(package: str) -> dict[str, bytes]:
    """The part of Lowgear that acts, `lowgear.policy` and its error, as a package of that name."""
    modules = [module for module in package_files("lowgear.policy").iterdir() if module.name.endswith(".py")]
    texts = {module.name: module.read_text(encoding="utf-8") for module in modules}
    for old, new in (("from lowgear.policy", f"from {package}"), ("from lowgear import", f"from {package} import")):
        texts = {name: text.replace(old, new) for name, text in texts.items()}
    texts["__init__.py"] += f"\n\n{inspect.getsource(LowgearError)}"
    return {f"{package}/{name}": text.encode() for name, text in texts.items()}


@contextmanager
def _imported_from(folder: str, package: str) -> Iterator[None]:
    """The export's own package is imported from there, and leaves nothing behind in this process."""
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(folder)
        for module in [known for known in sys.modules if known.partition(".")[0] == package]:
            del sys.modules[module]


class WrittenController:
    """A controller.py that can be put into any state."""

    def __init__(self, program: Path, policy_path: Path) -> None:
        self._controller = runpy.run_path(str(program))["Controller"](policy_path)

    def step_from(self, state: StateBefore, observation: FloatArray) -> ExportedStep:
        """One step from a state."""
        network = self._controller.network
        put(network, state)
        action, gear = self._controller.step(observation)
        last_action = None if network.fresh is None else network.last_action[0, 0]
        return ExportedStep(int(network.choice[0, 0]), gear, action, last_action)
