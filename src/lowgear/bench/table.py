"""What `lowgear bench` prints: `deploy`, the times and what they mean; `train`, the pace and the machine's rate."""

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from lowgear.policy.gears import Gear, read_gear, small_of
from lowgear.report.terminal import natural_width, print_table

SPEED = (
    "steps/s: environment steps of all agents, each with an update of all the agent's learners. env, act, wait, other: "
    "shares of the loop's time in the environment, in the rest of collecting, waiting for the learner, in all else. "
    "busy: share of the time that the learner runs. env/s, learn/s: what the environments, and the learner, reach with "
    "the machine for themselves. slower: steps/s as a share of the lesser of these."
)
DISTANCE = (
    "MFLOP: matrix products of one update. GFLOP/s: this machine's rate on such products, measured before and after. "
    "learner, loop: shares of that rate that the learner reaches while it runs, and the whole loop. start: seconds to "
    "the first updates, random steps included. Peaks are of the process so far, replay of all agents, in MiB."
)
MIB = 2**20
NAME_WIDTHS = 12, 36  # columns in which a case's name still wraps well, and that it has at most


def print_deploy(report: dict[str, Any]) -> None:
    """The times, what they mean, and the estimates."""
    console = Console(highlight=False)
    shares = "/".join(f"{share:.1%}" for share in report["gear_share"])
    source = f"{report['episodes']} episodes" if report["from_environment"] else "random observations"
    console.print(
        f"{report['task']}, gears {'/'.join(map(str, _gears(report)))}, λ {report['cost_coefficient']:g}: "
        f"{report['steps']:,} steps of {source}, gears {shares}, {report['picks_per_step']:.2f} picks a step",
        markup=False,
    )
    print_table(_times(report), console)
    for line in _conclusions(report):
        console.print(line)
    print_table(_estimates(report), console)
    console.print("Estimates: exact counts of multiply-adds and tanh times cycles assumed for each (docs/export.md).")


def _gears(report: dict[str, Any]) -> list[Gear]:
    return [read_gear(gear) for gear in report["gears"]]


def print_train(report: dict[str, Any]) -> None:
    """The report in two tables, each with what its columns mean."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 100
    found = report["provenance"]
    console.print(f"{report['cores']} cores, {report['backend']} ({found['device']}), jax {found['versions']['jax']}")
    for table, legend in ((_speed(report["cases"]), SPEED), (_distance(report["cases"]), DISTANCE)):
        print_table(table, console, least=_least_width(table, console))
        console.print(legend)


def _table(*heads: str) -> Table:
    """A table of numbers whose first column is their name."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(heads[0], max_width=NAME_WIDTHS[1], overflow="fold")
    for head in heads[1:]:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _least_width(table: Table, console: Console) -> int:
    """Of a table whose first column is wrapped as far as it may."""
    longest = max(len(str(cell)) for cell in table.columns[0].cells)
    least, most = NAME_WIDTHS
    return natural_width(table, console) - max(0, min(longest, most) - least)


def _times(report: dict[str, Any]) -> Table:
    counted, joules = report["instructions_per_step"], report["joules_per_step"]
    table = _table(
        *("per step", "ns", "quartiles", "chained", "FLOPs"), *(["instr."] * bool(counted)), *(["nJ"] * bool(joules))
    )
    for kind, runtime in (("c", "C"), ("onnx", "ONNX Runtime"), ("torch", "PyTorch")):
        for key, ns in report["ns_per_step"][kind].items():
            units = "controller" if key == "controller" else f"{_gears(report)[int(key[4:])]} alone"
            cells = [f"{ns['median']:.0f}", f"{ns['low']:.0f} to {ns['high']:.0f}"]
            if kind == "c":
                cells += [f"{report['ns_per_step']['chained'][key]['median']:.0f}"]
                cells += [f"{report['flops_per_step'][key]:.0f}"]
                cells += [f"{counted[key]:.0f}" if counted[key] is not None else ""] if counted else []
                cells += [f"{joules[key] * 1e9:.0f}"] if joules else []
            table.add_row(f"{runtime}, {units}", *cells)
    return table


