"""The loop: exact resumption, one chunk of lag, damaged files, divergence, and what it learns."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from lowgear import LowgearError, envs
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import Task
from lowgear.policy.dial import Dial
from lowgear.policy.file import load
from lowgear.training.checkpoint import read_latest
from lowgear.training.loop import Training
from tests.fixtures.compilations import compilations
from tests.fixtures.probes import Counting, Valley
from tests.fixtures.training import SMALL, Hear, StopAt, policy_bytes, without_speed

TASK = Task("valley", "gym", "valley", cost_coefficient=0.01)


def make(config, directory=None):
    return Training(config, envs.wrap(Valley, config.environments), lambda n: envs.wrap(Valley, n), directory)


def small_config(recipe="paper", **options):
    settings = {"steps": 512, "gears": (4, 8), "overrides": SMALL, "evaluate_every": 256, "evaluate_episodes": 1}
    return resolve(TASK, recipe, **(settings | {"checkpoint_every": 128} | options))


def run(path, config, stop_at=None):
    directory = RunDirectory(path)
    if not path.exists():
        directory.create(config, {})
    training = make(config, directory)
    try:
        training.run([StopAt(stop_at)] if stop_at else [])
    finally:
        training.close()
    return directory


# Checkpoints fall within picks of 3 and 7 steps, and within episodes, each at a position of its own.
DIALS = small_config(
    "modern",
    variants=("asymmetric", "fixed-cost", "separate-buffers"),
    cost_coefficients=(0.001, 0.1),
    overrides=SMALL | {"periods": (2, 3, 7), "master_units": 4},
)


# All that goes by running statistics. Checkpoints fall between chunks whose rows the rings no longer all hold.
STATISTICS = {"normalise_observations": True, "scale_rewards": True, "lenient_twins": True, "actor_every": 2}


@pytest.mark.parametrize("environments", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_a_broken_run_with_running_statistics_ends_as_an_unbroken_one(tmp_path, environments):
    overrides = SMALL | STATISTICS | {"replay": 160, "environments": environments, "actor_learning_rate": 1e-3}
    config = small_config("modern", steps=384, variants=("asymmetric", "large-only"), overrides=overrides)
    whole = run(tmp_path / "whole", config)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "broken", config, 288)
    latest = read_latest(RunDirectory(tmp_path / "broken"))
    assert latest.steps == 256  # more than the rings hold: statistics can't be found again in the rows
    broken = run(tmp_path / "broken", config)
    assert policy_bytes(broken, 2) == policy_bytes(whole, 2)
    assert without_speed(broken) == without_speed(whole)


def test_several_updates_for_each_step_change_what_is_learned_and_nothing_else(tmp_path):
    settings = SMALL | {"actor_every": 2}
    once = run(tmp_path / "once", small_config("modern", overrides=settings))
    config = small_config("modern", overrides=settings | {"updates_per_step": 3})
    whole = run(tmp_path / "whole", config)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "broken", config, 288)
    broken = run(tmp_path / "broken", config)
    assert policy_bytes(broken, 1) == policy_bytes(whole, 1) != policy_bytes(once, 1)
    assert without_speed(broken) == without_speed(whole)
    steps = 512 - SMALL["random_steps"]  # beside which there were updates
    assert (read_latest(once).updates, read_latest(whole).updates) == (steps, 3 * steps)
    latest = json.loads(once.latest.read_text()) | {"updates": 513}
    once.latest.write_text(json.dumps(latest))
    with pytest.raises(LowgearError, match="updates are 513, more than the 512 of 512 steps"):
        run(once.path, once.read_config())


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    return run(tmp_path_factory.mktemp("unbroken") / "run", DIALS)


@pytest.mark.parametrize(
    "stop_at", [32, 256, pytest.param(160, marks=pytest.mark.slow), pytest.param(480, marks=pytest.mark.slow)]
)
def test_a_broken_run_ends_as_an_unbroken_one(tmp_path, unbroken, stop_at):
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "broken", DIALS, stop_at)
    broken = run(tmp_path / "broken", DIALS)
    assert policy_bytes(broken, 4) == policy_bytes(unbroken, 4)
    assert without_speed(broken) == without_speed(unbroken)


def test_a_run_with_dials_and_periods_keeps_what_it_is(unbroken):
    assert unbroken.read_config() == DIALS
    headers = [load(unbroken.policy(agent)).header for agent in range(4)]
    assert [header.dial for header in headers] == [
        Dial(0.001, 0.1),
        Dial(0.001, 0.001),
        Dial(0.1, 0.1),
        Dial(0.001, 0.1),
    ]
    assert {header.periods for header in headers} == {(2, 3, 7)}
    preset = TASK.cost_coefficient
    assert [header.cost_coefficient for header in headers] == [preset, 0.001, 0.1, preset]
    for line in without_speed(unbroken):
        if line["kind"] == "evaluation":
            assert line["cost_coefficient"] == headers[line["agent"]].cost_coefficient
            assert 2 <= line["period_mean"] <= 7


def test_resume_with_a_ring_that_has_wrapped(tmp_path):
    config = small_config(steps=768, overrides=SMALL | {"replay": 160})
    whole = run(tmp_path / "whole", config)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "broken", config, 704)
    # Rows that the ring no longer holds are no longer kept.
    kept = sum(path.stat().st_size for path in (tmp_path / "broken" / "checkpoint").glob("rows-*.bin"))
    assert kept < 768 * (2 * 1 + 1 + 6) * 4
    assert policy_bytes(run(tmp_path / "broken", config), 1) == policy_bytes(whole, 1)


@pytest.mark.faults
def test_killed_at_any_moment_and_resumed(tmp_path):
    """The real thing: kill -9 on the command, twice, then let it finish."""
    options = ["--recipe", "paper", "--steps", "1280", "--gears", "2,4", "--evaluate-every", "640"]
    options += ["--evaluate-episodes", "1", "--set", "random_steps=256", "--checkpoint-every", "256"]
    command = [sys.executable, "-m", "lowgear", "train", "cartpole-swingup", *options]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    broken = RunDirectory(tmp_path / "broken")
    again = [sys.executable, "-m", "lowgear", "train", "--resume", str(broken.path)]
    with subprocess.Popen([*command, "--out", str(tmp_path / "whole")], **quiet) as whole:
        for number in range(2):
            process = subprocess.Popen(again if number else [*command, "--out", str(broken.path)], **quiet)
            before = read_latest(broken)
            deadline = time.monotonic() + 120
            while read_latest(broken) == before and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.05 * number)
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert read_latest(broken) != before
        subprocess.run(again, check=True, capture_output=True)
    assert whole.returncode == 0
    assert policy_bytes(broken, 1) == policy_bytes(RunDirectory(tmp_path / "whole"), 1)
    # A finished run says so and changes nothing.
    done = subprocess.run(again, check=True, capture_output=True, text=True)
    assert "finished" in done.stderr


def test_one_chunk_of_lag(monkeypatch):
    """The weights that act are those from before the chunk that is being learned from."""
    config = small_config(steps=256, evaluate_every=0)
    training = make(config)
    acted, learned = [], []
    collect, published = training.collector.collect, training.learner.published

    def spy_collect(*arguments):
        acted.append(training.collector.weights.master[0][0].copy())
        return collect(*arguments)

    def spy_published():
        found = published()
        learned.append(found.networks[-1][0][0].copy())
        return found

    monkeypatch.setattr(training.collector, "collect", spy_collect)
    monkeypatch.setattr(training.learner, "published", spy_published)
    start = training.collector.weights.master[0][0].copy()
    training.run()
    training.close()
    # Learning starts with chunk 1, which completes the random steps. Chunks 0 to 2 act with the first weights, chunk
    # 3 + i with those after i + 1 rounds of updates; nothing is left to act after the last two rounds.
    assert all(np.array_equal(weights, start) for weights in acted[:3])
    for weights, after in zip(acted[3:], learned, strict=False):
        assert np.array_equal(weights, after)
    assert len(learned) == len(acted) - 1 == 7
    np.testing.assert_array_equal(training.policy(0).weights.master[0][0], learned[-1])
    # Where the time went.
    timings = training.timings
    assert timings.rounds == 7
    assert 0 < timings.environment < timings.collecting
    assert timings.first_round_at is not None
    assert timings.learning > 0
    assert timings.waiting > 0


@pytest.mark.parametrize("settings", [{}, STATISTICS], ids=["plain", "statistics"])
def test_nothing_is_compiled_after_the_first_round(settings):
    training = make(small_config(steps=384, evaluate_every=0, overrides=SMALL | settings))
    heard = []

    class Listen(Hear):
        def on_steps(self, steps):
            heard.append((steps, list(names)))

    with compilations() as names:
        training.run([Listen()])
    training.close()
    # The random steps take two chunks; the third is collected while the first round compiles.
    assert {steps: len(found) for steps, found in heard if steps >= 96} == {
        steps: len(heard[2][1]) for steps in range(96, 385, 32)
    }
    assert len(heard[2][1]) > 0


def test_the_same_seed_is_the_same_run_and_another_is_not(tmp_path):
    config = small_config(steps=256)
    first, second = run(tmp_path / "a", config), run(tmp_path / "b", config)
    assert policy_bytes(first, 1) == policy_bytes(second, 1)
    other = run(tmp_path / "c", small_config(steps=256, seeds=(1,)))
    assert policy_bytes(first, 1)[0] != policy_bytes(other, 1)[0]


@pytest.mark.slow
def test_a_full_disk_is_an_error_and_the_run_goes_on_later(tmp_path):
    path = tmp_path / "run"
    options = ["--recipe", "paper", "--steps", "1024", "--gears", "2,4", "--evaluate-every", "0"]
    command = [sys.executable, "-m", "lowgear", "train", "cartpole-swingup", *options, "--checkpoint-every", "512"]
    limited = (
        "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000));"
        f"sys.argv = {['lowgear', *command[3:], '--out', str(path)]!r};"
        "runpy.run_module('lowgear', run_name='__main__')"
    )
    # Git, asked for the version, would fail to write its index too, and leave a lock behind.
    environment = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false", "GIT_INDEX_FILE": str(tmp_path / "index")}
    failed = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, env=environment)
    assert failed.returncode == 2
    assert "lowgear: error: could not write" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not list(path.rglob("*.partial"))
    subprocess.run([*command[:4], "--resume", str(path)], check=True, capture_output=True)
    assert RunDirectory(path).policy(0).exists()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return run(tmp_path_factory.mktemp("finished") / "run", small_config())


@pytest.fixture
def copied(tmp_path, finished):
    """A run of one's own to damage."""
    return RunDirectory(shutil.copytree(finished.path, tmp_path / "run"))


