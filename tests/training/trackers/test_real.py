"""What W&B's, MLflow's and TensorBoard's own readers find of runs (`make test-trackers`)."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.training.trackers.choice import ChosenTrackers
from tests.fixtures.tracker_stores import MlflowStore, expect_all, no_accounts, written_offline
from tests.fixtures.trackers import CONFIG, EVALUATED, LOGGED, NAMES, TASK, UNLEARNED, new_run, train
from tests.fixtures.training import policy_bytes, without_speed

pytestmark = [pytest.mark.trackers, pytest.mark.filterwarnings("default")]  # their warnings are not ours
EVERY = ("tensorboard", "wandb", "mlflow")


@pytest.fixture(autouse=True, scope="module")
def alone(tmp_path_factory):
    with no_accounts(tmp_path_factory.mktemp("home")):
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Stopped after 96 steps, gone on with to the end, evaluated along its dial, reported."""
    directory = new_run(tmp_path_factory.mktemp("tracked"))
    train(directory, trackers=EVERY, stop_at=96)
    begun = json.loads((directory.path / "tracking.json").read_text())
    heard = train(directory)
    assert not [text for text in heard.notices if "misses" in text], heard.notices
    assert json.loads((directory.path / "tracking.json").read_text()) == begun
    assert set(begun["wandb"]) == set(begun["mlflow"]) == {"population", "0", "1"}
    for command in (["evaluate", "--episodes", "2", "--frontier", "2"], ["report", "--no-video", "--episodes", "0"]):
        result = CliRunner().invoke(cli, [*command, str(directory.path)])
        assert result.exit_code == 0, result.output
        assert "misses" not in result.output
    return directory


def logged(directory, agent, kind):
    return {line["steps"]: line for line in without_speed(directory) if (line["agent"], line["kind"]) == (agent, kind)}


def test_tensorboard_finds_scalars_tables_and_pictures(run):
    from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

    found = EventMultiplexer().AddRunsFromDirectory(str(run.path / "tensorboard"))
    found.Reload()
    assert sorted(found.Runs()) == [*NAMES, "population"]
    for agent, name in enumerate(NAMES):
        returns = {event.step: event.value for event in found.Scalars(name, "evaluation/return_mean")}
        wanted = {steps: line["return_mean"] for steps, line in logged(run, agent, "evaluation").items()}
        assert sorted(returns) == sorted(wanted) == EVALUATED
        assert returns == pytest.approx(wanted, rel=1e-6)
        assert {event.step for event in found.Scalars(name, "train/steps_per_second")} == set(LOGGED)
    (picture,) = found.GetAccumulator("population").Images("frontier")[-1:]
    assert picture.encoded_image_string == (run.path / "report" / "figures" / "frontier.png").read_bytes()
    assert picture.width > 500
    texts = found.Tensors("population", "evaluation/text_summary")
    assert b"| agent | variant | seed |" in texts[-1].tensor_proto.string_val[0]


def test_wandb_finds_runs_written_offline(run):
    files = sorted((run.path.parent / "wandb").glob("offline-run-*/*.wandb"))
    sync = [sys.executable, "-m", "wandb", "sync", "--dry-run", *map(str, files)]
    read = subprocess.run(
        sync, env=os.environ | {"WANDB_API_KEY": "0" * 40}, capture_output=True, text=True, check=True
    )
    assert f"Would sync {len(files)} run(s)" in read.stderr
    ids = json.loads((run.path / "tracking.json").read_text())["wandb"]
    described, rows, artifacts = written_offline(run.path.parent)
    assert set(described) == set(ids.values())
    assert [described[ids[str(agent)]].display_name for agent in (0, 1)] == NAMES
    assert {each.run_group for each in described.values()} == {"pendulum"}
    settings = {item.key: json.loads(item.value_json) for item in described[ids["1"]].config.update}
    assert (settings["variant"], settings["seed"], settings["recipe/batch"]) == ("large-only", 0, 16)
    for agent in (0, 1):
        own = rows[ids[str(agent)]]
        returns = {row["evaluation/steps"]: row["evaluation/return_mean"] for row in own if "evaluation/steps" in row}
        wanted = {steps: line["return_mean"] for steps, line in logged(run, agent, "evaluation").items()}
        assert returns == pytest.approx(wanted)
        assert {row["train/steps"] for row in own if "train/steps" in row} == set(LOGGED)
    told = rows[ids["population"]]
    assert [row["evaluation._type"] for row in told if "evaluation._type" in row] == ["table-file"] * 2
    assert {row["frontier._type"] for row in told if "frontier._type" in row} == {"image-file"}
    policies = {each.name for each in artifacts if each.type == "model"}
    assert policies == {f"pendulum-agent{agent}{best}" for agent in (0, 1) for best in ("", "-best")}


