"""`lowgear bench train` on the screen: where the time goes, then the distance to the machine's rate."""

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

SPEED = (
    "steps/s: environment steps of all agents, each with an update of all the agent's learners. env, act, wait, other: "
    "shares of the loop's time in the environment, in the rest of collecting, waiting for the learner, in all else. "
    "busy: share of the time that the learner runs. updates/s: its own rate then."
)
DISTANCE = (
    "MFLOP: matrix products of one update. GFLOP/s: this machine's rate on such products, measured before and after. "
    "learner, loop: shares of that rate that the learner reaches while it runs, and the whole loop. start: seconds to "
    "the first updates, random steps included. Peaks are of the process so far, replay of all agents, in MiB."
)
MIB = 2**20


def print_train(report: dict[str, Any]) -> None:
    """The report in two tables, each with what its columns mean."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 100
    found = report["provenance"]
    console.print(f"{report['cores']} cores, {report['backend']} ({found['device']}), jax {found['versions']['jax']}")
    console.print(_speed(report["cases"]))
    console.print(SPEED)
    console.print(_distance(report["cases"]))
    console.print(DISTANCE)


def label(case: dict[str, Any]) -> str:
    """A case in a few words."""
    many = f", {case['environments']} env." if case["environments"] > 1 else ""
    return f"{case['task']} {case['recipe']} {'/'.join(map(str, case['gears']))}{many}"


def _table(*heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("case", max_width=36, overflow="fold")
    for head in ("agents", *heads):
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _speed(cases: list[dict[str, Any]]) -> Table:
    table = _table("steps/s", "env", "act", "wait", "other", "busy", "updates/s")
    for case in cases:
        shares = [case[f"share_{part}"] for part in ("environment", "acting", "waiting", "other")]
        table.add_row(
            label(case),
            str(case["agents"]),
            f"{case['agent_steps_per_s']:,.0f}",
            *(f"{share:.0%}" for share in (*shares, case["learner_busy_share"])),
            f"{case['learner_updates_per_s']:,.0f}",
        )
    return table


def _distance(cases: list[dict[str, Any]]) -> Table:
    on_device = any(case["peak_device_bytes"] is not None for case in cases)
    device = ["device"] if on_device else []
    table = _table("MFLOP", "GFLOP/s", "learner", "loop", "start", "resident", *device, "replay")
    for case in cases:
        peaks = [case["peak_resident_bytes"], *([case["peak_device_bytes"] or 0] if on_device else [])]
        table.add_row(
            label(case),
            str(case["agents"]),
            f"{case['update_mflop']:.0f}",
            f"{case['gemm_gflop_per_s']:,.0f}",
            f"{case['learner_share_of_gemm']:.0%}",
            f"{case['loop_share_of_gemm']:.0%}",
            f"{case['startup_s']:.1f}",
            *(f"{size / MIB:,.0f}" for size in (*peaks, case["replay_bytes"])),
        )
    return table
