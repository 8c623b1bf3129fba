"""One episode to look at: what is shown is what was played."""

import base64
import io
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lowgear import LowgearError, envs
from lowgear.config.run import resolve
from lowgear.config.tasks import find
from lowgear.evaluation.evaluate import play_policies, starts, summarise
from lowgear.policy.controller import Controller
from lowgear.policy.file import Policy
from lowgear.report import video
from lowgear.report.film import page_frames, stills
from lowgear.report.matplotlib_figure import save
from lowgear.report.playback import Playback, play_back
from lowgear.report.simulator import Simulator, open_simulator
from lowgear.report.style import COLOURS
from lowgear.report.timeline import describe, gear_values, legend, tracks, window
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


def drawn(policy: Policy, frames: int) -> Playback:
    pytest.importorskip("pygame", reason="classic control is drawn by pygame, of the extra gym")
    with closing(open_simulator(policy.header, False)) as simulator:
        assert simulator.render_error is None
        return play_back(policy, simulator, "greedy", frames=frames)


def test_the_page_can_put_every_frame_together_again(policy: Policy) -> None:
    playback = drawn(policy, 20)
    count = len(playback.frames)
    assert count == -(-playback.episode.steps // playback.every) <= 20
    assert playback.step_s == pytest.approx(1 / 30)
    found = page_frames(playback, 10_000_000)
    assert found is not None
    assert (len(found["tiles"]), found["every"]) == (count, playback.every)
    ground = picture_of(found["background"])
    assert (found["width"], found["height"]) == ground.size == (600, 400)
    for number, (left, top, data) in enumerate(found["tiles"]):
        whole = ground.copy()
        if data:
            whole.paste(picture_of(data), (left, top))
        away = np.abs(np.asarray(whole).astype(int) - np.asarray(playback.picture(number)))
        assert away.mean() < 2
    few = page_frames(playback, len(found["tiles"][1][2]) * 4)
    assert few is not None
    assert 2 <= len(few["tiles"]) < count
    assert few["tiles"] == found["tiles"][:: few["every"] // playback.every]


def picture_of(data: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(data.split(",")[1]))).convert("RGB")


@pytest.mark.parametrize("kind", ["webp", "gif"])
def test_a_video_lasts_as_long_as_the_simulation(policy: Policy, tmp_path: Path, kind: str) -> None:
    playback = drawn(policy, 20)
    with Image.open(video.write(playback, tmp_path / f"film.{kind}")) as moving:
        assert moving.size == (600, 438)
        lasted = 0
        for number in range(moving.n_frames):  # type: ignore[attr-defined]
            moving.seek(number)
            moving.load()
            lasted += moving.info["duration"]
        # Frames that do not differ are one longer frame.
        assert 1 < moving.n_frames <= len(playback.frames)  # type: ignore[attr-defined]
    whole_s = len(playback.frames) * playback.every * playback.step_s
    assert lasted / 1000 == pytest.approx(whole_s, rel=0.02)
    assert stills(playback, 3)[0][0] == 0
    assert len(stills(playback, 3)) == 3


def test_a_video_of_another_kind_is_refused_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(LowgearError, match=r"film.avi: a video's name ends in .webp, .gif, .mp4"):
        video.check_kind(tmp_path / "film.avi")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(LowgearError, match=r"pip install 'lowgear\[video\]'"):
        video.check_kind(tmp_path / "film.mp4")


def test_without_frames_there_is_no_video_but_a_timeline(policy: Policy, tmp_path: Path) -> None:
    playback = play_back(policy, trained_in(policy), "greedy")
    assert (page_frames(playback, 1_000_000), stills(playback, 5)) == (None, [])
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
    gears, action, *others = tracks(playback, legend(playback))
    assert [chart.y.label for chart in others] == ["reward", "value", "lead"]
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


def test_values_are_the_masters_and_hold_until_it_is_asked_again(policy: Policy) -> None:
    playback = play_back(policy, trained_in(policy), "greedy", frames=0)
    values, episode = gear_values(playback), playback.episode
    assert values is not None
    at = np.flatnonzero(episode.asked)
    # Choices are gear 0 and 1 for each period in turn.
    np.testing.assert_allclose(values[at, 0], episode.values[at, 0::2].max(axis=1), rtol=1e-6)
    np.testing.assert_allclose(values[at, 1], episode.values[at, 1::2].max(axis=1), rtol=1e-6)
    assert (values[at].argmax(axis=1) == episode.gear[at]).all()
    for start, end in zip(at, [*at[1:], episode.steps], strict=True):
        assert (values[start:end] == values[start]).all()


def test_a_gear_that_holds_is_shown_by_its_name(tmp_path: Path) -> None:
    policy = random_policy(resolve(find(TASK), steps=2000, gears=("hold", 8, 64)), 0)
    policy.weights.master[-1][1][0, ::3] += 5  # it holds where it can
    playback = play_back(policy, trained_in(policy), "greedy", frames=0).until(120)
    values, gear = gear_values(playback), playback.episode.gear
    assert values is not None
    assert gear[0] > 0
    assert (gear == 0).any()
    assert np.isfinite(values).all()
    assert values[0, 0] == values[0, 1:].min()
    held = np.flatnonzero(gear == 0)
    np.testing.assert_array_equal(playback.episode.action[held], playback.episode.action[held - 1])
    gears, _, _, _, lead = tracks(playback, legend(playback))
    assert [series.label.split(":")[0] for series in gears.series][:3] == [
        "hold, the last action again",
        "small gear, 8 units",
        "large gear, 64 units",
    ]
    assert [series.style.colour for series in lead.series] == [COLOURS["hold"][0], COLOURS["large"][0]]
    assert lead.series[1].y[-1] == pytest.approx(values[-1, 2] - values[-1, 1], rel=1e-3)
    assert save(describe(playback), tmp_path)


def test_a_gear_that_was_never_picked_has_no_values(policy: Policy) -> None:
    alone = replace(policy, header=replace(policy.header, forced_gear=0))
    playback = play_back(alone, trained_in(alone), "greedy", frames=0)
    assert gear_values(playback) is None
    assert [chart.y.label for chart in tracks(playback, ())] == ["gear", "a1", "reward"]


@pytest.mark.parametrize(("name", "shown"), [("torque", "torque"), ("torque of the motor", "a1")])
def test_an_action_that_has_a_short_name_goes_by_it(policy: Policy, name: str, shown: str) -> None:
    named = replace(policy, header=replace(policy.header, action_names=(name,)))
    playback = with_gears(play_back(named, trained_in(policy), "greedy", frames=0), 0, 1)
    assert tracks(playback, legend(playback))[1].y.label == shown
