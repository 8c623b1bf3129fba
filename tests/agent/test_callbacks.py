import numpy as np
import pytest

import lowgear
from lowgear import LowgearError
from lowgear.agent.callbacks import OnLog, Sb3, as_callbacks
from lowgear.training.trackers import choice
from tests.fixtures.probes import Valley
from tests.fixtures.trackers import Recording
from tests.fixtures.training import ONE_GEAR


class Notes(lowgear.Callback):
    def __init__(self):
        self.heard = []

    def on_start(self):
        self.heard.append("start")

    def on_steps(self, steps):
        assert self.agent.total_steps == self.agent.policy.header.steps == steps
        self.heard.append(steps)

    def on_log(self, lines):
        self.heard.append(("log", lines[0]["steps"], lines[0].get("mine")))

    def on_evaluation(self, lines):
        self.heard.append(("evaluation", lines[0]["steps"]))

    def on_end(self):
        self.heard.append("end")


class LikeSb3:
    """What Stable-Baselines3's callbacks are called with."""

    def __init__(self, stop_at):
        self.stop_at, self.seen, self.calls = stop_at, [], []

    def init_callback(self, model):
        self.model = model
        self.calls.append("init")

    def on_training_start(self, locals_, globals_):  # noqa: ARG002
        assert locals_["self"] is self.model
        self.calls.append("start")

    def on_rollout_start(self):
        pass

    def on_rollout_end(self):
        pass

    def on_step(self):
        self.seen.append(self.model.num_timesteps)
        self.model.logger.record("mine", self.model.num_timesteps)
        return self.model.num_timesteps < self.stop_at

    def on_training_end(self):
        self.calls.append("end")


@pytest.fixture(scope="module")
def agent():
    """Learns on from test to test."""
    return lowgear.Agent(Valley, **ONE_GEAR).learn(64)


def test_evaluations_checkpoints_and_ones_own(agent, tmp_path):
    notes, best = Notes(), tmp_path / "best.safetensors"
    checkpoints = lowgear.Checkpoint(64, tmp_path / "kept"), lowgear.Checkpoint(64, tmp_path, "run", whole=True)
    first = agent.total_steps
    agent.learn(96, callback=[lowgear.Evaluation(64, episodes=2, best=best), *checkpoints, notes], log_interval=1)
    assert (notes.heard[0], notes.heard[-1]) == ("start", "end")
    assert [steps - first for steps in notes.heard if isinstance(steps, int)] == [32, 64, 96]
    due = first + 64
    assert notes.heard.index(("evaluation", due)) < notes.heard.index(due)
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [f"agent_{due}_steps.safetensors"]
    assert lowgear.load(best).policy.header.steps == due
    assert lowgear.load(tmp_path / f"run_{due}_steps").can_learn
    evaluated = [line for line in agent.history if line["kind"] == "evaluation"]
    assert [line["episode_length_mean"] for line in evaluated] == [20]


def test_objects_and_functions_of_sb3(agent):
    notes, like, first = Notes(), LikeSb3(stop_at=40), agent.total_steps
    agent.learn(96, callback=[like, notes], log_interval=1)
    assert like.calls == ["init", "start", "end"]
    assert like.seen == list(range(1, 41))  # a step at a time, counted from this learn's beginning
    assert agent.total_steps == first + 64  # but in whole chunks
    assert any(part[0] == "log" and part[2] == 32 for part in notes.heard if isinstance(part, tuple))
    seen = []
    agent.learn(96, callback=lambda locals_, globals_: seen.append(locals_["self"].num_timesteps))  # noqa: ARG005
    assert seen == list(range(1, 97))
    with pytest.raises(LowgearError, match=r"locals\['dones'\]: Lowgear's locals hold self and callback alone.*on_log"):
        agent.learn(32, callback=lambda locals_, globals_: locals_["dones"].any())  # noqa: ARG005


def test_stop_on_return(agent):
    agent.learn(10_000, callback=[lowgear.Evaluation(32, episodes=2), lowgear.StopOnReturn(-1e9)])
    assert agent.num_timesteps == 32
    agent.learn(10_000, callback=lowgear.StopOnReturn(-1e9, training=True), log_interval=1)
    assert agent.num_timesteps == 32
    agent.learn(64, callback=[lowgear.Evaluation(32, episodes=2), lowgear.StopOnReturn(1e9)])
    assert agent.num_timesteps == 64


