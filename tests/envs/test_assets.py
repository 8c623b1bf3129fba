"""EnvPool's finger from the corrected model: dm_control's physics and rewards, and no files left behind."""

import tempfile
from pathlib import Path

import envpool
import numpy as np
import pytest

from lowgear import LowgearError, envs
from lowgear.config.tasks import find
from lowgear.envs import assets

SPIN_RAD_PER_S = -15.0  # dm_control pays 1 while the spinner is at least this fast
TIP_M = 0.13  # from the hinge to the tip of the spinner


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def installed() -> str:
    return str(envpool.make_spec("FingerSpin-v1").config.base_path)


def test_finger_follows_dm_control_through_contacts() -> None:
    """From matched states: without the correction, observations differ by more than 1 from the first touch on."""
    seeds = [5, 9, 10, 17]  # which touch the spinner early
    pool, dmc = envs.make(find("finger-spin"), 4), envs.make(find("dmc:finger-spin"), 4)
    first = pool.reset(seeds).astype(np.float64)
    dmc.reset(seeds)
    for env, row in zip(dmc._envs, first, strict=True):  # type: ignore[attr-defined]
        env.physics.data.qpos[:] = [*row[:2], np.arctan2(-row[2], row[3])]
        env.physics.data.qvel[:] = row[4:7]
        env.physics.forward()
    actions = np.random.default_rng(0).uniform(-1, 1, (100, 1, 2)).astype(np.float32).repeat(4, axis=1)
    touched = np.zeros(4, int)
    for action in actions:
        ours, theirs = pool.step(action), dmc.step(action)
        np.testing.assert_allclose(ours.last_observation, theirs.last_observation, atol=1e-3)
        np.testing.assert_array_equal(ours.reward, theirs.reward)
        touched += ours.last_observation[:, 7:].any(axis=1)
    assert (touched >= 5).all()


def test_finger_pays_what_dm_control_pays() -> None:
    env = envs.make(find("finger-spin"), 64)
    env.reset(range(64))
    rng, paid = np.random.default_rng(0), 0.0
    for _ in range(999):  # one less than an episode, so every observation is the one that was paid for
        step = env.step(rng.uniform(-1, 1, (64, 2)).astype(np.float32))
        np.testing.assert_array_equal(step.reward, step.last_observation[:, 6] <= SPIN_RAD_PER_S)
        paid += float(step.reward.sum())
    assert paid > 0


@pytest.mark.slow
def test_finger_starts_where_dm_control_starts() -> None:
    """Uniform angles in the joints' ranges, free of contact and at rest."""
    count = 64
    ours, theirs = (envs.make(find(name), count).reset(range(count)) for name in ("finger-spin", "dmc:finger-spin"))
    for first in (ours, theirs):
        np.testing.assert_allclose(np.hypot(first[:, 2], first[:, 3]), TIP_M, rtol=1e-5)
        assert not first[:, 4:].any()
    spread = theirs[:, :4].std(axis=0)
    difference = ours[:, :4].mean(axis=0) - theirs[:, :4].mean(axis=0)
    assert (abs(difference) < 3 * spread * np.sqrt(2 / count)).all()
    np.testing.assert_allclose(ours[:, :4].std(axis=0), spread, rtol=0.3)


@pytest.mark.parametrize("env_id", assets.FINGERS)
def test_every_finger_is_made_from_a_copy_that_is_gone_afterwards(env_id: str, temporary: Path) -> None:
    with assets.corrected(env_id, installed()) as base_path:
        assert Path(base_path).parent == temporary
        with assets.corrected(env_id, installed()) as other:
            assert other != base_path
    env = envs.make(find(f"envpool:{env_id}"), 3)
    for seed in (0, 1):
        env.reset([seed] * 3)
        assert not list(temporary.iterdir())
    env.step(np.zeros((3, 2), np.float32))


def test_only_one_geom_is_changed() -> None:
    before = (Path(installed()) / assets.MODELS / "finger.xml").read_text().splitlines()
    with assets.corrected("FingerSpin-v1", installed()) as base_path:
        after = (Path(base_path) / assets.MODELS / "finger.xml").read_text().splitlines()
    changed = [line.strip() for line, other in zip(before, after, strict=True) if line != other]
    assert len(changed) == 1
    assert changed[0].startswith('<geom name="spinner_decoration"')


def test_other_tasks_are_made_from_the_installed_files(temporary: Path) -> None:
    with assets.corrected("WalkerStand-v1", installed()) as base_path:
        assert base_path == installed()
        assert not list(temporary.iterdir())


def test_an_unknown_model_is_no_traceback(tmp_path: Path, temporary: Path) -> None:
    folder = tmp_path / "other"
    (folder / assets.MODELS).mkdir(parents=True)
    (folder / assets.MODELS / "finger.xml").write_text("<mujoco/>")
    env = envs.make(find("finger-spin"), 1)
    env._base_path = str(folder)  # type: ignore[attr-defined]
    with pytest.raises(LowgearError, match=r"finger-spin .*finger\.xml is not the one of"):
        env.reset([0])
    assert list(temporary.iterdir()) == [folder]
