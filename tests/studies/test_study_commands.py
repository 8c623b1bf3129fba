"""Each study from nothing to table, on small networks."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.baselines.demonstrations import load
from lowgear.commands.cli import cli
from lowgear.policy import cost
from lowgear.studies import distillation, sizes, sweeps

SMALL = ["--recipe", "paper", "--steps", "1152", "--gears", "2,4", "--episodes", "2", "--seeds", "0"]


def study(studies, *arguments, options=SMALL):
    result = CliRunner().invoke(cli, ["study", *arguments, *options, "--out", str(studies)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def rows(studies, name):
    with (studies / name / "table.csv").open() as file:
        return list(csv.DictReader(file))


def runs(studies):
    return {path.name for path in (studies / "runs").iterdir()} if (studies / "runs").exists() else set()


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Where the tests' studies share their runs."""
    return tmp_path_factory.mktemp("studies")


@pytest.fixture(scope="module")
def performance(studies):
    return study(studies, "performance", "reacher-easy")


def test_performance(studies, performance) -> None:
    found = rows(studies, "performance")
    assert [row["agents"] for row in found] == ["small-only", "large-only", "asymmetric"]
    assert [float(row["large_share"]) for row in found][:2] == [0, 1]
    assert float(found[2]["paper_score"]) == 689.7
    assert float(found[2]["paper_best"]) == 931.7
    assert all(row["seeds"] == "1" and row["steps"] == "1152" for row in found)
    assert len([name for name in runs(studies) if name.startswith("reacher-easy-paper-2-4")]) == 1  # one population
    whole = json.loads((studies / "performance" / "study.json").read_text())
    assert whole["lines"][2]["seeds"][0]["score"] == pytest.approx(float(found[2]["score_mean"]))
    assert whole["provenance"]["versions"]["jax"]
    for name in ("table.md", "table.tex"):
        text = (studies / "performance" / name).read_text()
        assert "separate" not in text
        assert "large-only" in text
        assert "689.7" in text
    assert "small-only" in performance.stdout


def test_a_second_call_trains_and_evaluates_nothing(studies, performance, monkeypatch) -> None:
    monkeypatch.setattr("lowgear.studies.program.Training", None)
    monkeypatch.setattr("lowgear.evaluation.evaluate.play_policies", None)
    again = study(studies, "performance", "reacher-easy")
    assert again.stdout == performance.stdout
    assert "0 of 1 runs to do" in again.stderr


def test_more_episodes_are_played_without_training(studies, performance, monkeypatch) -> None:
    monkeypatch.setattr("lowgear.studies.program.Training", None)
    other = [*SMALL[:-4], "--episodes", "3", "--seeds", "0"]
    more = study(studies, "performance", "reacher-easy", options=other)
    assert more.stdout != performance.stdout


def test_a_run_that_fails_is_left_out_and_the_others_go_on(studies, performance) -> None:  # noqa: ARG001
    task = "gym:tests.fixtures.faulty:FaultyRaise-v0"
    options = [*SMALL, "--cost-coefficients", "0.002", "--out", str(studies)]
    result = CliRunner().invoke(cli, ["study", "performance", task, "reacher-easy", *options])
    assert isinstance(result.exception, LowgearError)
    assert "the table is without 1 that failed" in str(result.exception)
    found = rows(studies, "performance")
    assert [row["task"] for row in found] == ["reacher-easy"] * 3
    (remark,) = json.loads((studies / "performance" / "study.json").read_text())["remarks"]
    for words in ("Left out: ", "agent 2 stopped at", "raised RuntimeError at step 90: motor is unplugged", "seed "):
        assert words in remark
    assert "motor is unplugged" in result.stdout


