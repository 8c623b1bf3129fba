"""Environments of a person's own, by module:name and gym:module:ID from the working directory."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from lowgear import LowgearError, envs
from lowgear.config.tasks import find
from lowgear.envs.trial import rewards
from tests.fixtures.probes import Wander

MODULE = """
import gymnasium
from tests.fixtures.probes import Wander

class Arm(Wander):
    pass

def make_arm():
    return Arm()

def make_nothing():
    return 3

def make_trouble():
    raise ValueError("no motor")

limit = 3
gymnasium.register("OwnArm-v0", Arm, max_episode_steps=5)
"""


@pytest.fixture
def own_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with own_arm.py in it, which is not on the path."""
    (tmp_path / "own_arm.py").write_text(MODULE)
    (tmp_path / "own_needs.py").write_text("import surely_not_installed")
    (tmp_path / "own_broken.py").write_text("1 / 0")
    (tmp_path / "random.py").write_text("raise RuntimeError('hides the standard library')")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    for name in ("own_arm", "own_needs", "own_broken"):
        sys.modules.pop(name, None)
    gymnasium.registry.pop("OwnArm-v0", None)


@pytest.mark.usefixtures("own_arm")
@pytest.mark.parametrize(
    ("task", "limit"), [("own_arm:Arm", 10_000), ("own_arm:make_arm", 10_000), ("gym:own_arm:OwnArm-v0", 5)]
)
def test_found_in_the_working_directory(task: str, limit: int) -> None:
    env = envs.make(find(task), 2)
    assert (env.spec.name, env.spec.obs_dim, env.spec.max_episode_steps) == (task, 2, limit)
    assert env.reset([0, 0]).shape == (2, 2)
    env.close()


def test_the_working_directory_does_not_hide_other_modules(own_arm: Path) -> None:
    envs.make(find("own_arm:Arm"), 1).close()
    assert str(own_arm) not in sys.path[:-1]
    code = "from lowgear import envs; from lowgear.config.tasks import find; envs.make(find('own_arm:Arm'), 1).close()"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(root)!r}); {code}; import random"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("own_arm")
@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("own_arn:Arm", "no Python module own_arn in .*own_arn.py"),
        ("gym:own_arn:OwnArm-v0", "no Python module own_arn in .*own_arn.py"),
        ("own_arm.sub:Arm", "no Python module own_arm.sub"),
        ("own_needs:Arm", "the Python module own_needs needs surely_not_installed.*pip install surely_not_installed"),
        ("own_broken:Arm", "raised ZeroDivisionError while the Python module own_broken was imported"),
        ("own_arm:Arn", "own_arm.py has no 'Arn': did you mean Arm"),
        ("own_arm:limit", "own_arm:limit is a int: name a class or a function"),
        ("own_arm:make_nothing", "own_arm:make_nothing made a int; it must make a gymnasium.Env"),
        ("own_arm:make_trouble", "own_arm:make_trouble raised ValueError when called: no motor"),
        ("gym:own_arm:Other-v0", "Gymnasium knows no 'own_arm:Other-v0'"),
    ],
)
def test_what_is_wrong_is_said(task: str, message: str) -> None:
    with pytest.raises(LowgearError, match=message) as caught:
        envs.make(find(task), 1)
    assert "\n" not in str(caught.value)
    assert "MuJoCo" not in str(caught.value)


def test_names_come_from_the_metadata() -> None:
    spec = envs.wrap(Wander).spec
    assert (spec.observation_names, spec.action_names) == (("place", "steps left"), ("push",))


@pytest.mark.parametrize("given", [("place",), "place,steps", ("place", 2), ("place", ""), ("place", "a\nb")])
def test_names_that_do_not_fit_are_refused(given: object) -> None:
    env = Wander()
    env.metadata = {"observation_names": given}
    with pytest.raises(LowgearError, match=r"Wander: .*metadata\['observation_names'\]") as caught:
        envs.wrap(env)
    assert "\n" not in str(caught.value)


def test_success_is_told_once_an_environment_without_goals_tells_of_it() -> None:
    env = envs.wrap(Wander, num_envs=2)
    assert not env.spec.has_success
    env.reset([0, 1])
    steps = [env.step(np.ones((2, 1), np.float32)) for _ in range(20)]
    first = next(k for k, step in enumerate(steps) if (step.terminated | step.truncated).any())
    assert all(step.success is None for step in steps[:first])
    for step in steps[first:]:
        assert step.success is not None
        ended = step.terminated | step.truncated
        np.testing.assert_array_equal(step.success, ended & (step.last_observation[:, 0] > 0))


def test_what_random_actions_earn() -> None:
    found = rewards(find("tests.fixtures.probes:Wander"))
    assert found.episodes == 8
    assert found.return_mean is not None
    assert found.success_rate is not None
    assert 2 <= found.steps / 8 <= 6
    assert found.reward_low < found.reward_mean < found.reward_high
    assert found.return_mean == pytest.approx(found.reward_mean * found.steps / 8, rel=1e-5)
    valley = rewards(find("tests.fixtures.probes:Valley"))
    assert (valley.episodes, valley.steps, valley.length_mean, valley.success_rate) == (8, 160, 20, None)
    assert -1 <= valley.reward_low < valley.reward_high <= 1


def test_episodes_that_do_not_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lowgear.envs.trial.REWARD_S", 0.0)
    found = rewards(find("tests.fixtures.probes:Valley"))
    assert (found.episodes, found.steps, found.return_mean, found.success_rate) == (0, 8, None, None)
