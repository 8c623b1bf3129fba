"""How tasks and scores look: rows for `--json`, rich tables, a rich card of one task."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lowgear.config.gears import GivenGear, arrange
from lowgear.config.tasks import SOURCES, Task
from lowgear.evaluation.numbers import score, score_pair
from lowgear.policy.cost import cost_model
from lowgear.policy.gears import Gear, read_gear
from lowgear.report.terminal import natural_width, print_table, print_text

if TYPE_CHECKING:  # its module loads NumPy, which a table of names can do without
    from lowgear.envs.protocol import EnvSpec

LEGEND = (
    "HER: hindsight replay. Boltz: the paper samples the master when it evaluates this task, and so does its recipe. "
    "Scores and shares are means of five seeds, Fetch scores success rates. The reductions of MountainCar, Swimmer, "
    "Ant, PickAndPlace, walker and finger are those of the best seed. `lowgear tasks NAME` shows one task; any other "
    "environment is gym:ID, dmc:domain-task, envpool:ID, or module:Class in Python."
)

Row = dict[str, Any]
Column = tuple[str, Callable[[Row], str]]


def task_row(task: Task, spec: "EnvSpec | None" = None, gears: Sequence[GivenGear] | None = None) -> Row:
    """Everything known about a task, ready for JSON; `spec` adds what only the made environment can tell.

    `gears` are priced in the place of the preset.
    """
    row = asdict(task)
    if spec is not None:
        row |= asdict(spec)
        row["name"] = task.name
    if gears is not None or task.gears is not None:
        priced, _ = arrange(gears or task.gears or (), replace(task, obs_dim=row["obs_dim"], act_dim=row["act_dim"]))
        row["gears"] = [gear.to_json() for gear in priced]
        model = cost_model(row["obs_dim"], row["act_dim"], priced, master_units=1)  # gears alone are shown
        row["gear_flops"], row["gear_costs"] = list(model.gear_flops), list(model.gear_costs)
    return row


def print_tasks(rows: Sequence[Row]) -> None:
    """The published tasks as one table, or as two where the terminal is narrow."""
    console = Console()
    speed = [SPEED] if "steps_per_second" in rows[0] else []
    whole = _table([NAME, *PRESET, *PUBLISHED, *speed], rows)
    halves = [
        _table([NAME, *PRESET, *speed], rows, title="Presets"),
        _table([NAME, *PUBLISHED], rows, title="Published by the paper"),
    ]
    fit = natural_width(whole, console) <= console.width
    for table in halves if not fit and all(natural_width(t, console) <= console.width for t in halves) else [whole]:
        print_table(table, console)
    print_text(LEGEND, console)


def print_task(row: Row) -> None:
    """One task, line by line."""
    card = Table("", "", box=None, show_header=False, title=escape(row["name"]), title_justify="left")
    for label, value in _lines(row):
        card.add_row(f"[bold]{escape(label)}[/]", escape(value))
    Console().print(card)


def _lines(row: Row) -> list[tuple[str, str]]:
    lines = [
        ("environment", f"{row['env_id']} of {SOURCES[row['source']]}"),
        ("observation", _observation(row)),
        ("actions", _named(row["act_dim"], row.get("action_names", ()))),
    ]
    if "layout" in row:
        lines.append(("time limit", f"{row['max_episode_steps'] or 'none'}"))
        told = row["has_success"] or ("rewards" in row and row["rewards"]["success_rate"] is not None)
        lines.append(("success", "reported" if told else "not reported"))
    if row["gears"] is None:
        lines.append(("gears", "no preset: 16 and 128 units, or choose widths, for example --gears 8,64"))
    else:
        for number, gear in enumerate(map(read_gear, row["gears"])):
            flops, ratio = row["gear_flops"][number], row["gear_costs"][number]
            lines.append((f"gear {number}", f"{gear.description}, {flops:,} FLOPs, cost {ratio:.1f}"))
    if row["published"] is not None:
        lines += _published_lines(row)
    if "rewards" in row:
        lines += _reward_lines(row["rewards"])
    if "steps_per_second" in row:
        lines.append(("speed", f"{row['steps_per_second']:,.0f} steps/s"))
    return lines


def _published_lines(row: Row) -> list[tuple[str, str]]:
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


def _reward_lines(rewards: Row) -> list[tuple[str, str]]:
    """What random actions earn: the scale that returns and cost coefficients are to be read against."""
    low, high, mean = (f"{rewards[f'reward_{name}']:.3g}" for name in ("low", "high", "mean"))
    lines = [("rewards", f"{low} to {high} a step with random actions, {mean} on average")]
    if rewards["episodes"]:
        returns = f"{rewards['return_mean']:.4g} ± {rewards['return_std']:.2g}"
        lines.append(
            ("random return", f"{returns} in {rewards['length_mean']:.0f} steps, {rewards['episodes']} episodes")
        )
    else:
        lines.append(("random return", f"no episode ended within {rewards['steps']:,} steps"))
    return lines


def _named(size: int, names: Sequence[str]) -> str:
    return f"{size} ({', '.join(names)})" if names else f"{size}"


def _observation(row: Row) -> str:
    if row.get("observation_names"):
        return _named(row["obs_dim"], row["observation_names"])
    fields = [f"{key} {size}" for key, size in row.get("layout", ()) if key]
    return f"{row['obs_dim']}" + (f" ({', '.join(fields)})" if fields else "")


def _relative(row: Row) -> str:
    """The cost coefficient measured against the task's rewards."""
    return "" if row["relative_coefficient"] is None else f"{row['relative_coefficient']:.2g}"


