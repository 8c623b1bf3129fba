"""Which agent stands for a run."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lowgear.commands.export import export
from lowgear.config.run_directory import RunDirectory
from lowgear.evaluation.main_agent import choose, of_run
from lowgear.report.own import score_own
from lowgear.report.runs import read_run
from lowgear.report.selection import select
from tests.fixtures.runs import evaluate, make_run, row

VARIANTS = {0: "small-only", 1: "asymmetric", 2: "asymmetric", 3: "no-cost", 4: "large-only"}


def test_the_best_asymmetric_agent_by_what_is_known() -> None:
    scored = [row(4, "large-only", 0.0, 99.0, 1.0), row(1, "asymmetric", 0.1, 9.0, 0.2)]
    scored += [row(2, "asymmetric", at, score, 0.2) for at, score in ((0.1, 2.0), (0.2, 30.0))]
    lines = [{"steps": 10, "agent": agent, "return_mean": 5.0 - agent} for agent in VARIANTS]
    lines += [{"steps": 5, "agent": 2, "return_mean": 1e9}, {"steps": 20, "agent": 2, "kind": "train"}]
    assert choose(VARIANTS, scored, lines) == (2, "the best asymmetric agent by evaluation.json")
    assert choose(VARIANTS, [], lines) == (1, "the best asymmetric agent by training")
    assert choose(VARIANTS, [], []) == (1, "the first asymmetric agent, for nothing was evaluated")


@pytest.mark.parametrize(
    ("agents", "expected"),
    [
        ((0, 2, 4), (2, "the only asymmetric agent")),
        ((0, 3, 4), (3, "the only agent that shifts")),
        ((0, 4), (4, "the best agent by evaluation.json")),
        ((), (0, "the first")),
    ],
)
def test_what_stands_for_runs_of_other_agents(agents: tuple[int, ...], expected: tuple[int, str]) -> None:
    scored = [row(4, "large-only", 0.0, 99.0, 1.0), row(0, "small-only", 0.0, 9.0, 0.0)]
    assert choose({agent: VARIANTS[agent] for agent in agents}, scored, []) == expected


def test_the_page_plays_what_export_takes_and_export_says_so(tmp_path: Path) -> None:
    """Also where the page has scores of the policies' own settings that the evaluation has not."""
    path = evaluate(make_run(tmp_path / "run", variants=("asymmetric", "large-only"), seeds=(0, 1)))
    raw = json.loads((path / "evaluation.json").read_text())
    raw |= {"episodes": 2, "agents": [one for one in raw["agents"] if one["variant"] == "asymmetric"]}
    (path / "evaluation.json").write_text(json.dumps(raw))
    directory = RunDirectory(path)
    assert of_run(directory, directory.read_config()) == (1, "the best asymmetric agent by evaluation.json")
    assert {one.agent for one in select(score_own(read_run(path))) if one.main} == {1}
    done = CliRunner().invoke(export, [str(path), "--format", "numpy"], catch_exceptions=False)
    assert "agent 1, asymmetric" in done.stdout
    assert "agent 1 of 0 to 3: the best asymmetric agent by evaluation.json; --agent K names another" in done.stderr
    done = CliRunner().invoke(export, [str(path), "--format", "numpy", "--agent", "0", "--json"])
    assert json.loads(done.stdout)["agent"] == 0
    assert "names another" not in done.stderr
