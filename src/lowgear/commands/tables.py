"""How tasks and scores look: rows for `--json`, rich tables, a rich card of one task."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from lowgear.config.tasks import SOURCES, Task
from lowgear.policy.cost import PAPER_MASTER_UNITS, cost_model

if TYPE_CHECKING:  # its module loads NumPy, which a table of names can do without
    from lowgear.envs.protocol import EnvSpec

LEGEND = """\
HER: hindsight replay. Boltz: the master is sampled when it is evaluated.
Scores and shares are means of five seeds, Fetch scores success rates. The
reductions of MountainCar, Swimmer, Ant, PickAndPlace, walker and finger are
those of the best seed. `lowgear tasks NAME` shows one task; any other
environment is gym:ID, dmc:domain-task or envpool:ID."""

Column = tuple[str, Callable[[dict[str, Any]], str]]


def task_row(task: Task, spec: "EnvSpec | None" = None) -> dict[str, Any]:
    """Everything known about a task, ready for JSON; `spec` adds what only the made environment can tell."""
    row = asdict(task)
    if spec is not None:
        row |= asdict(spec)
        row["name"] = task.name
    if row["gears"] is not None:
        model = cost_model(row["obs_dim"], row["act_dim"], row["gears"], PAPER_MASTER_UNITS)
        row["gear_flops"], row["gear_costs"] = list(model.gears), list(model.gear_costs)
    return row


def print_tasks(rows: Sequence[dict[str, Any]]) -> None:
    """The published tasks as one table, or as two where the terminal is narrow."""
    console = Console()
    speed = [SPEED] if "steps_per_second" in rows[0] else []
    whole = _table("", [*PRESET, *PUBLISHED, *speed], rows)
    if Measurement.get(console, console.options.update(width=1000), whole).maximum <= console.width:
        console.print(whole)
    else:
        console.print(_table("Presets", [*PRESET, *speed], rows))
        console.print(_table("Published by the paper", PUBLISHED, rows))
    console.print(LEGEND)


def print_task(row: dict[str, Any]) -> None:
    """One task, line by line."""
    card = Table("", "", box=None, show_header=False, title=row["name"], title_justify="left")
    for label, value in _lines(row):
        card.add_row(f"[bold]{label}[/]", value)
    Console().print(card)


def _lines(row: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [
        ("environment", f"{row['env_id']} of {SOURCES[row['source']]}"),
        ("observation", _observation(row)),
        ("actions", f"{row['act_dim']}"),
    ]
    if "layout" in row:
        lines.append(("time limit", f"{row['max_episode_steps'] or 'none'}"))
        lines.append(("success", "reported" if row["has_success"] else "not reported"))
    if row["gears"] is None:
        lines.append(("gears", "no preset: choose widths, for example --gears 8,64"))
    else:
        for gear, units in enumerate(row["gears"]):
            flops, ratio = row["gear_flops"][gear], row["gear_costs"][gear]
            lines.append((f"gear {gear}", f"{units} units, {flops:,} FLOPs, cost {ratio:.1f}"))
    if row["published"] is not None:
        lines += _published_lines(row)
    if "steps_per_second" in row:
        lines.append(("speed", f"{row['steps_per_second']:,.0f} steps/s"))
    return lines


def _published_lines(row: dict[str, Any]) -> list[tuple[str, str]]:
    published = row["published"]
    master = "sampled (Boltzmann)" if row["boltzmann"] else "greedy"
    return [
        ("cost coefficient", f"{row['cost_coefficient']:g}"),
        ("hindsight", "yes" if row["hindsight"] else "no"),
        ("evaluation", f"master {master}"),
        ("steps", f"{row['steps']:,}"),
        *((key.replace("_", "-"), _pair(published[key])) for key in ("small_only", "large_only", "asymmetric")),
        ("random policy", f"{published['random']:g}"),
        ("share of large", f"{published['large_share'][0]:.1%} ± {published['large_share'][1]:.1%}"),
        ("FLOPs reduction", f"{published['flops_reduction']:.1%}"),
    ]


def _observation(row: dict[str, Any]) -> str:
    fields = [f"{key} {size}" for key, size in row.get("layout", ()) if key]
    return f"{row['obs_dim']}" + (f" ({', '.join(fields)})" if fields else "")


def _pair(mean_std: Sequence[float]) -> str:
    return f"{mean_std[0]:g} ± {mean_std[1]:g}"


def _table(title: str, columns: Sequence[Column], rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title=title or None, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left")
    table.add_column("task", no_wrap=True)
    for header, _ in columns:
        table.add_column(header, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row["name"], *(cell(row) for _, cell in columns))
    return table


PRESET: list[Column] = [
    ("obs", lambda row: f"{row['obs_dim']}"),
    ("act", lambda row: f"{row['act_dim']}"),
    ("gears", lambda row: ",".join(map(str, row["gears"]))),
    ("cost\nratio", lambda row: f"{row['gear_costs'][-1]:.1f}"),
    ("cost\ncoeff.", lambda row: f"{row['cost_coefficient']:g}"),
    ("HER", lambda row: "yes" if row["hindsight"] else ""),
    ("Boltz", lambda row: "yes" if row["boltzmann"] else ""),
    ("steps", lambda row: f"{row['steps'] / 1e6:g}M"),
]
PUBLISHED: list[Column] = [
    ("small\nonly", lambda row: f"{row['published']['small_only'][0]:g}"),
    ("large\nonly", lambda row: f"{row['published']['large_only'][0]:g}"),
    ("asym-\nmetric", lambda row: f"{row['published']['asymmetric'][0]:g}"),
    ("share of\nlarge", lambda row: f"{row['published']['large_share'][0]:.1%}"),
    ("FLOPs\nreduction", lambda row: f"{row['published']['flops_reduction']:.1%}"),
]
SPEED: Column = ("steps/s", lambda row: f"{row['steps_per_second']:,.0f}")


def print_evaluation(lines: Sequence[dict[str, Any]]) -> None:
    """What controllers scored and cost, one row for each agent and setting.

    Returns are means with their 95% interval. Three gears and more show the share of each,
    two the share of the large one. FLOPs are per step, saved against the large gear.
    """
    with_success = any(line["success_rate"] is not None for line in lines)
    several = len(lines[0]["gear_share"]) > 2
    share = "gears %" if several else "large"
    heads = ["", "variant", "seed", "λ", "return", share, "period", "FLOPs", "saved"]
    table = Table(*heads, *(["success"] if with_success else []), box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns[2:]:
        column.justify = "right"
    for line in lines:
        success = [f"{line['success_rate']:.1%}"] if with_success else []
        table.add_row(
            str(line["agent"]),
            line["variant"],
            str(line["seed"]),
            f"{line['cost_coefficient']:.3g}",
            f"{line['return_mean']:.1f} ± {line['return_ci95']:.1f}",
            "/".join(f"{100 * part:.0f}" for part in line["gear_share"]) if several else f"{line['large_share']:.1%}",
            "" if line["period_mean"] is None else f"{line['period_mean']:.1f}",
            f"{line['flops_per_step']:.0f}",
            f"{line['flops_reduction']:.1%}",
            *success,
        )
    Console().print(table)


def print_tuning(lines: Sequence[dict[str, Any]]) -> None:
    """Where the dials were set, one row for each agent, or how near they came.

    `close` marks a setting whose interval does not clear the demand.
    """
    heads = ["", "seed", "λ", "score", "± 95%", "of best", "saved", "± 95%", "episodes", ""]
    table = Table(*heads, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns[1:-1]:
        column.justify = "right"
    for line in lines:
        note = "" if line["certain"] else "close"
        table.add_row(
            str(line["agent"]),
            str(line["seed"]),
            f"{line['cost_coefficient']:.3g}" if line["meets"] else "none",
            f"{line['score_mean']:.4g}",
            f"{line['score_ci95']:.2g}",
            f"{line['score_mean'] / line['best_score']:.1%}" if line["best_score"] > 0 else "",
            f"{line['flops_reduction']:.1%}",
            f"{line['flops_reduction_ci95']:.1%}",
            str(line["episodes_in_all"]),
            note if line["meets"] else "nearest",
        )
    Console().print(table)