def test_mlflow_finds_the_population_and_its_agents(run, monkeypatch):
    from mlflow import MlflowClient

    ids = json.loads((run.path / "tracking.json").read_text())["mlflow"]
    uri = f"sqlite:///{run.path.parent / 'mlflow.db'}"
    client = MlflowClient(tracking_uri=uri)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)  # for `load_table`
    experiment = client.get_experiment_by_name("lowgear")
    found = {each.info.run_id: each for each in client.search_runs([experiment.experiment_id])}
    assert set(found) == set(ids.values())
    assert {each.info.status for each in found.values()} == {"FINISHED"}
    parent = found[ids["population"]]
    assert (parent.info.run_name, parent.data.tags["mlflow.source.git.commit"]) == ("pendulum", "abc123")
    table = client.load_table(experiment.experiment_id, "evaluation.json", [parent.info.run_id])
    assert list(table["variant"])[:2] == ["asymmetric", "large-only"]  # of the run's end; those of `evaluate` follow
    assert {artifact.path for artifact in client.list_artifacts(parent.info.run_id)} >= {"config.json", "figures"}
    figures = {artifact.path for artifact in client.list_artifacts(parent.info.run_id, "figures")}
    assert {"figures/frontier.png", "figures/curves.png"} <= figures
    config = Path(client.download_artifacts(parent.info.run_id, "config.json"))
    assert json.loads(config.read_text())["task"] == CONFIG.task
    for agent, name in enumerate(NAMES):
        own = found[ids[str(agent)]]
        assert own.info.run_name == name
        assert own.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert own.data.params["recipe/batch"] == "16"
        returns = {
            metric.step: metric.value for metric in client.get_metric_history(own.info.run_id, "evaluation/return_mean")
        }
        wanted = {steps: line["return_mean"] for steps, line in logged(run, agent, "evaluation").items()}
        assert returns == pytest.approx(wanted)
        kept = client.download_artifacts(own.info.run_id, f"policies/agent{agent}.safetensors")
        assert Path(kept).read_bytes() == run.policy(agent).read_bytes()


def test_25_agents_arrive_whole(tmp_path):
    config = resolve(TASK, steps=256, gears=(2, 4), seeds=range(25), evaluate_every=128, overrides=UNLEARNED)
    config = replace(config, log_every=32)
    heard = train(new_run(tmp_path), config, trackers=("mlflow", "wandb"))
    assert not [text for text in heard.notices if "misses" in text], heard.notices
    directory, store = new_run(tmp_path), MlflowStore(tmp_path)
    ids = expect_all(store, directory, agents=25)
    assert (set(store.runs), store.statuses) == (set(ids.values()), {"FINISHED"})
    described, rows, artifacts = written_offline(tmp_path)
    of_wandb = json.loads((directory.path / "tracking.json").read_text())["wandb"]
    assert (set(described), len(of_wandb)) == (set(of_wandb.values()), 26)
    for agent in range(25):
        told = [row["train/steps"] for row in rows[of_wandb[str(agent)]] if "train/steps" in row]
        assert told == sorted(logged(directory, agent, "train"))
    assert {each.name for each in artifacts if each.type == "model"} >= {f"pendulum-agent{n}" for n in range(25)}


def test_mlflow_in_files_works_too(tmp_path, monkeypatch):
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    directory = new_run(tmp_path)
    heard = train(directory, trackers=("mlflow",))
    assert heard.notices == []
    client = MlflowClient(tracking_uri=(tmp_path / "mlruns").as_uri())
    assert len(client.search_runs([client.get_experiment_by_name("mine").experiment_id])) == 3
    assert not (tmp_path / "mlflow.db").exists()


def test_a_server_that_is_gone_is_told_of_and_the_run_is_the_same(tmp_path, run, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        port = taken.getsockname()[1]
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        directory = new_run(tmp_path)
        heard = train(directory, trackers=("mlflow",))
    assert [text.split(" (")[0] for text in heard.notices] == ["mlflow misses some of this run"]
    assert policy_bytes(directory, 2) == policy_bytes(run, 2)


def ids_of(path):
    """Of the trackers' runs, as far as they are begun."""
    try:
        return ChosenTrackers.of(RunDirectory(path)).ids
    except LowgearError:
        return {}


def test_a_killed_run_goes_on_in_the_same_runs(tmp_path):
    path = tmp_path / "killed"
    options = ["--steps", "2000000", "--gears", "2,4", "--evaluate-every", "0", "--checkpoint-every", "20000"]
    options += ["--set", "random_steps=2000000", "--track", "wandb,mlflow", "--out", str(path)]
    train = [sys.executable, "-m", "lowgear", "train"]
    with subprocess.Popen([*train, "envpool:Pendulum-v1", *options], stderr=subprocess.PIPE, text=True) as process:
        while len(ids_of(path).get("mlflow", ())) < 2 or len(ids_of(path)["wandb"]) < 2:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.2)
        process.kill()
    begun = ids_of(path)
    with subprocess.Popen([*train, "--resume", str(path)], stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if "mlflow ui" in line:  # it has begun
                break
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130, said
    assert "misses" not in said
    assert ids_of(path) == begun
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert client.get_run(begun["mlflow"]["population"]).info.status == "KILLED"
