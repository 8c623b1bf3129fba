"""One episode, recorded: what is kept is what was played."""

from pathlib import Path

import numpy as np
import pytest

from lowgear import envs
from lowgear.config.run import resolve
from lowgear.config.tasks import find
from lowgear.evaluation.evaluate import play_policies, summarise
from lowgear.policy.controller import act
from lowgear.policy.file import Policy
from lowgear.report.episode import record
from lowgear.report.frames import sheet, stills, video
from lowgear.report.stage import Stage, open_stage
from lowgear.report.timeline import draw, window
from tests.fixtures.runs import random_policy

TASK = "MountainCarContinuous-v0"


@pytest.fixture(scope="module")
def policy() -> Policy:
    return random_policy(resolve(find(TASK), steps=2000), 0)


def blind(policy: Policy) -> Stage:
    return open_stage(policy.header, False, pictures=False)


def test_it_is_the_episode_that_evaluate_would_play(policy: Policy) -> None:
    stage = blind(policy)
    seed = int(np.random.SeedSequence((7, 0)).generate_state(1)[0] >> 1)  # of evaluate's first environment
    episode = record(policy, stage, "greedy", seed=seed, frames=0)
    played = play_policies([policy], lambda count: envs.make(find(TASK), count), 1, "greedy", 7)
    row = summarise(played, 0, policy.header.prices)
    assert episode.total == pytest.approx(row["return_mean"], abs=1e-3)
    assert episode.gear_share == pytest.approx(row["gear_share"])
    assert episode.flops_per_step == pytest.approx(row["flops_per_step"])
    assert episode.steps == row["episode_length_mean"]


def test_actions_are_those_of_every_gear(policy: Policy) -> None:
    stage = blind(policy)
    episode = record(policy, stage, "greedy", frames=0)
    first = stage.env.reset([0])[None]
    for gear in range(2):
        expected = act(policy.weights.gears, first, np.full((1, 1), gear, np.int32), policy.header.activation)
        np.testing.assert_array_equal(episode.actions[gear, 0], expected[0, 0])
    assert episode.actions.shape == (2, episode.steps, 1)
    assert episode.picked[0]
    shifts = np.flatnonzero(np.diff(episode.gear)) + 1
    assert episode.picked[shifts].all()


def test_the_same_seed_is_the_same_episode_and_another_is_not(policy: Policy) -> None:
    one, again, other = (record(policy, blind(policy), "boltzmann", seed=seed, frames=0) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.actions, again.actions)
    np.testing.assert_array_equal(one.gear, again.gear)
    assert one.actions.shape != other.actions.shape or not np.array_equal(one.actions, other.actions)


def test_a_forced_gear_never_asks_the_master() -> None:
    policy = random_policy(resolve(find(TASK), steps=2000, variants=("large-only",)), 0)
    episode = record(policy, blind(policy), "greedy", frames=0)
    assert episode.gear_share == [0.0, 1.0]
    assert not episode.picked.any()
    assert episode.flops_per_step == policy.header.prices.gears[-1]


def test_pictures_sheet_and_video(policy: Policy, tmp_path: Path) -> None:
    pytest.importorskip("pygame", reason="classic control is drawn by pygame, of the extra gym")
    stage = open_stage(policy.header, False)
    assert stage.why_blind is None
    episode = record(policy, stage, "greedy", frames=20)
    stage.close()
    assert len(episode.pictures) == -(-episode.steps // episode.every) <= 20
    whole, film = sheet(episode), video(episode)
    assert whole is not None
    assert film is not None
    assert (whole.count, whole.columns, max(whole.width, whole.height)) == (len(episode.pictures), 10, 256)
    from PIL import Image

    (tmp_path / "film.webp").write_bytes(film)
    with Image.open(tmp_path / "film.webp") as moving:
        # Frames that do not differ are one longer frame.
        assert 1 < moving.n_frames <= len(episode.pictures)  # type: ignore[attr-defined]
        assert moving.size == (whole.width, whole.height + 34)
    assert stills(episode, 3)[0][0] == 0
    assert len(stills(episode, 3)) == 3


def test_without_pictures_there_is_no_video_but_a_timeline(policy: Policy, tmp_path: Path) -> None:
    episode = record(policy, blind(policy), "greedy")
    assert (sheet(episode), video(episode), stills(episode, 5)) == (None, None, [])
    svg, png = draw(episode, tmp_path)
    assert "small gear" in svg.read_text()
    assert "large gear" in svg.read_text()
    assert png.read_bytes().endswith(b"IEND\xaeB`\x82")


def test_the_timeline_ends_where_the_gear_has_settled(policy: Policy) -> None:
    episode = record(policy, blind(policy), "greedy", frames=0).until(900)
    object.__setattr__(episode, "gear", np.array([1] * 150 + [0] * 750, np.int32))
    assert window(episode) == round(1.3 * 149)
    object.__setattr__(episode, "gear", np.array([0] * 900, np.int32))
    assert window(episode) == 300
    object.__setattr__(episode, "gear", np.array([1] * 10 + [0] * 890, np.int32))
    assert window(episode) == 100
