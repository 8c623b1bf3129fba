"""Run directories that are whole, damaged, or no runs at all."""

import json
import math
from pathlib import Path

import pytest

from lowgear import LowgearError
from lowgear.report.runs import read_run
from tests.fixtures.runs import evaluate, make_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return evaluate(make_run(tmp_path / "run"))


def test_a_whole_run_has_no_notices(run: Path) -> None:
    found = read_run(run)
    assert found.notices == ()
    assert len(found.policies) == 6
    assert len(found.metrics) == 24
    assert found.name == "run"


def test_other_widths_than_the_papers_have_no_figures_of_the_paper(tmp_path: Path) -> None:
    found = read_run(evaluate(make_run(tmp_path / "run", gears=(8, 32))))
    assert found.task.published is None
    assert found.notices == ("The gears are 8, 32, not the paper's 8, 64: its figures are left out.",)


def test_what_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(LowgearError, match="nowhere: no such run directory or policy file"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(LowgearError, match=r"is not a run: it has no config\.json"):
        read_run(tmp_path)


def test_half_a_line_of_metrics_is_left_out(run: Path) -> None:
    with (run / "metrics.jsonl").open("a") as file:
        file.write(
            '[]\n{"kind": "train", "steps": "many", "agent": 0, "variant": "asymmetric"}\n{"kind": "train", "ste'
        )
    found = read_run(run)
    assert len(found.metrics) == 24
    assert found.notices == ("3 lines of metrics.jsonl cannot be read and are left out.",)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"agents": 3}', '{"task": 1, "agents": []}'])
def test_a_damaged_evaluation_is_said(run: Path, text: str) -> None:
    (run / "evaluation.json").write_text(text)
    found = read_run(run)
    assert found.settings == ()
    assert "evaluation.json is damaged" in found.notices[0]
    assert f"lowgear evaluate {run} --frontier 7" in found.notices[0]


def test_damaged_rows_are_counted(run: Path) -> None:
    raw = json.loads((run / "evaluation.json").read_text())
    del raw["agents"][0]["variant"]
    raw["agents"][1]["flops_per_step"] = "many"
    (run / "evaluation.json").write_text(json.dumps(raw))
    found = read_run(run)
    assert found.evaluation.scores == 6
    assert "2 rows of evaluation.json are damaged" in found.notices[0]


@pytest.mark.parametrize("bad", [math.nan, None])
def test_scores_that_are_not_numbers_are_said(run: Path, bad: float | None) -> None:
    raw = json.loads((run / "evaluation.json").read_text())
    raw["agents"][0]["return_mean"] = bad
    (run / "evaluation.json").write_text(json.dumps(raw))
    assert "1 of 8 scores are not finite" in read_run(run).notices[0]


def test_missing_parts_are_each_said_with_a_remedy(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    (run / "metrics.jsonl").unlink()
    for path in (run / "policies").iterdir():
        path.unlink()
    notices = read_run(run).notices
    assert len(notices) == 3
    assert "no learning curves" in notices[0]
    assert f"lowgear evaluate {run}" in notices[1]
    assert f"lowgear train --resume {run}" in notices[2]


def test_one_damaged_policy_does_not_hide_the_others(run: Path) -> None:
    (run / "policies" / "agent1.safetensors").write_bytes(b"nothing")
    found = read_run(run)
    assert sorted(found.policies) == [0, 2, 3, 4, 5]
    assert "1 of 6 policies cannot be read" in found.notices[0]