def _conclusions(report: dict[str, Any]) -> list[str]:
    saved = (
        f"FLOPs saved against the large gear {report['flops_reduction']:.1%}, time saved {report['time_reduction']:.1%}"
    )
    if report["flops_to_time"] is not None:
        saved += (
            f": {report['flops_to_time']:.0%} of the FLOPs reduction becomes time "
            f"({report['flops_to_time_chained']:.0%} chained)"
        )
    lines = [saved] if len(report["gears"]) > 1 else []  # of one gear nothing is saved, and nobody picks
    lines += [f"A pick of the master takes {report['pick_ns']:.0f} ns."] * len(lines)
    lines.append("Constants {weights:,} bytes, state {state} bytes.".format(**report["bytes"]))
    if report["times_faster_than_onnx"]:
        faster = report["times_faster_than_onnx"][f"gear{small_of(_gears(report))}"]
        lines.append(f"Small-gear steps are {faster:.0f} times faster than ONNX Runtime's.")
    lines.append(f"{report['compiler']}, {' '.join(report['flags'])}")
    if report["instructions_per_step"]:
        lines.append(f"Instructions by callgrind, compiled with {' '.join(report['instructions_flags'])}.")
    missing = [name for name, there in report["installed"].items() if not there]
    if missing:
        lines.append(f"Not installed, so not measured: {', '.join(missing)}.")
    if report["joules_per_step"] is None:
        lines.append("Energy: this machine shows no RAPL counters.")
    return lines


def _estimates(report: dict[str, Any]) -> Table:
    heads = [f"{gear} units" if gear.computes and gear.hidden else str(gear) for gear in _gears(report)]
    table = _table("estimate, µs per step", "controller", *heads, "saved")
    for part in report["microcontrollers"]:
        cells = [f"{part['controller_us']:.0f}", *(f"{us:.0f}" for us in part["gears_us"])]
        table.add_row(part["name"], *cells, f"{part['time_reduction']:.1%}")
    return table


def _speed(cases: list[dict[str, Any]]) -> Table:
    table = _table("case", "agents", "steps/s", "env", "act", "wait", "other", "busy", "env/s", "learn/s", "slower")
    shares = *(f"share_{part}" for part in ("environment", "acting", "waiting", "other")), "learner_busy_share"
    for case in cases:
        table.add_row(
            *_case_cells(case),
            f"{case['agent_steps_per_s']:,.0f}",
            *(f"{case[share]:.0%}" for share in shares),
            f"{case['environments_alone_per_s']:,.0f}",
            f"{case['learner_alone_per_s']:,.0f}",
            f"{case['share_of_slower']:.0%}",
        )
    return table


def _distance(cases: list[dict[str, Any]]) -> Table:
    sizes = {"resident": "peak_resident_bytes", "device": "peak_device_bytes", "replay": "replay_bytes"}
    if all(case["peak_device_bytes"] is None for case in cases):
        del sizes["device"]
    table = _table("case", "agents", "MFLOP", "GFLOP/s", "learner", "loop", "start", *sizes)
    for case in cases:
        table.add_row(
            *_case_cells(case),
            f"{case['update_mflop']:.0f}",
            f"{case['gemm_gflop_per_s']:,.0f}",
            f"{case['learner_share_of_gemm']:.0%}",
            f"{case['loop_share_of_gemm']:.0%}",
            f"{case['startup_s']:.1f}",
            *(f"{(case[size] or 0) / MIB:,.0f}" for size in sizes.values()),
        )
    return table


def _case_cells(case: dict[str, Any]) -> tuple[str, str]:
    """A case in a few words, and its agents."""
    many = f", {case['environments']} env." if case["environments"] > 1 else ""
    gears = "/".join(str(read_gear(gear)) for gear in case["gears"])
    return f"{case['task']} {case['recipe']} {gears}{many}", str(case["agents"])