def test_a_checkpoint_of_another_shape_is_refused(copied):
    raw = json.loads(copied.config.read_text())
    copied.config.write_text(json.dumps(raw | {"gears": [4, 16]}))
    with pytest.raises(LowgearError, match="another task or version"):
        make(copied.read_config(), copied)


@pytest.mark.parametrize("damage", ["state", "rows", "latest", "config"])
def test_damaged_checkpoints_are_named(copied, damage):
    latest = read_latest(copied)
    path = {
        "state": copied.state(latest.number),
        "rows": copied.rows(latest.segments[0][0]),
        "latest": copied.latest,
        "config": copied.config,
    }[damage]
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(LowgearError, match=path.name):
        make(copied.read_config(), copied)


def test_divergence_is_an_error_not_a_nan_policy():
    config = small_config(steps=512, learning_rates=(1e30,), evaluate_every=0)
    training = make(config)
    with pytest.raises(LowgearError, match="learning rate"):
        training.run()
    training.close()


@pytest.mark.usefixtures("optimised")
def test_time_limits_are_bootstrapped_and_ends_are_not():
    """Rewards of 1 for ever: a critic that sees a time limit values on, one that sees an end does not."""

    class Ones(Counting):
        def _observe(self):
            return np.ones((self.num_envs, 2), np.float32)

        def step(self, actions):
            step = super().step(actions)
            return step._replace(reward=np.ones(self.num_envs, np.float32))

    task = Task("ones", "gym", "ones", gears=(4, 8), cost_coefficient=0.0)
    config = resolve(
        task,
        "paper",
        steps=4000,
        seeds=(0, 1),
        discounts=(0.9,),
        learning_rates=(3e-3,),
        overrides={"batch": 64, "critic_units": 32, "target_rate": 0.05},
        evaluate_every=0,
    )
    training, heard = Training(config, Ones([2, 2]), None), Hear()
    training.run([heard])
    training.close()
    ended, limited = (line["gear1_value"] for line in heard.lines[-2:])
    assert limited == pytest.approx(10, abs=2.5)  # 1 / (1 - 0.9), plus some entropy
    assert ended < 3.5  # every other step is a last one: v = 1 + 0.9 · v / 2, about 1.8


@pytest.mark.slow
def test_the_master_learns_when_the_large_gear_is_worth_its_price():
    """Only the large gear can follow the valley: free, it is used; dear, it is not."""
    task = Task("valley", "gym", "valley", gears=(1, 32))
    config = resolve(
        task,
        "paper",
        steps=6000,
        seeds=(0,),
        cost_coefficients=(0.0, 1.0),
        learning_rates=(3e-3,),
        discounts=(0.5,),
        overrides={"batch": 64, "critic_units": 32, "explore_share": 0.5},
        evaluate_every=6000,
        evaluate_episodes=10,
    )
    training = Training(config, envs.wrap(Valley, 2), lambda n: envs.wrap(Valley, n))
    training.run()
    training.close()
    free, dear = training.last_evaluation
    assert free["large_share"] > 0.8
    assert dear["large_share"] < 0.2
    assert free["return_mean"] > dear["return_mean"] + 2
