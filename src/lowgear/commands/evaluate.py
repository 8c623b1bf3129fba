"""`lowgear evaluate`: what a run's controllers score and cost."""

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from lowgear import LowgearError
from lowgear.commands import lists
from lowgear.commands.options import env_timeout_option, json_option, list_option, seed_option, trust_option
from lowgear.commands.output import progress_bar
from lowgear.commands.runs import open_runs, several_argument, show_each, tell_trackers

if TYPE_CHECKING:
    from lowgear.config.run_directory import RunDirectory
    from lowgear.policy.file import Policy


@click.command()
@several_argument
@click.option("--episodes", default=200, show_default=True, help="Episodes of each agent.")
@click.option(
    "--master",
    type=click.Choice(["greedy", "boltzmann"]),
    help="How the master picks: its best value, or softmax of its values.  [default: greedy; of the paper's "
    "recipe softmax, on the tasks where the paper samples]",
)
@list_option(
    "--cost-coefficients",
    lists.numbers,
    "Settings of the dial, 0.001,0.01,0.1: every dial agent plays at each.  [default: the policy's own]",
)
@click.option(
    "--frontier",
    type=int,
    metavar="N",
    help="N settings in even steps of the dial instead, both ends among them, and the policy's own.",
)
@click.option("--best", is_flag=True, help="The policies that scored best while training, not the last ones.")
@seed_option("--seed", 0, "Of the episodes' starts.")
@click.option("--replace", is_flag=True, help="Put this in the place of an evaluation.json that holds more.")
@env_timeout_option
@trust_option
@json_option
def evaluate(
    directories: tuple[Path, ...], best: bool, replace: bool, trust: bool, as_json: bool, **options: Any
) -> None:
    """Score the controllers of each DIR, a run directory or a policy file, over many episodes at once.

    Prints the cost coefficient λ and the same measured against the task's rewards (rel.), return (mean, 95% interval),
    share of the large gear, or of each where there are three or more, FLOPs per step and the reduction against the
    large gear alone, for every agent, and keeps it in evaluation.json (of NAME.safetensors, in NAME-evaluation.json
    beside it); an agent whose environment fails is listed there as missing. An evaluation of more settings, or of the
    same with more episodes, stays there unless you --replace it. With several settings of the dial it also draws
    return against FLOPs, with the run's small-only, large-only and fixed-cost agents beside it: frontier.svg and
    frontier.png. Table and picture also go where the run is tracked.

    \b
      lowgear evaluate runs/walker-stand-modern-20261115-081500 --episodes 50
      lowgear evaluate runs/walker-stand-modern-20261115-081500 --frontier 7
      lowgear evaluate runs/walker-stand-*                     one run after another
      lowgear evaluate walker.safetensors
    """
    from lowgear.commands import tables
    from lowgear.evaluation.asked import chosen_settings
    from lowgear.policy.gears import read_gear

    if options["episodes"] < 1:
        raise LowgearError(f"--episodes {options['episodes']}: write 1 or more")
    runs = open_runs(directories, trust)
    policies = {path: run.load_policies(best) for path, run in runs.items()}
    asked = options["cost_coefficients"], options["frontier"]
    chosen = {path: chosen_settings(policies[path], *asked) for path in runs}
    show_each(
        runs,
        lambda run: _evaluate(run, chosen[run.path], options),
        as_json,
        lambda _, report: tables.print_evaluation(
            report["agents"], [read_gear(gear) for gear in report.get("gears", ())]
        ),
        lambda run, report: _keep(run, report, policies[run.path], replace),
    )


def _keep(run: "RunDirectory", report: dict[str, Any], policies: "list[Policy]", replace: bool) -> None:
    """Write evaluation.json, and the frontier's picture, unless what stands there holds more."""
    from lowgear.policy.files import write_whole

    new, before = _Extent.of(report), None if replace else _before(run)
    if before is not None and before.holds_more(new):
        click.echo(
            f"{run.evaluation} is kept: it has {before}, this has {new}; --replace puts this in its place", err=True
        )
        return
    write_whole(run.evaluation, json.dumps(report, indent=2).encode())
    drawn = _draw_frontier(report, run.beside("frontier"), policies) if new.settings > 1 else []
    if run.config.is_file():  # a policy file has no trackers
        tell_trackers(run, report["agents"], drawn)


class _Extent(NamedTuple):
    """How much an evaluation holds."""

    steps: int  # of the policies
    episodes: int
    rows: tuple[tuple[int, str], ...]  # agents, and the coefficients they were played at

    @classmethod
    def of(cls, report: dict[str, Any]) -> "_Extent":
        """An evaluation's."""
        rows = tuple((row["agent"], f"{row['cost_coefficient']:.5g}") for row in report["agents"])
        return cls(report["steps"], report["episodes"], rows)

    @property
    def settings(self) -> int:
        """Of the dial, at which an agent was played."""
        return max(Counter(agent for agent, _ in self.rows).values())

    def holds_more(self, other: "_Extent") -> bool:
        """Whether it has more settings, or all of the other's and more agents or episodes, of policies no younger."""
        covers = set(other.rows) <= set(self.rows) and self.episodes >= other.episodes
        beyond = (self.episodes, len(self.rows)) != (other.episodes, len(other.rows))
        return (self.settings > other.settings or (covers and beyond)) and self.steps >= other.steps

    def __str__(self) -> str:
        from lowgear.report.text import count

        return f"{count(self.settings, 'setting')} of {count(self.episodes, 'episode')}"


def _before(run: "RunDirectory") -> _Extent | None:
    """What the evaluation that is there holds; None where there is none to keep."""
    from lowgear.evaluation.results import read_evaluation

    found = read_evaluation(run, run.read_config(), notices=[])
    return _Extent.of(found) if found["agents"] else None


def _evaluate(run: "RunDirectory", numbered: "list[tuple[int, Policy]]", options: dict[str, Any]) -> dict[str, Any]:
    from lowgear.envs import make_env
    from lowgear.evaluation.summary import evaluation_report

    config, episodes = run.read_config(), options["episodes"]
    make, master = partial(make_env, config), options["master"] or config.master
    with progress_bar("episodes", episodes * len(numbered)) as update:
        report = evaluation_report(
            numbered, make, episodes, master, options["seed"], lambda count: update(advance=count)
        )
    for row in report.get("missing", ()):
        click.echo(f"agent {row['agent']} at λ {row['cost_coefficient']:.4g} is missing: {row['why']}", err=True)
    return report


def _draw_frontier(report: dict[str, Any], place: Path, policies: "list[Policy]") -> list[Path]:
    """Return against FLOPs as a picture, where the extra for pictures is installed."""
    try:
        from lowgear.report.frontier import draw
    except ImportError:
        click.echo("for a picture of the frontier: pip install 'lowgear[report]'", err=True)
        return []
    drawn = draw(report, place.parent, policies, place.name)
    for path in drawn:
        click.echo(str(path), err=True)
    return drawn
