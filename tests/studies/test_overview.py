"""Where a study stands, and how long it may take on several machines."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.config.run import resolve
from lowgear.config.tasks import find
from lowgear.studies import overview, speeds
from lowgear.studies.child import Result
from lowgear.studies.overview import Overview, ProgramStatus
from lowgear.studies.overview_table import labels
from lowgear.studies.program import Program
from lowgear.studies.progress_file import ProgramProgress
from lowgear.studies.schedule import makespan
from lowgear.studies.speeds import Case, Speeds

RESULTS = Path(__file__).parent.parent.parent / "results"
CONFIG = resolve(find("reacher-easy"), "paper", steps=1152, gears=(2, 4))


def show(*arguments: str) -> str:
    result = CliRunner(env={"COLUMNS": "160"}).invoke(cli, ["study", "status", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def kept(tmp_path):
    """Of a study whose programs stand at all kinds of places."""
    found = Overview(tmp_path / "sizes", "sizes", slots=2)
    found.plan(ProgramStatus(name, "reacher-easy", "2,4", 3, 1152, seconds=100.0) for name in "abcde")
    programs = {name: Program(name, CONFIG, 1, 1) for name in "abcd"}
    found.on_progress(programs["a"], ProgramProgress("", 576, 10.0, None, ()))
    found.on_progress(programs["b"], ProgramProgress("", 0, None, "compiling", ()))
    found.on_end(programs["c"], Result("done"))
    found.on_end(programs["d"], Result("failed", "no motor"))
    found.on_loss(programs["b"], "killed")
    found.on_progress(programs["b"], ProgramProgress("", 0, None, "compiling", ()))
    found.begin()
    yield found
    found.end("stopped")


def test_status_shows_every_program_and_the_time_left(tmp_path, kept) -> None:
    said = show(str(tmp_path))
    for words in ("30 agent-steps/s, 58 s left", "compiling, started again 1×", "failed: no motor", "planned"):
        assert words in said
    assert "sizes: 1 planned, 2 running, 1 done, 1 failed" in said
    (found,) = json.loads(show(str(tmp_path / "sizes"), "--json"))
    assert found["seconds_left"] == pytest.approx(157.6)  # 100 s beside 57.6 and 100 s
    assert not found["dead"]
    kept.end("stopped")
    assert "; stopped" in show(str(tmp_path), "--watch")


def test_programs_that_differ_in_neither_task_nor_gears_have_their_own_names() -> None:
    tasks = {"a-1f": "walker", "b-2e": "walker", "c-3d": "reacher"}
    programs = [ProgramStatus(name, task, "2,4", 1, 10) for name, task in tasks.items()]
    assert labels(programs) == {"a-1f": "a-1f", "b-2e": "b-2e", "c-3d": "reacher"}
    programs[1].gears = "2,8"
    assert labels(programs) == tasks


def test_a_study_whose_process_is_gone_is_said_to_be(tmp_path, kept) -> None:
    kept.end("going")
    path = tmp_path / "sizes" / "status.json"
    raw = json.loads(path.read_text())
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    path.write_text(json.dumps(raw | {"pid": ended.pid}))
    assert f"process {ended.pid} on" in show(str(tmp_path), "--watch")
    path.write_text(json.dumps(raw | {"host": "elsewhere"}))
    assert "is gone" not in show(str(tmp_path))
    path.write_text(json.dumps(raw | {"host": "elsewhere", "updated": time.time() - 100}))
    assert "on elsewhere is gone" in show(str(tmp_path))


def test_a_directory_without_a_study_and_a_damaged_status_are_named(tmp_path, kept) -> None:
    kept.end("done")
    with pytest.raises(LowgearError, match="has no study"):
        overview.find(tmp_path / "none")
    path = tmp_path / "sizes" / "status.json"
    path.write_text(path.read_text().replace('"slots": 2', '"slots": -2'))
    with pytest.raises(LowgearError, match=r"status\.json is damaged \(slots is -2"):
        overview.find(tmp_path)


def test_the_longest_programs_go_first() -> None:
    assert makespan([2, 3, 7, 4, 4], 1) == 20
    assert makespan([2, 3, 7, 4, 4], 2) == 10  # 7 and 3; 4, 4 and 2
    assert makespan([2, 3, 7, 4, 4], 64) == 7
    assert makespan([2, 3, 7, 4, 4], 10**17) == 7
    assert makespan([], 3) == 0


def test_a_rate_is_that_of_the_case_most_alike() -> None:
    found = Speeds([Case("paper", 1, 50, 1000), Case("paper", 4, 600, 250), Case("modern", 4, 500, 300)])
    assert found.rate(CONFIG, 60e6) == pytest.approx(1000 * 50 / 60)
    assert found.rate(CONFIG, 500e6) == pytest.approx(250 * 600 / 500)
    with pytest.raises(LowgearError, match="is no benchmark of training"):
        speeds.read(RESULTS / "turns.json")
    assert len(speeds.read(RESULTS / "train-speed.json").cases) > 4


def test_a_dry_run_plans_for_several_machines(tmp_path) -> None:
    path = tmp_path / "speeds.json"
    case = {"recipe": "paper", "agents": 1, "update_mflop": 50.0, "agent_steps_per_s": 1000.0}
    path.write_text(json.dumps({"cases": [case]}))
    options = ["--recipe", "paper", "--dry-run", "--machines", "1,2,64", "--speeds", str(path)]
    result = CliRunner().invoke(cli, ["study", "performance", *options, "--out", str(tmp_path / "none")])
    assert result.exit_code == 0, result.output
    assert "16 of 16 runs to do, about" in result.stdout
    for words in ("on one such machine", "on 2 of them, one program at a time each", "on 64 of them"):
        assert words in " ".join(result.stdout.split())
    assert not (tmp_path / "none").exists()
