"""Programs that others carry out: what is lost is started again, what fails is told, what is killed goes on."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import find
from lowgear.studies import executors
from lowgear.studies.child import Child, Job, Result
from lowgear.studies.executors import Watcher, carry_out
from lowgear.studies.program import Program, cut_here, score, train
from lowgear.studies.progress_file import ProgramProgress, ProgressFile, read
from tests.fixtures.training import SMALL, policy_bytes, without_speed

CONFIG = resolve(find("reacher-easy"), "paper", steps=1152, gears=(2, 4))
TWO_LARGE = ["study", "two-large", "reacher-easy", "--recipe", "paper", "--steps", "2304", "--gears", "2,4"]
TWO_LARGE += ["--episodes", "1", "--seeds", "0"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch) -> None:
    monkeypatch.setattr(executors, "POLL_S", 0.0)
    monkeypatch.setattr(executors, "PROGRESS_S", 0.0)


class Script:
    """A pool whose programs go as they are told: each attempt is a list of steps, then a result."""

    def __init__(self, most: int, **attempts: list[tuple[list[int], Result]]) -> None:
        self.most, self._attempts, self.at_once, self.started = most, attempts, 0, []

    def start(self, program: Program):
        self.started.append(program.name)
        self.at_once += 1
        steps, result = self._attempts[program.name].pop(0)
        return _Scripted(self, list(steps), result)


class _Scripted:
    def __init__(self, pool: Script, steps: list[int], result: Result) -> None:
        self._pool, self._steps, self._result, self._now = pool, steps, result, None

    def poll(self) -> Result | None:
        assert self._pool.at_once <= self._pool.most
        if self._steps:
            self._now = ProgramProgress("", self._steps.pop(0), None, None, ())
            return None
        self._pool.at_once -= 1
        return self._result

    def progress(self) -> ProgramProgress | None:
        return self._now

    def stop(self) -> None:
        self._steps, self._result = [], Result("stopped")

    kill = stop


def program(name: str) -> Program:
    return Program(name, CONFIG, 1, 1)


DONE, LOST = Result("done"), Result("lost", "killed")


def test_results_come_as_programs_end_and_what_fails_is_told() -> None:
    pool = Script(2, a=[([1] * 5, DONE)], b=[([1], Result("failed", "no motor"))], c=[([1], DONE)])
    found = [(each.program.name, each.result) for each in carry_out(pool, map(program, "abc"), Watcher())]
    assert found == [("b", Result("failed", "no motor")), ("c", DONE), ("a", DONE)]


def test_what_is_lost_is_started_again_until_it_gets_nowhere() -> None:
    told: list[str] = []

    class Hear(Watcher):
        def on_loss(self, program: Program, why: str) -> None:
            told.append(f"{program.name} {why}")

    forward = [([steps, steps + 1], LOST) for steps in range(0, 20, 2)]
    pool = Script(1, a=[*forward, ([30], DONE)], b=[([7], LOST)] * 9)
    found = [each.result for each in carry_out(pool, map(program, "ab"), Hear())]
    assert found[0] == DONE
    assert found[1] == Result("failed", f"killed, {executors.LOSSES + 1} times in a row")
    assert told == ["a killed"] * len(forward) + ["b killed"] * executors.LOSSES


def test_a_watcher_can_stop_a_program() -> None:
    class Stop(Watcher):
        def on_progress(self, program: Program, progress: ProgramProgress) -> bool:
            return not (program.name == "a" and progress.steps >= 2)

    pool = Script(2, a=[([1, 2, 3, 4], DONE)], b=[([1, 2, 3, 4], DONE)])
    found = {each.program.name: each.result.kind for each in carry_out(pool, map(program, "ab"), Stop())}
    assert found == {"a": "stopped", "b": "done"}


def test_a_signal_stops_what_runs_and_starts_no_more() -> None:
    class Signal(Watcher):
        def on_progress(self, program: Program, progress: ProgramProgress) -> None:  # noqa: ARG002
            if progress.steps == 2:
                os.kill(os.getpid(), signal.SIGTERM)

    pool, found = Script(1, a=[([1, 2, 3, 4], DONE)], b=[([1], DONE)]), []
    with pytest.raises(SystemExit) as ended:
        found.extend(carry_out(pool, map(program, "ab"), Signal()))
    assert ended.value.code == 128 + signal.SIGTERM
    assert pool.started == ["a"]
    assert [each.result.kind for each in found] == ["stopped"]


def test_progress_is_of_one_attempt(tmp_path) -> None:
    file = ProgressFile(tmp_path, "first", 64)
    file.on_phase("compiling")
    file.on_evaluation([{"steps": 128, "return_mean": 4.0}, {"steps": 128, "return_mean": 6.0}])
    assert read(tmp_path, "first") == ProgramProgress("first", 64, None, "compiling", ((128, 5.0),))
    assert read(tmp_path, "second") is None
    (tmp_path / "progress.json").write_text('{"attempt": "first", "steps": -1}')
    assert read(tmp_path, "first") is None


def test_a_program_survives_the_way_to_another_process() -> None:
    whole = Program("a", CONFIG, 2, 3, ((0, None), (0, 0.5)), 7)
    assert Job.from_json(Job(whole, "/runs/a", "x", 1).to_json()).program == whole


def test_a_child_that_fails_says_why_in_a_line(tmp_path) -> None:
    config = resolve(find("gym:no_such_module:Id-v0"), "paper", steps=64, cost_coefficients=(0.1,))
    child = Child(Job(Program("a", config, 1, 1), str(tmp_path / "runs" / "a"), "x", 1))
    while (result := child.poll()) is None:
        time.sleep(0.1)
    assert result.kind == "failed"
    assert "no_such_module" in result.why
    assert "\n" not in result.why


def test_a_child_comes_to_what_this_process_does(tmp_path) -> None:
    config = resolve(find("reacher-easy"), steps=128, gears=(2, 4), overrides=SMALL, evaluate_episodes=1)
    whole = Program("run", config, 1, cut_here(1)[1], scored=((0, None), (0, 0.1)), episodes=1)
    here, there = RunDirectory(tmp_path / "here" / "run"), RunDirectory(tmp_path / "there" / "run")
    assert train(whole, here, []) is None
    score(whole, here, lambda *_: None, lambda *_: None)
    child = Child(Job(whole, str(there.path), "x", cores=1))
    while (result := child.poll()) is None:
        time.sleep(0.1)
    assert result == DONE
    assert policy_bytes(there, 1) == policy_bytes(here, 1)
    assert without_speed(there) == without_speed(here)
    assert (there.path / "scores.json").read_bytes() == (here.path / "scores.json").read_bytes()
    assert not (there.path / "progress.json").exists()


@pytest.mark.faults
def test_jobs_that_are_killed_go_on_and_come_to_what_one_process_does(tmp_path) -> None:
    """The driver is killed after a first checkpoint, and started again."""
    command = [sys.executable, "-m", "lowgear", *TWO_LARGE, "--jobs", "2", "--out", str(tmp_path / "jobs")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as first:
        try:
            until(lambda: list(tmp_path.glob("jobs/runs/*/checkpoint/latest.json")), first)
        finally:
            first.kill()
    said = CliRunner().invoke(cli, ["study", "status", str(tmp_path / "jobs")]).stdout
    assert "is gone" in said
    second = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "running from" in second.stderr
    alone = CliRunner().invoke(cli, [*TWO_LARGE, "--out", str(tmp_path / "alone")])
    assert alone.exit_code == 0, alone.output
    assert rows(tmp_path / "jobs") == rows(tmp_path / "alone")
    assert "2 done; done" in CliRunner().invoke(cli, ["study", "status", str(tmp_path / "jobs")]).stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--jobs", "0"], "--jobs 0: write 1 or more"),
        (["--storage", "/tmp"], "--storage /tmp is for --ray"),
        (["--jobs", "2", "--ray", "1.2.3.4:5"], "leave one out"),
        (["--machines", "1,8"], "--machines and --speeds are for --dry-run"),
        (["--machines", "8"], "--machines and --speeds are for --dry-run"),
        (["--dry-run", "--machines", "1,0"], "--machines 1,0: write numbers of 1 or more"),
        (["--dry-run", "--speeds", "none.json"], "none.json cannot be read"),
    ],
)
def test_what_cannot_be_carried_out_is_named(tmp_path, options, message) -> None:
    result = CliRunner().invoke(cli, ["study", "sizes", "reacher-easy", *options, "--out", str(tmp_path / "none")])
    assert isinstance(result.exception, LowgearError)
    assert message in str(result.exception)
    assert not (tmp_path / "none").exists()


def test_without_ray_it_says_how_to_install_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    result = CliRunner().invoke(cli, [*TWO_LARGE, "--ray", "--out", str(tmp_path / "none")])
    assert "pip install 'lowgear[ray]'" in str(result.exception)
    assert not (tmp_path / "none").exists()


def until(found, process: subprocess.Popen) -> None:
    limit = time.monotonic() + 300
    while not found():
        assert process.poll() is None, "it ended before"
        assert time.monotonic() < limit
        time.sleep(0.02)


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "two-large" / "table.csv").open() as file:
        return list(csv.DictReader(file))
