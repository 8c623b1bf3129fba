"""What runs beside what: evaluation beside training, groups, queued rounds. None of it changes a run's files."""

import threading
import time
from dataclasses import replace
from functools import partial

import pytest

from lowgear import LowgearError, envs
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import find
from lowgear.envs import process
from lowgear.training import parallel
from lowgear.training.loop import Listener, Training
from tests.fixtures.training import SMALL, Hear, StopAt, policy_bytes, without_speed

TASK = find("envpool:Pendulum-v1")
SETTINGS = resolve(
    TASK,
    steps=512,
    gears=(2, 4),
    seeds=(1, 2, 3),
    evaluate_every=128,
    evaluate_episodes=2,
    checkpoint_every=256,
    overrides=SMALL | {"master_units": 4, "actor_every": 1},
)
MAKE_ENV = partial(envs.make, TASK)
CONFIG = replace(SETTINGS, log_every=32)
RANDOM = replace(CONFIG, recipe=replace(CONFIG.recipe, random_steps=CONFIG.steps))  # nothing is learned, or compiled


class Watched:
    """Environments that wait for leave before their first step, or raise at it."""

    def __init__(self, count, gate=None, error=None):
        self.env, self.gate, self.error = envs.make(TASK, count), gate, error
        self.spec, self.num_envs, self.goal_rule, self.reset = self.env.spec, count, None, self.env.reset
        self.close = self.env.close

    def step(self, actions):
        if self.error:
            raise self.error
        if self.gate:
            assert self.gate.wait(60)
        return self.env.step(actions)


def train(path, make_env=MAKE_ENV, queues=False, groups=None, listeners=(), config=CONFIG):
    directory = RunDirectory(path)
    directory.create(config, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "has_accelerator", lambda: queues)
        training = Training(config, envs.make(TASK, config.environments), make_env, directory, groups=groups)
    try:
        training.run(list(listeners))
    finally:
        training.close()
    return directory


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return train(tmp_path_factory.mktemp("plain") / "run")


def same(directory, plain):
    assert without_speed(directory) == without_speed(plain)
    assert policy_bytes(directory, 3) == policy_bytes(plain, 3)


def test_lines_stand_in_the_order_of_steps(plain):
    lines = without_speed(plain)
    steps = [line["steps"] for line in lines]
    assert steps == sorted(steps)
    assert [line["steps"] for line in lines if line["kind"] == "evaluation" and line["agent"] == 0] == [
        128,
        256,
        384,
        512,
    ]


def test_processes_and_queued_rounds_leave_the_files_as_they_are(plain, tmp_path, monkeypatch):
    """As with an accelerator: two groups and the evaluation have processes, which end with the run."""
    began = []

    class Noted(process.Process):
        def __init__(self, module, *handles):
            super().__init__(module, *handles)
            began.append((module.rpartition(".")[2], self.process))

    monkeypatch.setattr(process, "Process", Noted)
    same(train(tmp_path / "run", queues=True, groups=2), plain)
    assert [module for module, _ in began] == ["collector_process"] * 2 + ["apart"]
    assert all(child.poll() is not None for _, child in began)


def test_training_goes_on_beside_a_slow_evaluation(plain, tmp_path):
    """The first evaluation waits until 192 steps are done; the files do not tell."""
    gate, hear = threading.Event(), Hear()
    reached = []

    class Leave(Listener):
        def on_log(self, lines):
            hear.on_log(lines)

        def on_evaluation(self, lines):
            reached.append((lines[0]["steps"], hear.lines[-1]["steps"]))

        def on_steps(self, steps):
            if steps == 192:
                gate.set()

    same(train(tmp_path / "run", lambda count: Watched(count, gate), listeners=[Leave()]), plain)
    told, after = reached[0]
    assert told == 128
    assert after >= 192  # training was this far when the evaluation's end was told
    assert [steps for steps, _ in reached] == [128, 256, 384, 512]


def test_a_run_that_breaks_off_gives_its_evaluation_up_but_not_its_lines(tmp_path):
    closed = threading.Event()
    began = time.monotonic()

    class Endless(Watched):
        def step(self, actions):
            time.sleep(0.01)
            return self.env.step(actions * 0)

    def make(count):
        made = Endless(count)
        made.close = lambda: (made.env.close(), closed.set())
        return made

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", make, listeners=[StopAt(192)], config=RANDOM)
    assert closed.is_set()  # no environment is left behind
    assert time.monotonic() - began < 60
    lines = without_speed(RunDirectory(tmp_path / "run"))
    assert {line["kind"] for line in lines} == {"train"}
    assert lines[-1]["steps"] == 192


def test_what_goes_wrong_in_an_evaluation_is_told(tmp_path):
    with pytest.raises(LowgearError, match="the arm fell off"):
        train(tmp_path / "run", lambda count: Watched(count, error=LowgearError("the arm fell off")), config=RANDOM)


def test_training_outlives_the_process_of_its_evaluation(tmp_path, monkeypatch):
    """As where the system kills it for its memory."""

    class Doomed(process.Process):
        def tell(self, message):
            if self.module.endswith("apart"):
                self.process.kill()
                self.process.wait()
            super().tell(message)

        def __init__(self, module, *handles):
            super().__init__(module, *handles)
            self.module = module

    monkeypatch.setattr(process, "Process", Doomed)
    hear = Hear()
    directory = train(tmp_path / "run", queues=True, groups=1, listeners=[hear], config=RANDOM)
    assert directory.finished(RANDOM)
    (notice,) = hear.notices
    assert "the evaluation at 128 steps is lost, and there is none from now on: the process that plays it" in notice
    assert "exit code -9; too little memory" in notice
    assert {line["kind"] for line in without_speed(directory)} == {"train"}
