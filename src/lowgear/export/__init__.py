"""Controllers as something else can run them: C99, ONNX, NumPy. Every export is checked against its network."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lowgear import CallableRoom, LowgearError, __version__
from lowgear.export.c_format import export_c
from lowgear.export.numpy_format import export_numpy
from lowgear.export.onnx_format import export_onnx
from lowgear.export.plain import check_name
from lowgear.export.source import SEED, ExportFiles, ExportRequest, writable
from lowgear.policy.files import write_whole
from lowgear.policy.header import check_header

sys.modules[__name__].__class__ = CallableRoom  # lowgear.export(...)
REPORT = "export.json"
GREEDY = "the paper evaluates this task with a sampled master; the export picks the best value instead"
FORMATS = {"c": export_c, "onnx": export_onnx, "numpy": export_numpy}


def export(
    request: ExportRequest, format_name: str, out: Path, make: Callable[[ExportRequest], ExportFiles] | None = None
) -> dict[str, Any]:
    """Make, check and write an export in one of FORMATS, or by `make`; returns what export.json says.

    A failed check leaves no file.
    """
    source, header = request.source, request.source.policy.header
    if request.weights != "float32" and format_name != "c":
        raise LowgearError(f"--weights {request.weights} is for --format c; {format_name} keeps float32")
    if request.unchecked and format_name != "c":
        raise LowgearError(f"--unchecked is for --format c: {format_name} is always checked")
    check_name(request.name)
    check_header(header, f"could not export {source.path}")
    writable(out)
    made = (make or FORMATS[format_name])(request)
    report = {
        "format": format_name,
        "name": request.name,
        "lowgear": __version__,
        "policy": source.path.name,
        "agent": source.agent,
        "task": header.task,
        "variant": header.variant,
        "seed": header.seed,
        "observation_names": list(header.observation_names),
        "action_names": list(header.action_names),
        "gears": [gear.to_json() for gear in header.gears],
        "periods": list(header.periods),
        "cost_coefficient": header.cost_coefficient,
        "dial": list(header.dial) if header.dial is not None and source.policy.turns else None,
        "observation_normalisation": None,
        "master": "greedy" if header.forced_gear is None else None,
        "episodes_seed": SEED,
        **made.report,
        "notes": [*_notes(request, make is None), *made.notes],
        "files": sorted(made.files),
    }
    for name, data in (made.files | {REPORT: json.dumps(report, indent=2).encode()}).items():
        path = out / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LowgearError(f"could not make {path.parent}: {error.strerror}") from None
        write_whole(path, data)
    return report


def _notes(request: ExportRequest, greedy: bool) -> list[str]:
    """What a person should know before relying on it."""
    header, notes = request.source.policy.header, []
    if greedy and header.master != "greedy" and header.forced_gear is None:
        notes.append(GREEDY)
    if request.source.make_env is None:
        notes.append(f"checked on random observations, not on episodes: {request.source.no_env}")
    return notes
