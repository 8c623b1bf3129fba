"""`lowgear watch`: a video where there is no display, a window where there is one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from PIL import Image

from lowgear import LowgearError
from lowgear.commands.watch import watch
from lowgear.config.run_directory import RunDirectory
from lowgear.report import playback
from tests.fixtures.runs import make_run


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "car", variants=("asymmetric", "small-only"), seeds=(0,))


@pytest.fixture(autouse=True)
def no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    """And few frames: those of a whole episode take a minute to draw."""
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setattr(playback.play_back, "__defaults__", (0, 12))


def call(*options: object) -> Result:
    return CliRunner().invoke(watch, [str(option) for option in options], catch_exceptions=False)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there always is a display")
def test_without_a_display_it_writes_a_video_and_says_where(path: Path) -> None:
    pytest.importorskip("pygame", reason="classic control is drawn by pygame, of the extra gym")
    done = call(path, "--agent", 1)
    assert Path(done.stdout.strip()) == path / "watch" / "agent1.webp"
    assert "small-only" in done.stderr
    with Image.open(path / "watch" / "agent1.webp") as moving:
        assert moving.n_frames > 1  # type: ignore[attr-defined]


def test_a_policy_file_at_another_setting(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("pygame", reason="classic control is drawn by pygame, of the extra gym")
    done = call(RunDirectory(path).policy(0), "--cost-coefficient", 0.0005, "--out", tmp_path / "film.gif")
    assert Path(done.stdout.strip()) == tmp_path / "film.gif"
    assert "λ 0.0005" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--out", "film.avi"), "a video's name ends in .webp, .gif, .mp4"),
        (("--out", "nowhere/film.webp"), "there is no directory nowhere"),
        (("--seed", -1), "--seed -1: write 0 or more, 2147483647 at most"),
        (("--agent", 7), "--agent 7"),
        (("--cost-coefficient", 9), "outside what the agent was trained for"),
    ],
)
def test_wrong_ways_are_errors_that_leave_nothing(path: Path, options: tuple[object, ...], said: str) -> None:
    before = sorted(path.rglob("*"))
    with pytest.raises(LowgearError, match=said):
        call(path, *options)
    assert sorted(path.rglob("*")) == before


WINDOW = """
import sys
from pathlib import Path
from lowgear.policy.file import load
from lowgear.report.playback import play_back
from lowgear.report.simulator import open_simulator
from lowgear.report.window import EpisodeWindow, has_display
assert has_display()
policy = load(Path(sys.argv[1]))
simulator = open_simulator(policy.header, False)
playback = play_back(policy, simulator, "greedy", 0, 0)
window = EpisodeWindow(playback, simulator, 0)
root = window._root
root.after(600, lambda: root.event_generate("<space>"))
root.after(1500, lambda: root.event_generate("<Escape>"))
root.focus_force()
window.show()
assert 0 < window.step < playback.episode.steps, window.step
"""


@pytest.mark.skipif(shutil.which("xvfb-run") is None, reason="no Xvfb: on Debian `apt-get install xvfb xauth`")
def test_a_window_shows_the_episode_in_its_own_time_until_it_is_closed(path: Path) -> None:
    pytest.importorskip("tkinter")
    pytest.importorskip("pygame", reason="classic control is drawn by pygame, of the extra gym")
    file = RunDirectory(path).policy(0)
    environment = os.environ | {"SDL_VIDEODRIVER": "dummy", "MUJOCO_GL": "egl"}
    subprocess.run(
        ["xvfb-run", "-a", sys.executable, "-c", WINDOW, str(file)], check=True, timeout=120, env=environment
    )