def _return(row: Row) -> str:
    """Mean and 95% interval; the mean alone where one episode leaves no interval."""
    mean, half = row["return_mean"], row["return_ci95"]
    return score_pair(mean, half) if half else score(mean)


def _without_relative(columns: list[Column], rows: Sequence[Row]) -> list[Column]:
    """The columns less that one, where no coefficient was measured against rewards."""
    known = any(row["relative_coefficient"] is not None for row in rows)
    return [column for column in columns if known or column[0] != RELATIVE]


def _pair(mean_std: Sequence[float]) -> str:
    return f"{mean_std[0]:g} ± {mean_std[1]:g}"


def _table(columns: Sequence[Column], rows: Sequence[Row], left: Sequence[str] = ("task",), title: str = "") -> Table:
    """Columns under the heads in `left` are set to the left."""
    table = Table(title=title or None, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left")
    for head, _ in columns:
        table.add_column(head, justify="left" if head in left else "right", no_wrap="task" in left)
    for row in rows:
        table.add_row(*(escape(cell(row)) for _, cell in columns))
    return table


RELATIVE = "rel."  # head of the column of relative coefficients
NAME: Column = ("task", lambda row: row["name"])
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


def print_evaluation(rows: Sequence[Row], gears: Sequence[Gear] = ()) -> None:
    """What controllers scored and cost, one row for each agent and setting.

    λ is the cost coefficient in the task's rewards, rel. the same measured against them. Returns are means with their
    95% interval. Three gears and more show the share of each, two the share of the large one; the head names `gears`
    that are not all plain networks. FLOPs are per step, saved against the large gear.
    """
    named = not all(gear.is_plain for gear in gears)
    several = len(rows[0]["gear_share"]) > 2 or (named and len(gears) > 1)
    columns: list[Column] = [
        ("", lambda row: str(row["agent"])),
        ("variant", lambda row: row["variant"]),
        ("seed", lambda row: str(row["seed"])),
        ("λ", lambda row: f"{row['cost_coefficient']:.2g}"),
        (RELATIVE, _relative),
        ("return", _return),
        (
            "/".join(map(str, gears)) + " %" if named else "gears %",
            lambda row: "/".join(f"{100 * share:.0f}" for share in row["gear_share"]),
        )
        if several
        else ("large", lambda row: f"{row['large_share']:.1%}"),
        ("period", lambda row: "" if row["period_mean"] is None else f"{row['period_mean']:.1f}"),
        ("FLOPs", lambda row: f"{row['flops_per_step']:.0f}"),
        ("saved", lambda row: f"{row['flops_reduction']:.1%}"),
    ]
    columns = _without_relative(columns, rows)
    if any(row["success_rate"] is not None for row in rows):
        columns.append(("success", lambda row: "" if row["success_rate"] is None else f"{row['success_rate']:.1%}"))
    print_table(_table(columns, rows, left=("", "variant")), row="agent")


def print_tuning(rows: Sequence[Row]) -> None:
    """Where the dials were set, one row for each agent, or how near they came.

    `close` marks a setting whose interval does not clear the demand, `nearest` one that does not meet it.
    """
    columns: list[Column] = [
        ("", lambda row: str(row["agent"])),
        ("seed", lambda row: str(row["seed"])),
        ("λ", lambda row: f"{row['cost_coefficient']:.2g}" if row["meets"] else "none"),
        (RELATIVE, lambda row: _relative(row) if row["meets"] else ""),
        ("score", lambda row: score_pair(row["score_mean"], row["score_ci95"])),
        ("of best", lambda row: f"{row['score_mean'] / row['best_score']:.1%}" if row["best_score"] > 0 else ""),
        ("saved", lambda row: f"{row['flops_reduction']:.1%} ± {row['flops_reduction_ci95']:.1%}"),
        ("played", lambda row: str(row["episodes_in_all"])),
        ("", lambda row: "nearest" if not row["meets"] else "" if row["certain"] else "close"),
    ]
    print_table(_table(_without_relative(columns, rows), rows, left=("",)), row="agent")
