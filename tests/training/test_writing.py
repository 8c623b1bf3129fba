"""What is written of a run: links are not written through, the end's best score counts when a run goes on."""

import errno
import json
from dataclasses import replace

import pytest

from lowgear import LowgearError, envs
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import find
from lowgear.policy import files
from lowgear.policy.file import load
from lowgear.policy.files import WriteError, hold
from lowgear.training import memory, metrics_file
from lowgear.training.checkpoint import read_latest
from lowgear.training.checkpoint_writer import Checkpoints
from lowgear.training.loop import Training
from lowgear.training.metrics_file import MetricsFile
from tests.fixtures.training import SMALL, Hear, without_speed

TASK = find("envpool:Pendulum-v1")
CONFIG = resolve(
    TASK,
    steps=96,
    gears=(2, 4),
    evaluate_every=64,
    evaluate_episodes=1,
    checkpoint_every=64,
    overrides=SMALL | {"master_units": 4, "random_steps": 10_000},  # nothing is learned, or compiled
)


def run(directory, config, score=None):
    """Train; `score` says what a controller of so many steps is worth."""
    if not directory.path.exists():
        directory.create(config, {})
    make = lambda count: envs.make(TASK, count)  # noqa: E731
    training = Training(config, make(config.environments), make, directory)
    if score is not None:
        training._scoring._score = lambda *_: score[training.collector.steps]
    try:
        training.run()
    finally:
        training.close()
    return training


def test_the_best_policy_of_a_finished_run_outlives_its_extension(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    run(directory, CONFIG, {64: 1.0, 96: 7.0})
    assert load(directory.policy(0, best=True)).header.steps == 96
    latest = read_latest(directory)
    assert (latest.best, latest.end_best) == ([1.0], [7.0])
    longer = directory.extended(directory.read_config(), 192)
    training = run(directory, longer, {128: 5.0, 192: 6.0})
    assert training.best == [7.0]
    assert load(directory.policy(0, best=True)).header.steps == 96
    evaluated = [line["steps"] for line in without_speed(directory) if line["kind"] == "evaluation"]
    assert evaluated == [64, 96, 128, 192]  # the line of that best policy is kept too


@pytest.mark.parametrize("refused", ["memory", "lock", "range"])
def test_more_steps_that_are_refused_leave_the_run_as_it_was(tmp_path, monkeypatch, refused):
    directory = RunDirectory(tmp_path / "run")
    run(directory, CONFIG)
    before = directory.config.read_bytes()
    longer = directory.extended(directory.read_config(), 192)
    if refused == "memory":
        monkeypatch.setattr(memory, "available", lambda: 1)
        with pytest.raises(LowgearError, match="would need"):
            run(directory, longer)
    elif refused == "lock":
        with hold(directory.lock), pytest.raises(LowgearError):
            run(directory, longer)
    else:
        with pytest.raises(LowgearError, match=r"--steps 10000000000000: a run has 1,000,000,000,000 at most"):
            directory.extended(directory.read_config(), 10**13)
    assert directory.config.read_bytes() == before
    assert directory.finished(directory.read_config())


def test_a_run_killed_in_its_last_evaluation_is_evaluated_again(tmp_path):
    """What was noted of the end counts only for those that go past it."""
    directory = RunDirectory(tmp_path / "run")
    run(directory, CONFIG)
    lines, policies = without_speed(directory), directory.policy(0).read_bytes()
    directory.policy(0).unlink()
    run(directory, CONFIG)
    assert without_speed(directory) == lines
    assert directory.policy(0).read_bytes() == policies


def test_end_scores_of_another_population_are_refused(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    run(directory, CONFIG)
    raw = json.loads(directory.latest.read_text())
    directory.latest.write_text(json.dumps(raw | {"end_best": [1.0, 2.0]}))
    with pytest.raises(LowgearError, match="end_best has 2 scores, best 1"):
        read_latest(directory)


@pytest.mark.parametrize(
    "write",
    [lambda path: MetricsFile(path).add([{"steps": 1}], waits=False), lambda path: MetricsFile(path).cut(2), hold],
    ids=["metrics", "cut", "lock"],
)
def test_links_are_not_written_through(tmp_path, write):
    other, link = tmp_path / "other", tmp_path / "link"
    other.write_text("mine")
    link.symlink_to(other)
    with pytest.raises(LowgearError, match="link is a link: put a copy of what it leads to in its place"):
        write(link)
    assert other.read_text() == "mine"


def test_lines_that_were_refused_come_with_the_next(tmp_path, monkeypatch):
    """Half of a text that a full disk has left is cut off first."""
    path = tmp_path / "metrics.jsonl"
    metrics, real = MetricsFile(path), files.open_own
    metrics.add([{"steps": 1}], waits=False)

    class Full:
        def __init__(self, *arguments):
            self.file = real(*arguments)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def truncate(self, size):
            self.file.truncate(size)

        def write(self, data):
            self.file.write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(metrics_file, "open_own", Full)
    for steps in (2, 3):
        with pytest.raises(WriteError, match=r"could not write .*metrics.jsonl: No space left"):
            metrics.add([{"steps": steps}], waits=False)
    monkeypatch.setattr(metrics_file, "open_own", real)
    metrics.add([{"steps": 4}], waits=False)
    assert [json.loads(line)["steps"] for line in path.read_text().splitlines()] == [1, 2, 3, 4]
    assert metrics.size == path.stat().st_size


def test_that_all_is_on_disk_again_is_told_whenever_it_is_noticed(tmp_path, monkeypatch):
    """Here while the next checkpoint is made, as where the disk is slow."""
    monkeypatch.setattr(Checkpoints, "poll", lambda _: False)
    directory, hear, real, refused = RunDirectory(tmp_path / "run"), Hear(), files.open_own, []
    config = replace(CONFIG, steps=256, evaluate_every=0, log_every=32)
    directory.create(config, {})

    def refuse_once(*arguments):
        if not refused:
            refused.append(arguments)
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments)

    training = Training(config, envs.make(TASK, config.environments), None, directory, go_on=True)
    monkeypatch.setattr(metrics_file, "open_own", refuse_once)
    try:
        training.run([hear])
    finally:
        training.close()
    assert refused
    first, last = hear.notices
    assert "No space left on device; going on meanwhile" in first
    assert last == "everything is on disk again"
