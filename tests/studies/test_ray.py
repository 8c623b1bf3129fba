"""Studies of six programs on Ray, and by two processes of this machine: the same table, whatever is killed."""

import contextlib
import csv
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lowgear import LowgearError
from lowgear.config.run_directory import RunDirectory
from lowgear.studies import overview, ray_pool
from lowgear.training.checkpoint import read_latest
from tests.conftest import COMPILE_QUICKLY
from tests.fixtures.tracker_stores import MlflowStore, expect_all
from tests.fixtures.training import policy_bytes, without_speed

pytestmark = pytest.mark.ray
PERIOD = ["study", "period", "reacher-easy", "--recipe", "paper", "--steps", "2304", "--gears", "2,4"]
PERIOD += ["--episodes", "2", "--seeds", "0"]
LIMIT_S = 900
QUICKLY = {"XLA_FLAGS": COMPILE_QUICKLY, "JAX_DISABLE_MOST_OPTIMIZATIONS": "true"}
NO_REPORTS = {"RAY_USAGE_STATS_ENABLED": "0", "MLFLOW_DISABLE_TELEMETRY": "true"}
NO_TOKEN = {"RAY_AUTH_MODE": "disabled"}  # whatever Ray has left in the home of the person who tests
NOT_NICE = {"RAY_worker_niceness": "0"}  # 15 if not told: beside anything else here, programs would hardly go on


@pytest.fixture(scope="module")
def quick():
    """What processes of a cluster are told, too."""
    before = dict(os.environ)
    os.environ.update(QUICKLY | NO_REPORTS | NO_TOKEN | NOT_NICE)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def cluster(quick, tmp_path_factory):  # noqa: ARG001
    """A head node and another one, two CPUs in all; its address."""
    port, logs = free_port(), tmp_path_factory.mktemp("ray")
    with contextlib.ExitStack() as started:
        start_ray(["--head", f"--port={port}", "--include-dashboard=false"], logs / "head.log", started)
        start_ray([f"--address=127.0.0.1:{port}"], logs / "other.log", started)
        yield f"127.0.0.1:{port}"


def start_ray(options, log, started, env=None) -> None:
    """Start a node that ends with the stack `started`."""
    ray = str(Path(sys.executable).with_name("ray"))
    common = ["--num-cpus=1", "--num-gpus=0", "--block", "--disable-usage-stats", "--node-ip-address=127.0.0.1"]
    file = started.enter_context(log.open("w"))
    node = subprocess.Popen([ray, "start", *options, *common], stdout=file, stderr=file, env=env)
    started.callback(node.wait)
    started.callback(node.terminate)
    _until(lambda: "Ray runtime started" in log.read_text(), node)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def alone(quick, tmp_path_factory):  # noqa: ARG001
    """The table that one process makes."""
    out = tmp_path_factory.mktemp("alone")
    subprocess.run([sys.executable, "-m", "lowgear", *PERIOD, "--out", out], check=True, capture_output=True)
    found = _rows(out)
    assert len(found) == 6
    return found


@pytest.fixture(params=["ray", "jobs"])
def places(request):
    """Options that have programs carried out elsewhere, two at once."""
    if request.param == "jobs":
        return ["--jobs", "2"]
    return ["--ray", request.getfixturevalue("cluster"), "--cpus", "1"]


