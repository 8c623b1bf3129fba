"""What MLflow's, W&B's and TensorBoard's readers find of programs of other processes (`make test-trackers`)."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lowgear.config.run_directory import RunDirectory
from tests.conftest import COMPILE_QUICKLY
from tests.fixtures.tracker_stores import MlflowStore, expect_all, no_accounts, written_offline

pytestmark = [pytest.mark.trackers, pytest.mark.filterwarnings("default")]  # their warnings are not ours
LOWGEAR = [sys.executable, "-m", "lowgear"]
SIZES = ["--gears", "2,4", "--critic-units", "4", "--set", "batch=16", "--set", "random_steps=64"]
LIMIT_S = 600


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", COMPILE_QUICKLY)
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")
    monkeypatch.delenv("WANDB_SERVICE", raising=False)  # of this process, if wandb was used in it: a shell has none
    with no_accounts(tmp_path / "home"):
        yield


def test_a_spread_run_that_is_killed_is_one_run_with_every_line(tmp_path):
    from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

    directory = RunDirectory(tmp_path / "run")
    train = [*LOWGEAR, "train", "reacher-easy", *SIZES, "--steps", "10000", "--evaluate-every", "4000"]
    train += ["--evaluate-episodes", "1", "--checkpoint-every", "1000", "--seeds", "0-2", "--jobs", "2"]
    train += ["--track", "tensorboard,wandb,mlflow", "--out", str(directory.path)]
    with subprocess.Popen(train, stderr=subprocess.PIPE, text=True) as driver:
        _until(lambda: _steps(directory.path, 0) >= 2000, driver)
        driver.kill()
    logged_then = max(_steps(directory.path, shard) for shard in (0, 1))
    began = json.loads((directory.path / "tracking.json").read_text())
    resume = [*LOWGEAR, "train", "--resume", str(directory.path), "--jobs", "2"]
    ended = subprocess.run(resume, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "misses" not in ended.stderr
    store = MlflowStore(tmp_path)
    ids = expect_all(store, directory, agents=3, once=False)
    assert began["mlflow"].items() <= ids.items()
    assert (set(store.runs), store.statuses) == (set(ids.values()), {"FINISHED"})
    described, rows, artifacts = written_offline(tmp_path)
    of_wandb = json.loads((directory.path / "tracking.json").read_text())["wandb"]
    assert set(described) == set(of_wandb.values())
    for agent in range(3):
        logged = {row["train/steps"] for row in rows[of_wandb[str(agent)]] if "train/steps" in row}
        wanted = set(store.steps(ids[str(agent)], "train/steps_per_second"))
        assert logged <= wanted
        assert {steps for steps in wanted if steps > logged_then} <= logged  # wandb keeps some to itself for a while
    assert {one.name for one in artifacts if one.type == "model"} >= {f"run-agent{agent}" for agent in range(3)}
    found = EventMultiplexer().AddRunsFromDirectory(str(directory.path / "tensorboard"))
    found.Reload()
    names = [f"agent{agent}-asymmetric-seed{agent}-relative2" for agent in range(3)]
    assert sorted(found.Runs()) == [*names, "population"]
    for agent, name in enumerate(names):
        steps = [event.step for event in found.Scalars(name, "train/steps_per_second")]
        assert sorted(set(steps)) == store.steps(ids[str(agent)], "train/steps_per_second")


def test_two_programs_at_once_share_a_store(tmp_path):
    study = [*LOWGEAR, "study", "two-large", "reacher-easy", "--recipe", "paper", "--steps", "2304", "--gears", "2,4"]
    study += ["--episodes", "1", "--seeds", "0-1", "--population", "2", "--jobs", "2", "--track", "mlflow,wandb"]
    ended = subprocess.run([*study, "--out", tmp_path], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "misses" not in ended.stderr
    assert ended.stderr.count("mlflow ui") == 1  # and not for each program
    store, runs = MlflowStore(tmp_path / "runs"), sorted((tmp_path / "runs").glob("*/config.json"))
    assert len(runs) >= 2
    described, _, _ = written_offline(tmp_path / "runs")
    for path in runs:
        directory = RunDirectory(path.parent)
        agents = len(directory.read_config().agents)
        ids = expect_all(store, directory, agents)
        assert store.runs[ids["population"]].info.run_name == directory.path.name
        of_wandb = json.loads((directory.path / "tracking.json").read_text())["wandb"]
        assert {described[one].run_group for one in of_wandb.values()} == {directory.path.name}
    assert store.statuses == {"FINISHED"}


def test_ctrl_c_says_stopped(tmp_path):
    train = [*LOWGEAR, "train", "reacher-easy", *SIZES, "--steps", "2000000", "--evaluate-every", "0"]
    train += ["--seeds", "0-1", "--jobs", "2", "--track", "mlflow", "--out", str(tmp_path / "run")]
    with subprocess.Popen(train, stderr=subprocess.PIPE, text=True) as driver:
        _until(lambda: _steps(tmp_path / "run", 0) >= 2000, driver)
        driver.send_signal(signal.SIGINT)
        _, said = driver.communicate(timeout=LIMIT_S)
    assert driver.returncode == 128 + signal.SIGINT, said
    assert MlflowStore(tmp_path).statuses == {"KILLED"}


def _steps(run: Path, shard: int) -> int:
    """That a shard has logged."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = (run / "shards" / f"shard{shard}" / "metrics.jsonl").read_text().splitlines()
        return int(json.loads(lines[-1])["steps"])
    return 0


def _until(found, process: subprocess.Popen) -> None:
    limit = time.monotonic() + LIMIT_S
    while not found():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < limit
        time.sleep(0.05)
