"""Controllers as something else can run them: C99, ONNX, NumPy. Every export is checked against its network."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lowgear import LowgearError, __version__
from lowgear.export.form import Exported, Request
from lowgear.export.source import SEED, writable
from lowgear.policy.files import write_whole

REPORT = "export.json"
GREEDY = "the paper evaluates this task with a sampled master; the export picks the best value instead"


def formats() -> dict[str, Callable[[Request], Exported]]:
    """Every format by name."""
    from lowgear.export.c_format import export_c
    from lowgear.export.numpy_format import export_numpy
    from lowgear.export.onnx_format import export_onnx

    return {"c": export_c, "onnx": export_onnx, "numpy": export_numpy}


def export(request: Request, form: str, out: Path) -> dict[str, Any]:
    """Make, check and write an export; returns what export.json says. A failed check leaves no file."""
    if request.weights != "float32" and form != "c":
        raise LowgearError(f"--weights {request.weights} is for --format c; {form} keeps float32")
    writable(out)
    header = request.source.policy.header
    made = formats()[form](request)
    report = {
        "format": form,
        "name": request.name,
        "lowgear": __version__,
        "policy": request.source.path.name,
        "agent": request.source.agent,
        "task": header.task,
        "variant": header.variant,
        "seed": header.seed,
        "gears": list(header.gears),
        "periods": list(header.periods),
        "cost_coefficient": header.cost_coefficient,
        "dial": None if not request.source.policy.turns or header.dial is None else list(header.dial),
        "observation_normalisation": None,
        "master": "greedy" if header.forced_gear is None else None,
        "episodes_seed": SEED,
        **made.report,
        "notes": _notes(request),
        "files": sorted(made.files),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LowgearError(f"could not make {out}: {error.strerror}") from None
    for name, data in made.files.items():
        write_whole(out / name, data)
    write_whole(out / REPORT, json.dumps(report, indent=2).encode())
    return report


def _notes(request: Request) -> list[str]:
    """What a person should know before relying on it."""
    header, notes = request.source.policy.header, []
    if header.boltzmann and header.forced_gear is None:
        notes.append(GREEDY)
    if request.source.make_env is None:
        notes.append(f"checked on random observations, not on episodes: {request.source.no_env}")
    return notes
