"""Training with hindsight: it learns what can't be learned without, goes on exactly where it stopped, and says what
is wrong with an environment's goals.
"""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import lowgear
from lowgear import LowgearError, envs
from lowgear.commands.cli import cli
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import find
from lowgear.envs import make_env
from lowgear.evaluation.evaluate import play
from lowgear.policy.file import load
from lowgear.training.loop import Training
from tests.fixtures.goals import drive
from tests.fixtures.probes import Meadow
from tests.fixtures.training import SMALL, StopAt, policy_bytes, without_speed

QUICK = {
    "gears": (8, 32),
    "cost_coefficient": 0.001,
    "learning_rate": 3e-3,
    "discount": 0.9,
    "critic_units": 64,
    "critic_activation": "relu",
    "batch": 64,
    "master_batch": 32,
    "random_steps": 512,
    "actor_every": 1,
}


def success(agent: lowgear.Agent, ends: bool) -> float:
    return play([agent.policy], envs.wrap(Meadow, 20, end_on_success=ends), 100, "greedy", 0).success.mean()


@pytest.mark.usefixtures("optimised")
def test_hindsight_finds_what_chance_never_does() -> None:
    """To be at the goal when the time is up."""
    agent = lowgear.Agent(Meadow(), seed=1, **QUICK).learn(3000)
    assert success(agent, ends=False) > 0.9
    assert agent.policy.header.hindsight


@pytest.mark.slow
def test_without_hindsight_it_is_not_found() -> None:
    agent = lowgear.Agent(Meadow(), seed=1, hindsight_share=0, **QUICK).learn(3000)
    assert success(agent, ends=False) < 0.2
    assert not agent.policy.header.hindsight


@pytest.mark.slow
def test_hindsight_learns_where_success_ends_an_episode() -> None:
    agent = lowgear.Agent(Meadow(), recipe="paper", seed=1, **QUICK)
    seen = []
    agent.learn(5000, callback=lambda line: seen.append((line["success"], line["return"])))
    assert success(agent, ends=True) > 0.9
    succeeded, earned = seen[-1]
    assert succeeded > 0.5
    assert earned > -19  # episodes are cut short while it trains, too


STATISTICS = {"normalise_observations": True, "scale_rewards": True, "lenient_twins": True}


# The rings, two for each agent, wrap; episodes end early or in time, and checkpoints fall within them and within picks.
RESUMED = resolve(
    find("envpool:FetchReach-v1"),
    "paper",
    steps=384,
    gears=(2, 4),
    cost_coefficients=(0.001,),
    variants=("asymmetric", "separate-buffers"),
    overrides=SMALL | {"replay": 160, "periods": (3,), "bound_targets": True, "environments": 2} | STATISTICS,
    evaluate_every=192,
    evaluate_episodes=1,
    checkpoint_every=96,
)


def run(path, stop_at=None) -> RunDirectory:
    directory = RunDirectory(path)
    if not path.exists():
        directory.create(RESUMED, {})
    make = partial(make_env, RESUMED)
    training = Training(RESUMED, make(RESUMED.environments), make, directory)
    try:
        training.run([StopAt(stop_at)] if stop_at else [])
    finally:
        training.close()
    return directory


def test_a_broken_run_ends_as_an_unbroken_one(tmp_path) -> None:
    whole = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "broken", stop_at=320)
    broken = run(tmp_path / "broken")
    assert broken.read_config() == RESUMED
    assert policy_bytes(broken, 2) == policy_bytes(whole, 2)
    assert without_speed(broken) == without_speed(whole)
    assert load(whole.policy(0)).header.hindsight
    scored = [json.loads(line) for line in whole.metrics.read_text().splitlines()]
    assert {line["success_rate"] for line in scored if line["kind"] == "evaluation"} <= {0.0, 1.0}


class BegunError(Exception):
    """Instead of training."""


@pytest.mark.parametrize("env", [lambda: Meadow(), Meadow()], ids=["a function", "an environment"])
@pytest.mark.parametrize(
    ("recipe", "told", "ends"), [("paper", None, True), ("modern", None, False), ("modern", True, True)]
)
def test_an_agents_episodes_end_as_its_learners_are_told(monkeypatch, env, recipe, told, ends) -> None:
    def begin(config, batch, _):
        raise BegunError(config, batch)

    monkeypatch.setattr("lowgear.training.open_ended.OpenEnded", begin)
    settings = {} if told is None else {"end_on_success": told}
    agent = lowgear.Agent(env, gears=(2, 4), cost_coefficient=0.001, recipe=recipe, **settings)
    with pytest.raises(BegunError) as caught:
        agent.learn(64)
    config, batch = caught.value.args
    assert config.recipe.end_on_success == ends
    _, found = drive(batch, 20, 19)
    assert any(step.success.any() for step in found)
    assert any(step.terminated.any() for step in found) == ends


def test_a_vector_that_can_not_end_on_success_is_refused_with_the_papers_recipe() -> None:
    vector = SyncVectorEnv([Meadow], autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(LowgearError, match="vector"):
        lowgear.Agent(vector, gears=(2, 4), cost_coefficient=0.001, recipe="paper")
    lowgear.Agent(vector, gears=(2, 4), cost_coefficient=0.001, recipe="paper", end_on_success=False)


class Mute(Meadow):
    compute_reward = property()

    def step(self, action):
        self._at = np.clip(self._at + self.stride * np.asarray(action), -1.5, 1.5)
        self._step += 1
        return self._look(), -1.0, False, self._step >= self.steps, {"is_success": False}


def test_goals_that_nobody_can_judge() -> None:
    agent = lowgear.Agent(Mute(), gears=(2, 4), cost_coefficient=0.001, **SMALL)
    with pytest.raises(LowgearError, match=r"Mute has goals.*compute_reward"):
        agent.learn(128)
    lowgear.Agent(
        Mute(), gears=(2, 4), cost_coefficient=0.001, hindsight_share=0, **(SMALL | {"random_steps": 128})
    ).learn(128)


def test_goals_that_nobody_can_judge_leave_no_directory_behind(tmp_path) -> None:
    path = tmp_path / "run"
    options = ["--gears", "2,4", "--cost-coefficients", "0.001", "--steps", "128", "--out", str(path)]
    result = CliRunner().invoke(cli, ["train", "envpool:PointMaze_UMaze-v3", *options])
    assert isinstance(result.exception, LowgearError | SystemExit)
    assert "has goals" in f"{result.exception} {result.output}"
    assert not path.exists()


ONE_BY_ONE = """
import numpy as np
import lowgear
from tests.fixtures.probes import Meadow
from tests.fixtures.training import SMALL

class Single(Meadow):
    def compute_reward(self, achieved, desired, info):
        return -float(np.linalg.norm(achieved - desired) > self.near)

lowgear.Agent(Single(), gears=(2, 4), cost_coefficient=0.001, **SMALL).learn(512)
"""


def test_an_environment_that_takes_single_pairs_is_trained_in() -> None:
    """In a process of its own: learners that ask at the same time must not wait for each other."""
    subprocess.run([sys.executable, "-c", ONE_BY_ONE], check=True, timeout=60, cwd=Path(__file__).parents[2])
