"""One episode to look at: what is shown is what was played."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lowgear import envs
from lowgear.config.run import resolve
from lowgear.config.tasks import find
from lowgear.evaluation.evaluate import play_policies, starts, summarise
from lowgear.policy.controller import Controller
from lowgear.policy.file import Policy
from lowgear.report.matplotlib_figure import save
from lowgear.report.playback import Playback, frame_sheet, play_back, stills, video
from lowgear.report.simulator import Simulator, open_simulator
from lowgear.report.timeline import describe, legend, tracks, window
from tests.fixtures.runs import random_policy

TASK = "MountainCarContinuous-v0"


@pytest.fixture(scope="module")
def policy() -> Policy:
    return random_policy(resolve(find(TASK), steps=2000), 0)


def trained_in(policy: Policy) -> Simulator:
    return open_simulator(policy.header, False, frames=False)


def test_it_is_the_episode_that_evaluate_would_play(policy: Policy) -> None:
    seed = starts(7, 1)[0]
    playback = play_back(policy, trained_in(policy), "greedy", seed=seed, frames=0)
    played = play_policies([policy], lambda count: envs.make(find(TASK), count), 1, "greedy", 7)
    row = summarise(played, 0, policy.header.cost)
    assert playback.episode.total == pytest.approx(row["return_mean"], abs=1e-3)
    assert playback.episode.gear_steps / playback.episode.steps == pytest.approx(row["gear_share"])
    assert playback.episode.steps == row["episode_length_mean"]


def test_actions_are_those_of_every_gear(policy: Policy) -> None:
    playback = play_back(policy, trained_in(policy), "greedy", frames=0)
    episode, controller = playback.episode, Controller.from_policies([policy])
    assert playback.actions.shape == (2, episode.steps, 1)
    for gear in range(2):
        alone = controller.act_with(gear, episode.observation[None, :1])
        np.testing.assert_allclose(playback.actions[gear, 0], alone[0, 0], rtol=1e-5)
    taken = playback.actions[episode.gear, np.arange(episode.steps)]
    np.testing.assert_allclose(taken, episode.action, rtol=1e-4, atol=1e-6)


def test_the_same_seed_is_the_same_episode_and_another_is_not(policy: Policy) -> None:
    one, again, other = (play_back(policy, trained_in(policy), "boltzmann", seed=s, frames=0) for s in (3, 3, 4))
    np.testing.assert_array_equal(one.actions, again.actions)
    np.testing.assert_array_equal(one.episode.gear, again.episode.gear)
    assert one.actions.shape != other.actions.shape or not np.array_equal(one.actions, other.actions)


def test_frames_sheet_and_video(policy: Policy, tmp_path: Path) -> None:
    pytest.importorskip("pygame", reason="classic control is drawn by pygame, of the extra gym")
    simulator = open_simulator(policy.header, False)
    assert simulator.render_error is None
    playback = play_back(policy, simulator, "greedy", frames=20)
    simulator.close()
    count = len(playback.frames)
    assert count == -(-playback.episode.steps // playback.every) <= 20
    sheet, film = frame_sheet(playback), video(playback)
    assert sheet is not None
    assert film is not None
    assert (sheet["count"], sheet["columns"], max(sheet["width"], sheet["height"])) == (count, 10, 256)
    from PIL import Image

    (tmp_path / "film.webp").write_bytes(film)
    with Image.open(tmp_path / "film.webp") as moving:
        # Frames that do not differ are one longer frame.
        assert 1 < moving.n_frames <= count  # type: ignore[attr-defined]
        assert moving.size == (sheet["width"], sheet["height"] + 34)
    assert stills(playback, 3)[0][0] == 0
    assert len(stills(playback, 3)) == 3


def test_without_frames_there_is_no_video_but_a_timeline(policy: Policy, tmp_path: Path) -> None:
    playback = play_back(policy, trained_in(policy), "greedy")
    assert (frame_sheet(playback), video(playback), stills(playback, 5)) == (None, None, [])
    svg, png = save(describe(playback), tmp_path)
    assert "small gear" in svg.read_text()
    assert "large gear" in svg.read_text()
    assert png.read_bytes().endswith(b"IEND\xaeB`\x82")


def with_gears(playback: Playback, *gears: int) -> Playback:
    episode = replace(playback.episode.until(len(gears)), choice=np.array(gears, np.int32))
    return replace(playback, episode=episode, actions=playback.actions[:, : len(gears)])


def test_the_timeline_ends_where_the_gear_has_settled(policy: Policy) -> None:
    playback = play_back(policy, trained_in(policy), "greedy", frames=0)
    assert window(with_gears(playback, *[1] * 150, *[0] * 750)) == round(1.3 * 149)
    assert window(with_gears(playback, *[0] * 900)) == 300
    assert window(with_gears(playback, *[1] * 10, *[0] * 890)) == 100


def test_tracks_show_the_gears_their_picks_and_who_acted(policy: Policy) -> None:
    playback = with_gears(play_back(policy, trained_in(policy), "greedy", frames=0), 0, 0, 1, 0)
    gears, action = tracks(playback, legend(playback))
    assert [(bar.start, bar.end) for bar in gears.bars] == [(0, 2), (2, 3), (3, 4)]
    assert gears.bars[0].height < gears.bars[1].height
    assert gears.marks[0] == 0
    assert [series.label.split(":")[0] for series in gears.series][:2] == [
        "small gear, 8 units",
        "large gear, 64 units",
    ]
    assert "75.0% of steps" in gears.series[0].label
    assert [series.spans for series in action.series] == [((0, 2), (3, 4)), ((2, 3),)]
    assert len(action.series[0].y) == 4


@pytest.mark.parametrize(("name", "shown"), [("torque", "torque"), ("torque of the motor", "a1")])
def test_an_action_that_has_a_short_name_goes_by_it(policy: Policy, name: str, shown: str) -> None:
    named = replace(policy, header=replace(policy.header, action_names=(name,)))
    playback = with_gears(play_back(named, trained_in(policy), "greedy", frames=0), 0, 1)
    assert tracks(playback, legend(playback))[1].y.label == shown