def test_an_error_of_a_callback_keeps_what_was_learned(agent):
    first = agent.total_steps
    with pytest.raises(ZeroDivisionError):
        agent.learn(64, callback=lambda _: 1 / 0, log_interval=1)
    assert first < agent.policy.header.steps == agent.total_steps
    assert np.isfinite(agent.predict(np.zeros(1, np.float32))[0]).all()


def test_only_callbacks_that_have_begun_are_ended(agent):
    class Breaks(Notes):
        def __init__(self, at):
            super().__init__()
            self.at = at

        def on_start(self):
            super().on_start()
            assert self.at != "start", "it broke"

        def on_end(self):
            super().on_end()
            assert self.at != "end", "it broke"

    first, second, third = Notes(), Breaks("start"), Notes()
    with pytest.raises(AssertionError, match="it broke"):
        agent.learn(32, callback=[first, second, third])
    assert [callback.heard for callback in (first, second, third)] == [["start", "end"], ["start"], []]
    first, second = Notes(), Breaks("end")
    with pytest.raises(AssertionError, match="it broke"):
        agent.learn(32, callback=[first, second])
    assert first.heard[-1] == second.heard[-1] == "end"


def test_what_may_be_passed():
    assert as_callbacks(None) == []
    first, second, third = as_callbacks([lambda line: line, lambda a, b: (a, b), [Notes()]])
    assert isinstance(first, OnLog)
    assert isinstance(second, Sb3)
    assert isinstance(third, Notes)
    for bad in (3, "stop", Notes):
        with pytest.raises(LowgearError, match=r"callback .* pass a function"):
            as_callbacks(bad)
    for make in (lambda: lowgear.Evaluation(0), lambda: lowgear.Checkpoint(0, "x")):
        with pytest.raises(LowgearError, match="every=0: write 1 or more"):
            make()
    with pytest.raises(LowgearError, match="episodes=0: write 1 or more"):
        lowgear.Evaluation(1, episodes=0)
    with pytest.raises(LowgearError, match="StopOnReturn goes by evaluations"):
        lowgear.Agent(Valley, **ONE_GEAR).learn(64, callback=lowgear.StopOnReturn(3))
    with pytest.raises(LowgearError, match="log_interval=0"):
        lowgear.Agent(Valley, **ONE_GEAR).learn(64, log_interval=0)


@pytest.mark.peers
def test_callbacks_of_sb3_run_as_they_are(tmp_path):
    from stable_baselines3.common.callbacks import (
        CallbackList,
        CheckpointCallback,
        EvalCallback,
        StopTrainingOnRewardThreshold,
    )
    from stable_baselines3.common.env_util import make_vec_env

    agent = lowgear.Agent(Valley, **ONE_GEAR)
    env = make_vec_env(Valley, 1)
    stop = StopTrainingOnRewardThreshold(-1e9)
    evaluate = EvalCallback(env, callback_on_new_best=stop, eval_freq=50, best_model_save_path=str(tmp_path))
    with pytest.warns(UserWarning, match="not of the same type"):
        agent.learn(1e4, CallbackList([CheckpointCallback(20, str(tmp_path)), evaluate]))
    assert agent.total_steps == 64
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "best_model",
        "rl_model_20_steps.zip",
        "rl_model_40_steps.zip",
    ]


def test_what_trackers_are_told_of_a_learning_agent(agent, tmp_path, monkeypatch):
    told = Recording()
    monkeypatch.setattr(choice, "make", lambda _: told)
    monkeypatch.setattr(choice, "installed", lambda _: True)
    callbacks = [lowgear.Evaluation(32, episodes=1), lowgear.Tracking("wandb", directory=tmp_path / "valley")]
    agent.learn(32, callback=callbacks)
    steps = agent.total_steps
    assert told.calls == [
        ("begin", "valley", {}, True),
        ("log", "train", [(0, steps)]),
        ("log", "evaluation", [(0, steps)]),
        ("policy", 0, "agent0.safetensors"),
        ("end", "finished"),
    ]
    agent.learn(32, callback=callbacks)
    assert told.calls[5] == ("begin", "valley", {"population": "made1"}, True)
    with pytest.raises(LowgearError, match="Tracking 'aim': choose from tensorboard, wandb, mlflow"):
        lowgear.Tracking("aim", directory=tmp_path)
