"""`lowgear bench deploy` on the screen."""

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table


def print_deploy(report: dict[str, Any]) -> None:
    """The times, what they mean, and the estimates."""
    console = Console(highlight=False)
    shares = "/".join(f"{share:.1%}" for share in report["gear_share"])
    source = f"{report['episodes']} episodes" if report["from_environment"] else "random observations"
    console.print(
        f"{report['task']}, gears {'/'.join(map(str, report['gears']))}, λ {report['cost_coefficient']:g}: "
        f"{report['steps']:,} steps of {source}, gears {shares}, {report['picks_per_step']:.2f} picks a step"
    )
    console.print(_times(report))
    _conclude(console, report)
    console.print(_estimates(report))
    console.print("Estimates: exact counts of multiply-adds and tanh times cycles assumed for each (docs/export.md).")


def _table(*heads: str) -> Table:
    table = Table(*heads, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _times(report: dict[str, Any]) -> Table:
    counted, joules = report["instructions_per_step"], report["joules_per_step"]
    heads = ["per step", "ns", "quartiles", "chained", "FLOPs"]
    heads += ["instr."] if counted else []
    heads += ["nJ"] if joules else []
    table = _table(*heads)
    for key, ns in report["ns_per_step"]["c"].items():
        cells = [
            f"{ns['median']:.0f}",
            f"{ns['low']:.0f} to {ns['high']:.0f}",
            f"{report['ns_per_step']['chained'][key]['median']:.0f}",
            f"{report['flops_per_step'][key]:.0f}",
        ]
        cells += [f"{counted[key]:.0f}" if counted[key] is not None else ""] if counted else []
        cells += [f"{joules[key] * 1e9:.0f}"] if joules else []
        table.add_row(f"C, {_label(report, key)}", *cells)
    for kind, name in (("onnx", "ONNX Runtime"), ("torch", "PyTorch")):
        for key, ns in report["ns_per_step"][kind].items():
            cells = [f"{ns['median']:.0f}", f"{ns['low']:.0f} to {ns['high']:.0f}"]
            table.add_row(f"{name}, {_label(report, key)}", *cells)
    return table


def _label(report: dict[str, Any], key: str) -> str:
    return "controller" if key == "controller" else f"{report['gears'][int(key[4:])]} alone"


def _conclude(console: Console, report: dict[str, Any]) -> None:
    line = (
        f"FLOPs saved against the large gear {report['flops_reduction']:.1%}, time saved {report['time_reduction']:.1%}"
    )
    if report["flops_to_time"] is not None:
        line += (
            f": {report['flops_to_time']:.0%} of the FLOPs reduction becomes time "
            f"({report['flops_to_time_chained']:.0%} chained)"
        )
    console.print(line)
    console.print(f"A pick of the master takes {report['pick_ns']:.0f} ns.")
    faster = report["times_faster_than_onnx"]
    if faster:
        console.print(f"Small-gear steps are {faster['gear0']:.0f} times faster than ONNX Runtime's.")
    console.print(f"{report['compiler']}, {' '.join(report['flags'])}")
    if report["instructions_per_step"]:
        console.print(f"Instructions by callgrind, compiled with {' '.join(report['instructions_flags'])}.")
    missing = [name for name, there in report["installed"].items() if not there]
    if missing:
        console.print(f"Not installed, so not measured: {', '.join(missing)}.")
    if report["joules_per_step"] is None:
        console.print("Energy: this machine shows no RAPL counters.")


def _estimates(report: dict[str, Any]) -> Table:
    table = _table("estimate, µs per step", "controller", *(f"{units} units" for units in report["gears"]), "saved")
    for part in report["microcontrollers"]:
        cells = [f"{part['controller_us']:.0f}", *(f"{us:.0f}" for us in part["gears_us"])]
        table.add_row(part["name"], *cells, f"{part['time_reduction']:.1%}")
    return table
