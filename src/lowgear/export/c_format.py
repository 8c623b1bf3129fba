"""`--format c`: writes the two files, compiles them, and holds them against the network."""

import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.evaluation.evaluate import play_policies, starts
from lowgear.evaluation.record import Episode
from lowgear.evaluation.statistics import half_width
from lowgear.export import compiler
from lowgear.export.c_arrays import padded_arrays
from lowgear.export.c_header import c_header
from lowgear.export.c_library import Library, build_library, library_returns
from lowgear.export.c_source import c_source
from lowgear.export.check import clearest
from lowgear.export.layers import exported_networks, quantise
from lowgear.export.plain import check_name
from lowgear.export.source import SEED, ExportFiles, ExportRequest, Source
from lowgear.policy.file import Policy

LOSS_EPISODES = 32  # to measure what int8 weights cost


def export_c(request: ExportRequest) -> ExportFiles:
    """NAME.h and NAME.c, checked; without a compiler an error, unless the request says that it need not be."""
    source, name, weights = request.source, request.name, request.weights
    cc = compiler.find()
    if cc is None and not request.unchecked:
        raise LowgearError(
            "the export could not be checked: no C compiler was found. Install gcc or clang, or name one in CC; "
            "or say --unchecked to export without the check"
        )
    policy = quantise(source.policy, weights)
    episodes = source.episodes(request.episodes, policy)
    files = c_files(source.policy, name, weights, episodes)
    report: dict[str, Any] = {"weights": weights, "weight_bytes": weight_bytes(source.policy, weights)}
    if cc is None:
        return ExportFiles(files, report | {"checked": None})
    with tempfile.TemporaryDirectory(prefix="lowgear-") as folder:
        library = build_library(files, name, policy, Path(folder), cc)
        checked = source.check(library, episodes, f"{name}.c")
        self_test = run_self_test(Path(folder), name, cc)
        if weights == "int8":
            report["int8_loss"] = _int8_loss(source, library)
    return ExportFiles(files, report | {"checked": checked, "self_test": self_test, "compiler": compiler.version(cc)})


def c_files(policy: Policy, name: str, weights: str, episodes: Sequence[Episode]) -> dict[str, bytes]:
    """The two files by name."""
    check_name(name)
    source = c_source(policy, name, weights, clearest(episodes))
    return {f"{name}.h": c_header(policy, name).encode(), f"{name}.c": source.encode()}


def weight_bytes(policy: Policy, weights: str) -> int:
    """Bytes of constants that the controller reads, padding and all."""
    gears, master, clips = exported_networks(policy, weights)
    layers = [layer for network in (*gears.values(), master or ()) for layer in network]
    bounds = sum(bound.nbytes for clip in clips.values() for bound in clip)
    return bounds + sum(part.nbytes for layer in layers for part in padded_arrays(layer).values())


def run_self_test(folder: Path, name: str, cc: str) -> str:
    """What the self-test of NAME.c says; an error where it fails."""
    flags = [*compiler.STRICT, "-O2", f"-D{name.upper()}_SELF_TEST"]
    program = compiler.build(cc, flags, [folder / f"{name}.c"], folder / "self-test")
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise LowgearError(f"the self-test of {name}.c fails: {done.stdout.strip()}; nothing was written")
    return done.stdout.strip()


def _int8_loss(source: Source, library: Library) -> dict[str, Any] | None:
    """Returns of the int8 controller against the float32 network, from the same starts; None without environment."""
    if source.make_env is None:
        return None
    with closing(source.make_env(LOSS_EPISODES)) as env:
        int8 = library_returns(library, env, starts(SEED, LOSS_EPISODES))
    float32 = play_policies([source.policy], source.make_env, LOSS_EPISODES, "greedy", SEED).returns[0]
    return {
        "episodes": LOSS_EPISODES,
        "return_float32": float(float32.mean()),
        "return_int8": float(int8.mean()),
        "loss": float((float32 - int8).mean()),
        "loss_ci95": half_width(float32 - int8),
    }