@pytest.mark.filterwarnings("default")  # MLflow's are not ours
def test_killed_programs_and_drivers_cost_a_checkpoint_interval_at_most(tmp_path, places, alone) -> None:
    command = [sys.executable, "-m", "lowgear", *PERIOD, *places, "--track", "mlflow", "--out", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as driver:
        try:
            _until(lambda: _in_the_middle(tmp_path), driver)
            victim = _in_the_middle(tmp_path)[0]
            kept = _kill(victim, with_worker="--ray" in places)
            again = _until(lambda: _goes_on(tmp_path, victim), driver)
            assert again.done >= kept > 0
            _until(lambda: len(_finished(tmp_path)) >= 3, driver)
        finally:
            driver.kill()
    before = _finished(tmp_path)
    assert 3 <= len(before) < 6
    assert overview.find(tmp_path)[0].dead
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert ended.returncode == 0, ended.stderr
    assert f"{6 - len(before)} of 6 runs to do" in ended.stderr
    after = _finished(tmp_path)
    assert {name: after[name] for name in before} == before  # untouched
    assert _rows(tmp_path) == alone
    (status,) = overview.find(tmp_path)
    assert (status.state, {program.state for program in status.programs}) == ("done", {"done"})
    store = MlflowStore(tmp_path / "runs")
    for name in after:
        expect_all(store, RunDirectory(tmp_path / "runs" / name), agents=1, once=False)
    assert (len(store.runs), store.statuses) == (12, {"FINISHED"})  # each with its population


def test_machines_that_share_no_directory_keep_runs_at_a_url(tmp_path, cluster, alone) -> None:
    url = (tmp_path / "bucket").as_uri()
    command = [sys.executable, "-m", "lowgear", *PERIOD, "--ray", cluster, "--cpus", "1", "--storage", url]
    first = [*command, "--out", str(tmp_path / "first")]
    with subprocess.Popen(first, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
        try:
            _until(lambda: list(tmp_path.glob("bucket/*/scores.json")), driver)
        finally:
            driver.kill()
    done = {path.parent.name: path.stat().st_mtime_ns for path in tmp_path.glob("bucket/*/scores.json")}
    second = [*command, "--out", str(tmp_path / "second")]  # another machine, say: nothing is known here
    ended = subprocess.run(second, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert ended.returncode == 0, ended.stderr
    assert _rows(tmp_path / "second") == alone
    after = {path.parent.name: path.stat().st_mtime_ns for path in tmp_path.glob("bucket/*/scores.json")}
    assert len(after) == 6
    assert {name: after[name] for name in done} == done


@pytest.mark.parametrize("where", ["shared", "elsewhere"])
@pytest.mark.filterwarnings("default")  # MLflow's are not ours
def test_a_population_is_spread_over_machines_and_comes_to_what_one_program_does(tmp_path, cluster, where) -> None:
    sizes = ["--steps", "640", "--gears", "2,4", "--critic-units", "4", "--set", "batch=16", "--seeds", "0-2"]
    sizes += ["--set", "random_steps=64", "--evaluate-episodes", "1"]
    train = [sys.executable, "-m", "lowgear", "train", "reacher-easy", *sizes]
    place = ["--ray", cluster, "--cpus", "1", "--shards", "2", "--track", "mlflow"]
    place += ["--storage", str(tmp_path / "disk")] if where == "elsewhere" else []
    for name, options in (("whole", []), ("spread", place)):
        ended = subprocess.run(
            [*train, *options, "--out", tmp_path / name], capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
    whole, spread = RunDirectory(tmp_path / "whole"), RunDirectory(tmp_path / "spread")
    assert policy_bytes(spread, 3) == policy_bytes(whole, 3)
    assert without_speed(spread) == without_speed(whole)
    assert [program.agents for program in overview.find(spread.path)[0].programs] == [1, 2]
    if where == "elsewhere":
        assert {path.name for path in (tmp_path / "disk" / "spread").iterdir()} == {"shard0", "shard1"}
    store = MlflowStore(tmp_path)
    assert set(store.runs) == set(expect_all(store, spread, agents=3).values())
    assert store.statuses == {"FINISHED"}


def test_a_sweep_on_a_cluster(tmp_path, cluster) -> None:
    pytest.importorskip("optuna")
    options = ["--set", "batch=16:32", "--set", "random_steps=64", "--steps", "320", "--seeds", "0", "--gears", "2,4"]
    place = ["--ray", cluster, "--cpus", "1", "--storage", (tmp_path / "bucket").as_uri()]
    command = [sys.executable, "-m", "lowgear", "sweep", "reacher-easy", *options, "--evaluate-episodes", "1"]
    command += ["--trials", "3", *place, "--out", str(tmp_path / "sweep")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert len(list(tmp_path.glob("sweep/runs/trial*/config.json"))) == 3
    assert len(list(tmp_path.glob("bucket/sweep/trial*/config.json"))) == 3


def test_ctrl_c_stops_at_checkpoints(tmp_path, cluster) -> None:
    command = [sys.executable, "-m", "lowgear", *PERIOD, "--steps", "200000", "--ray", cluster, "--cpus", "1"]
    with subprocess.Popen([*command, "--out", str(tmp_path)], stderr=subprocess.PIPE, text=True) as driver:
        _until(lambda: any(p.done > 1200 for status in _status(tmp_path) for p in status.programs), driver)
        driver.send_signal(signal.SIGINT)
        _, said = driver.communicate(timeout=LIMIT_S)
    assert driver.returncode == 128 + signal.SIGINT, said
    assert "stopped; the same command goes on from here" in said
    latest = [read_latest(RunDirectory(path.parent)) for path in tmp_path.glob("runs/*/config.json")]
    assert max(each.steps for each in latest if each is not None) > 1200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ray", "127.0.0.1:1"], "--ray 127.0.0.1:1 cannot be reached (Connection refused)"),
        (["--ray", "reacher-easy"], "--ray 'reacher-easy' is no address"),
        (["--ray", "ADDRESS", "--cpus", "64"], "--cpus 64: no machine of the cluster has so many, 1 at most"),
        (["--ray", "ADDRESS", "--gpus", "1"], "no machine of the cluster has 1 GPUs"),
        (["--ray", "ADDRESS", "--storage", "/proc/none"], "/proc/none/runs cannot be written to"),
        (["--ray", "ADDRESS", "--storage", "file:///proc/none"], "--storage file:///proc/none cannot be written to"),
    ],
)
def test_a_cluster_that_cannot_do_it_is_named(tmp_path, cluster, options, message) -> None:
    given = [cluster if option == "ADDRESS" else option for option in options]
    command = [sys.executable, "-m", "lowgear", *PERIOD, *given, "--out", str(tmp_path / "none")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "400"})
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_address_where_something_else_listens_is_named_soon() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{other.server_address[1]}"
        with pytest.raises(LowgearError, match=f"--ray {address} is no Ray cluster"):
            ray_pool.connect(address)
        other.shutdown()


def test_a_cluster_that_was_killed_and_left_its_address_is_not_waited_for(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    assert ray_pool._current() is None  # Ray finds none, and starts one
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("127.0.0.1:1")
    assert ray_pool._current() == "local"
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:2")  # what a person has named is not passed over
    with pytest.raises(LowgearError, match=r"127\.0\.0\.1:2 cannot be reached"):
        ray_pool._current()


def test_the_cluster_of_this_machine_is_found(cluster, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text(cluster)
    assert ray_pool._current() is None  # Ray finds it


def test_a_cluster_that_asks_for_a_token_is_named(tmp_path, quick) -> None:  # noqa: ARG001
    port, token = free_port(), tmp_path / "token"
    token.write_text("0123456789" * 4)
    asks = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
    with contextlib.ExitStack() as started:
        options = ["--head", f"--port={port}", "--include-dashboard=false"]
        start_ray(options, tmp_path / "head.log", started, os.environ | asks)
        place = ["--ray", f"127.0.0.1:{port}", "--out", str(tmp_path / "none")]
        study = [sys.executable, "-m", "lowgear", *PERIOD, *place]
        ended = subprocess.run(study, capture_output=True, text=True, check=False)
        assert ended.returncode == 2
        assert f"--ray 127.0.0.1:{port} asks for a token: set RAY_AUTH_MODE=token" in ended.stderr
        assert "Traceback" not in ended.stderr
        code = f"from lowgear.studies import ray_pool; ray_pool.connect('127.0.0.1:{port}')"
        subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | asks)


def _until(found, process: subprocess.Popen):
    limit = time.monotonic() + LIMIT_S
    while not (value := found()):
        assert process.poll() is None, "it ended before"
        assert time.monotonic() < limit
        time.sleep(0.02)
    return value


def _rows(out: Path) -> list[dict[str, str]]:
    with (out / "period" / "table.csv").open() as file:
        return list(csv.DictReader(file))


def _status(out: Path) -> list[overview.StudyStatus]:
    return overview.find(out) if (out / "period" / "status.json").exists() else []


def _in_the_middle(out: Path) -> list[RunDirectory]:
    """Runs with a checkpoint that are not at their end."""
    found = [RunDirectory(path.parent.parent) for path in out.glob("runs/*/checkpoint/latest.json")]
    return [each for each in found if not any(each.policies.glob("*")) or _steps(each) < 2304]


def _steps(directory: RunDirectory) -> int:
    with contextlib.suppress(ValueError, OSError):
        return int(json.loads(directory.latest.read_text())["steps"])
    return 0


def _kill(directory: RunDirectory, with_worker: bool) -> int:
    """SIGKILL a program, and the Ray worker that waits for it; the steps that its last checkpoint keeps."""
    found = re.match(r"process (\d+)", directory.lock.read_text())
    assert found is not None
    pid = int(found[1])
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    if with_worker:
        assert "ray::" in Path(f"/proc/{parent}/cmdline").read_text()
        os.kill(parent, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    return _steps(directory)


def _goes_on(out: Path, directory: RunDirectory):
    """The program, once it was started again and runs."""
    for status in _status(out):
        for program in status.programs:
            if program.name == directory.path.name and program.losses and program.state in ("running", "done"):
                return program
    return None


def _finished(out: Path) -> dict[str, int]:
    """Runs that were trained and scored, and when."""
    return {path.parent.name: path.stat().st_mtime_ns for path in out.glob("runs/*/scores.json")}
