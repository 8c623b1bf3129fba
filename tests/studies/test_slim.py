"""`lowgear slim`: the whole way on small networks, and what it makes of its numbers."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.config.gears import freeze
from lowgear.policy.cost import policy_flops
from lowgear.policy.file import load
from lowgear.studies import slimmed
from lowgear.studies.slim import Candidate, choose
from lowgear.studies.slimmed import Episodes
from tests.fixtures.foreign import FOLDER
from tests.fixtures.teachers import teacher

EXAMPLE = Path(__file__).parents[2] / "examples" / "slim"
SMALL = ["--widths", "2", "--labels", "1000", "--steps", "192", "--seeds", "0", "--episodes", "4"]
SMALL += ["--set", "master_batch=16", "--set", "random_steps=64", "--set", "master_units=4"]
TD3 = FOLDER / "sb3-td3.zip"


def slim(path, out, *options, task="gym:Pendulum-v1"):
    return CliRunner().invoke(cli, ["slim", str(path), task, *SMALL, "--out", str(out), *options])


def candidate(name, meets, margin, flops):
    return Candidate(name, freeze(teacher()).read, meets, margin, flops)


def test_the_cheapest_that_keeps_the_return_is_chosen_or_the_nearest():
    cheap, dear = candidate("cheap", True, 1.0, 10), candidate("dear", True, 50.0, 20)
    unsure = candidate("unsure", False, 2.0, 5)
    assert choose([dear, unsure, cheap]) is cheap
    assert choose([unsure, candidate("worse", False, -3.0, 1)]) is unsure


@pytest.mark.parametrize(("score", "reference", "share"), [(97, 100, 0.97), (-103, -100, 0.97), (-50, -100, 1.5)])
def test_what_is_kept_of_a_score(score, reference, share):
    assert slimmed.kept(score, reference) == pytest.approx(share)
    assert slimmed.kept(score, 0.0) is None


def episodes(scores, flops, large_share=0.0):
    count = len(scores)
    return Episodes(np.array(scores, float), np.full(count, flops), np.full(count, large_share), np.full(count, 10.0))


def test_rows_are_against_the_policy_itself_from_the_same_starts():
    large, small = (freeze(teacher(units=units)).read for units in (8, 2))
    flops = large.header.cost.gear_flops[0]
    starts = [10.0, 1000.0, 500.0]  # which differ far more than the controllers do
    played = {
        slimmed.ITSELF: [episodes(starts, flops)],
        "2 units, distilled": [episodes([0.9 * start for start in starts], small.header.cost.gear_flops[0])],
    }
    first, second = slimmed.rows({slimmed.ITSELF: large, "2 units, distilled": small}, played)
    assert (first["kept"], first["flops_reduction"], first["large_share"]) == (1.0, 0.0, None)
    assert second["kept"] == pytest.approx(0.9)
    assert second["kept_interval"] == pytest.approx([0.9, 0.9])
    assert second["score_mean"] == pytest.approx(453)
    assert second["flops_reduction"] == pytest.approx(1 - policy_flops(2, 1, 2) / policy_flops(2, 1, 8))
    assert second["bytes"] == 4 * ((2 * 2 + 2) + (2 * 2 + 2) + (2 * 2 + 2))


def row(name, share, large_share=None, saved=0.9):
    return {
        "name": name,
        "kept": share,
        "kept_interval": [share - 0.01, share + 0.01],
        "large_share": large_share,
        "flops_reduction": saved,
        "score_mean": 1.0,
    }


@pytest.mark.parametrize(
    ("chosen", "meets", "said"),
    [
        ("small", True, "A distilled small policy alone suffices: small, keeps 98.0% [97.0, 99.0]"),
        ("switching", True, "Switching pays: it keeps 99.0% [98.0, 100.0]"),
        ("switching", False, "Nothing here certainly keeps 97% of the score. The nearest, switching, keeps 99.0%"),
    ],
)
def test_the_words_say_who_suffices(chosen, meets, said):
    rows = [row(slimmed.ITSELF, 1.0), row("small", 0.98), row("switching", 0.99, 0.2)]
    assert said in slimmed.words(rows, chosen, meets, 0.97)[0]


def test_less_than_was_demanded_on_fresh_starts_is_said():
    rows = [row(slimmed.ITSELF, 1.0), row("small", 0.96)]
    assert "less than the 97%" in slimmed.words(rows, "small", True, 0.97)[1]


def test_the_example_goes_from_another_librarys_file_to_c_and_nothing_is_done_twice(tmp_path, monkeypatch):
    options = [f"LOWGEAR={sys.executable} -m lowgear", f"BUILD={tmp_path}", f"OPTIONS={' '.join(SMALL)}"]
    made = subprocess.run(["make", "-s", "-C", EXAMPLE, *options], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert "Stable-Baselines3 PPO" in made.stdout
    out = tmp_path / "pendulum"
    report = json.loads((out / "slim.json").read_text())
    names = [one["name"] for one in report["controllers"]]
    assert names == [slimmed.ITSELF, "2 units, distilled", "switching, 2 units or the policy"]
    assert report["chosen"] in names[1:]
    large = report["controllers"][0]
    assert large["flops_per_step"] == policy_flops(3, 1, 64)
    assert large["score_mean"] > -600  # it swings up: random actions make -1,200
    assert [len(one["score_by_seed"]) for one in report["controllers"]] == [5] * 3
    assert report["controllers"][1]["flops_per_step"] == policy_flops(3, 1, 2)
    assert load(out / "controller.safetensors").header.task == "gym:Pendulum-v1"
    evaluation = json.loads(Path(report["run"], "evaluation.json").read_text())["agents"]
    assert [row["variant"] for row in evaluation][-2:] == ["small-only", "large-only"]
    assert evaluation[-1]["flops_reduction"] == 0
    for file in ("slim.png", "slim.svg", "report/index.html"):
        assert (out / file).stat().st_size > 1000
    monkeypatch.setattr("lowgear.studies.program.Training", None)
    monkeypatch.setattr("lowgear.studies.slim.distil", None)
    normalise = ["--normalise", str(EXAMPLE / "pendulum.npz")]
    again = slim(EXAMPLE / "pendulum.zip", out, *normalise, "--no-report", "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["controllers"] == report["controllers"]


def test_a_policy_of_ours_is_slimmed_too(tmp_path):
    path = tmp_path / "large.safetensors"
    freeze(teacher(obs_dim=3, units=8, task="gym:Pendulum-v1", action_low=(-2.0,), action_high=(2.0,))).read.save(path)
    result = slim(path, tmp_path / "out", "--no-report", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["source"] == "Lowgear"


@pytest.mark.parametrize(
    ("path", "options", "named"),
    [
        (TD3, ["--keep-return", "97"], "--keep-return 97"),
        (TD3, ["--episodes", "1"], "--episodes 1"),
        (TD3, ["--labels", "10"], "--labels 10"),
        (TD3, ["--widths", "0,4"], "--widths 0,4"),
        (TD3, ["--widths", "4096"], "no less than the policy's own"),
        (FOLDER / "missing.zip", [], "missing.zip"),
        (FOLDER / "missing.safetensors", [], "missing.safetensors"),
        (FOLDER / "actions.json", [], "actions.json"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path, path, options, named):
    result = slim(path, tmp_path / "none", *options)
    assert isinstance(result.exception, LowgearError)
    assert named in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not (tmp_path / "none").exists()


def test_a_policy_of_another_environment_is_refused(tmp_path):
    result = slim(TD3, tmp_path / "none", task="gym:MountainCarContinuous-v0")
    assert "it sees 3 numbers, but gym:MountainCarContinuous-v0 shows 2" in str(result.exception)
    path = tmp_path / "other.safetensors"
    freeze(teacher(obs_dim=2)).read.save(path)
    result = slim(path, tmp_path / "none")
    assert "is of another task than gym:Pendulum-v1" in str(result.exception)
    result = slim(path, tmp_path / "none", "--normalise", "stats.npz")
    assert "--normalise is for files of other libraries" in str(result.exception)
    assert not (tmp_path / "none").exists()
