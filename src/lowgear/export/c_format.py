"""`--format c`: writes the two files, compiles them, and holds them against the network."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lowgear import LowgearError
from lowgear.evaluation.evaluate import half_width, play_policies
from lowgear.export import compiler
from lowgear.export.c_header import c_header
from lowgear.export.c_library import Library, drive
from lowgear.export.c_source import c_source
from lowgear.export.check import Checked, Stepped, compare, demand
from lowgear.export.episode import Episode, clearest
from lowgear.export.form import Exported, Request
from lowgear.export.layers import arrange, rounded
from lowgear.export.source import SEED
from lowgear.policy.controller import FloatArray
from lowgear.policy.file import Policy

LOSS_EPISODES = 32  # to measure what int8 weights cost


def export_c(request: Request) -> Exported:
    """NAME.h and NAME.c, checked; without a compiler an error, unless the request says that it need not be."""
    found = compiler.find()
    if found is None and not request.unchecked:
        raise LowgearError(
            "the export could not be checked: no C compiler was found. Install gcc or clang, or name one in CC; "
            "or say --unchecked to export without the check"
        )
    policy = rounded(request.source.policy, request.weights)
    episodes = request.source.episodes(request.episodes, policy)
    files = c_files(request.source.policy, request.name, request.weights, episodes)
    report: dict[str, Any] = {"weights": request.weights, "weight_bytes": weight_bytes(policy, request.weights)}
    if found is None:
        return Exported(files, report | {"checked": None})
    with tempfile.TemporaryDirectory(prefix="lowgear-") as folder:
        place = Path(folder)
        library = build_library(files, request.name, policy, place, found)
        checked = demand(compare(policy, _Forced(library, policy), episodes), f"{request.name}.c")
        said = self_test(place, request.name, found)
        if request.weights == "int8":
            report["int8_loss"] = _loss(request, library, policy)
    report |= {"checked": checked.to_json(), "self_test": said, "compiler": compiler.version(found)}
    return Exported(files, report)


def c_files(policy: Policy, name: str, weights: str, episodes: Sequence[Episode]) -> dict[str, bytes]:
    """The two files by name."""
    source = c_source(policy, name, weights, clearest(episodes))
    return {f"{name}.h": c_header(policy, name).encode(), f"{name}.c": source.encode()}


def build_library(files: dict[str, bytes], name: str, policy: Policy, folder: Path, found: str) -> Library:
    """Compile the files with every warning an error, and load them."""
    for file, data in files.items():
        (folder / file).write_bytes(data)
    flags = [*compiler.STRICT, *compiler.FAST, *compiler.SHARED]
    # A fresh name each time: a loaded library of the same path would be taken instead.
    path = folder / f"lib{name}-{folder.name}.so"
    return Library(compiler.build(found, flags, [folder / f"{name}.c"], path), name, policy.header.act_dim)


def self_test(folder: Path, name: str, found: str) -> str:
    """What the self-test of compiled files says; an error where it fails."""
    flags = [*compiler.STRICT, "-O2", f"-D{name.upper()}_SELF_TEST"]
    program = compiler.build(found, flags, [folder / f"{name}.c"], folder / "self-test")
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise LowgearError(f"the self-test of {name}.c fails: {done.stdout.strip()}; nothing was written")
    return done.stdout.strip()


def compare_library(policy: Policy, library: Library, episodes: Sequence[Episode]) -> Checked:
    """A compiled controller against the network."""
    return compare(policy, _Forced(library, policy), episodes)


def weight_bytes(policy: Policy, weights: str) -> int:
    """Bytes of constants that the controller reads, padding and all."""
    gears, master = arrange(policy, weights)
    forced = policy.header.forced_gear
    networks = [gears[forced]] if forced is not None else [*gears, *([master] if master else [])]
    total = 0
    for one in (one for layers in networks for one in layers):
        inputs, _, columns = one.shape
        total += columns * (inputs * one.weight.dtype.itemsize + 4 + 4 * (one.scale is not None))
    return total


class _Forced:
    """A compiled controller that is put into the network's state before each step."""

    def __init__(self, library: Library, policy: Policy) -> None:
        self._library, self._state = library, library.init()
        self._forced = policy.header.forced_gear

    def step(self, choice: int, left: int, observation: FloatArray) -> Stepped:
        self._state.choice = choice if self._forced is None else self._forced
        self._state.left = left
        gear, action = self._library.step(self._state, observation)
        return Stepped(int(self._state.choice), gear, action)


def _loss(request: Request, library: Library, policy: Policy) -> dict[str, Any] | None:
    """Returns of the int8 controller against the float32 network, from the same starts; None without environment."""
    source = request.source
    if source.make_env is None:
        return None
    rounded = drive(library, policy, source.make_env, LOSS_EPISODES, LOSS_EPISODES, SEED)
    exact = play_policies([source.policy], source.make_env, LOSS_EPISODES, "greedy", SEED).returns[0]
    gap = exact - rounded
    return {
        "episodes": LOSS_EPISODES,
        "return_float32": float(exact.mean()),
        "return_int8": float(rounded.mean()),
        "loss": float(gap.mean()),
        "loss_ci95": half_width(np.asarray(gap)),
    }