@pytest.mark.parametrize(
    ("name", "labels", "new"),
    [
        pytest.param("cost-term", ["asymmetric", "no-cost"], 1, marks=pytest.mark.slow),
        pytest.param("shared-buffer", ["asymmetric", "separate-buffers"], 1, marks=pytest.mark.slow),
        ("two-large", ["large-only", "asymmetric", "two-large"], 1),
    ],
)
def test_ablations_train_only_what_performance_did_not(studies, performance, name, labels, new) -> None:  # noqa: ARG001
    before = runs(studies)
    study(studies, name, "reacher-easy")
    assert [row["agents"] for row in rows(studies, name)] == labels
    added = runs(studies) - before
    assert len(added) == new
    config = json.loads((studies / "runs" / added.pop() / "config.json").read_text())
    assert len(config["agents"]) == 1
    assert config["gears"] == ([4, 4] if name == "two-large" else [2, 4])


def test_cost_coefficients_without_a_dial_are_agents_of_one_population(studies, performance, monkeypatch) -> None:  # noqa: ARG001
    monkeypatch.setattr(sweeps, "COEFFICIENTS", (0.1, 1.0, 10.0))
    before = runs(studies)
    study(studies, "cost-coefficient", "reacher-easy")
    found = rows(studies, "cost-coefficient")
    assert [row["agents"] for row in found] == ["λ 0.0002", "λ 0.002", "λ 0.02"]
    (added,) = runs(studies) - before
    config = json.loads((studies / "runs" / added / "config.json").read_text())
    assert [agent["cost_coefficient"] for agent in config["agents"]] == pytest.approx([0.0002, 0.02])


def test_cost_coefficients_of_a_dial_are_settings_of_the_same_agents(studies, monkeypatch) -> None:
    """Relative ones, so that they are the same for seeds whose rewards were of another scale."""
    monkeypatch.setattr(sweeps, "RELATIVE", (0.03, 3.0))
    options = ["--recipe", "modern", "--steps", "128", "--gears", "2,4", "--episodes", "2", "--seeds", "0-1"]
    before = runs(studies)
    study(studies, "cost-coefficient", "reacher-easy", options=options)
    found = rows(studies, "cost-coefficient")
    assert [row["seeds"] for row in found] == ["2", "2"]
    assert [row["agents"] for row in found] == ["relative λ 0.03", "relative λ 3"]
    assert "relative cost coefficient λ" in (studies / "cost-coefficient" / "sweep-reacher-easy.svg").read_text()
    assert len(runs(studies) - before) == 1


def test_period(studies, performance, monkeypatch) -> None:  # noqa: ARG001
    monkeypatch.setattr(sweeps, "PERIODS", (1, 5))
    before = runs(studies)
    study(studies, "period", "reacher-easy")
    assert [row["agents"] for row in rows(studies, "period")] == ["period 1", "period 5"]
    assert (studies / "period" / "sweep-reacher-easy.png").stat().st_size > 10_000
    assert "period: steps that a pick holds" in (studies / "period" / "sweep-reacher-easy.svg").read_text()
    assert len(runs(studies) - before) == 1  # 5 is the recipe's own


@pytest.mark.slow
def test_sizes_prints_its_reasoning(studies, monkeypatch) -> None:
    monkeypatch.setattr(sizes, "CANDIDATES", (2, 8))
    monkeypatch.setattr(sizes, "CRITERION", 12)
    result = study(studies, "sizes", "reacher-easy")
    assert [row["agents"] for row in rows(studies, "sizes")] == ["2 units", "8 units", "12 units"]
    assert "the criterion, 12 units, scores" in result.stdout
    page = (studies / "sizes" / "table.md").read_text()
    assert "the criterion" in page
    assert "| saved |" not in page


@pytest.mark.slow
def test_distillation_teaches_students_of_the_width_that_asymmetric_agents_pay_for(studies, performance) -> None:  # noqa: ARG001
    study(studies, "distillation", "reacher-easy")
    found = rows(studies, "distillation")
    asymmetric, fit = found[1], found[2]
    units = cost.units_for(6, 2, float(asymmetric["flops_per_step"]))
    assert [row["agents"] for row in found] == [
        "large-only",
        "asymmetric",
        f"fit, {units} units",
        "bc",
        "dagger",
        "gail",
    ]
    assert {row["flops_per_step"] for row in found[2:]} == {str(float(cost.policy_flops(6, 2, units)))}
    large = float(found[0]["flops_per_step"])
    assert float(fit["flops_reduction"]) == pytest.approx(1 - float(fit["flops_per_step"]) / large)
    assert float(found[3]["flops_reduction"]) == pytest.approx(float(fit["flops_reduction"]))
    assert [row["steps"] for row in found[3:]] == ["1250", "1250", "2048"]  # pairs, labels, GAIL's own steps


@pytest.mark.slow
def test_students_are_taught_once(studies, performance, monkeypatch) -> None:  # noqa: ARG001
    first = study(studies, "distillation", "reacher-easy")
    for name in ("clone", "dagger", "gail"):
        monkeypatch.setattr(f"lowgear.studies.imitation.{name}.fit", None)
    assert study(studies, "distillation", "reacher-easy").stdout == first.stdout


def test_expert_data(studies, performance, monkeypatch) -> None:  # noqa: ARG001
    monkeypatch.setattr(distillation, "EPISODES", (2,))
    monkeypatch.setattr(distillation, "METHODS", ("bc", "gail"))
    study(studies, "expert-data", "reacher-easy")
    found = rows(studies, "expert-data")
    assert [row["agents"] for row in found][2:] == ["bc, 2 episodes", "gail, 2 episodes"]
    assert [row["steps"] for row in found][2:] == ["2000", "2048"]
    shown = list((studies / "students").glob("*/demonstrations.safetensors"))
    assert {load(path).trajectories for path in shown} >= {2}


def test_a_dry_run_leaves_nothing_behind(tmp_path) -> None:
    result = study(tmp_path / "none", "performance", "reacher-easy", "cartpole-swingup", "--dry-run")
    assert not (tmp_path / "none").exists()
    assert "2 of 2 runs to do, about" in result.stdout
    assert "1,152" in result.stdout
    assert result.stderr == ""


@pytest.mark.slow
def test_a_killed_study_goes_on(tmp_path) -> None:
    arguments = ["study", "performance", "reacher-easy", "--recipe", "paper", "--steps", "2304", "--gears", "2,4"]
    command = [sys.executable, "-m", "lowgear", *arguments, "--episodes", "1", "--seeds", "0", "--out", str(tmp_path)]
    first = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + 120
        while not list(tmp_path.glob("runs/*/checkpoint/latest.json")):
            assert first.poll() is None, "ended before its first checkpoint"
            assert time.monotonic() < limit
            time.sleep(0.05)
    finally:
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
    assert not (tmp_path / "performance" / "table.md").exists()
    second = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "going on from" in second.stderr
    assert len(rows(tmp_path, "performance")) == 3
    assert len(list(tmp_path.glob("runs/*"))) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["perfomance"], "unknown study 'perfomance': choose from performance"),
        (["performance", "reacher-eazy"], "did you mean reacher-easy"),
        (["performance", "reacher-easy", "--episodes", "0"], "--episodes 0: write 1 or more"),
        (["performance", "gym:Pendulum-v1", "--recipe", "paper", "--dry-run"], "needs: give --cost-coefficients"),
        (["performance", "reacher-easy", "--recipe", "old"], "unknown recipe 'old'"),
        (["performance", "reacher-easy", "--set", "bach=8"], "did you mean batch"),
    ],
)
def test_what_cannot_be_studied_is_named_and_leaves_nothing(tmp_path, arguments, message) -> None:
    result = CliRunner().invoke(cli, ["study", *arguments, "--out", str(tmp_path / "none")])
    assert isinstance(result.exception, LowgearError)
    assert message in str(result.exception)
    assert not (tmp_path / "none").exists()


def test_damaged_scores_are_named(studies, performance) -> None:  # noqa: ARG001
    (path,) = [p for p in studies.glob("runs/reacher-easy-paper-2-4-*/scores.json") if "agent 2" in p.read_text()]
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    try:
        with pytest.raises(LowgearError, match=r"scores\.json is damaged"):
            study(studies, "performance", "reacher-easy")
    finally:
        path.write_text(text)
