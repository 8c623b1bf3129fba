"""`lowgear bench train` on real environments for half a second; nothing here depends on how fast the machine is."""

import json
import time
from dataclasses import replace

import pytest
from click.testing import CliRunner

from lowgear import LowgearError, envs
from lowgear.bench.floor import update_flops
from lowgear.bench.table import print_train
from lowgear.bench.train import measure
from lowgear.bench.train_cases import CASES, Case
from lowgear.commands.cli import cli
from lowgear.envs import make_env
from lowgear.policy.gears import gears_of

NAP_S = 0.0005
SHARES = ("share_environment", "share_acting", "share_waiting", "share_other")


def tiny(config):
    return replace(config, recipe=replace(config.recipe, replay=4096, batch=16, random_steps=128))


def bench(*arguments):
    return CliRunner().invoke(cli, ["bench", "train", *arguments])


class Slow:
    """Real environments that nap before each step, and remember whether they were closed."""

    def __init__(self, env):
        self.env, self.closed = env, False
        self.spec, self.num_envs, self.goal_rule, self.reset = env.spec, env.num_envs, env.goal_rule, env.reset

    def step(self, actions):
        time.sleep(NAP_S)
        return self.env.step(actions)

    def step_bare(self, actions):
        time.sleep(NAP_S)
        self.env.step_bare(actions)

    def close(self):
        self.env.close()
        self.closed = True


CASE = Case("cartpole-swingup", "paper", (4, 8), 2)


@pytest.fixture(scope="module")
def report():
    """What the command prints as JSON, of a case with smaller batches and slower environments."""
    made, of_case = [], Case.config

    def slow(config, count):
        made.append(Slow(make_env(config, count)))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Case, "config", lambda case: tiny(of_case(case)))
        patch.setattr(envs, "make_env", slow)
        options = ["--recipe", "paper", "--gears", "4,8", "--agents", "2", "--seconds", "0.5", "--json"]
        result = bench("cartpole-swingup", *options)
    assert result.exit_code == 0, result.output
    assert [env.closed for env in made] == [True]
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def found(report):
    (case,) = report["cases"]
    return case


def test_what_was_run_and_with_what(report, found):
    assert report["provenance"]["versions"]["jax"]
    assert report["cores"] > 0
    assert (found["task"], found["recipe"], found["gears"]) == ("cartpole-swingup", "paper", [4, 8])
    assert (found["agents"], found["environments"], found["backend"]) == (2, 1, report["backend"])


def test_the_rate_is_steps_over_time(found):
    assert found["seconds"] >= 0.5
    assert found["agent_steps"] > 0
    assert found["agent_steps"] % (2 * 64) == 0  # whole rounds of both agents
    assert found["agent_steps_per_s"] == pytest.approx(found["agent_steps"] / found["seconds"])


def test_the_shares_are_of_the_loop(found):
    assert all(0 <= found[name] <= 1 for name in (*SHARES, "learner_busy_share"))
    assert sum(found[name] for name in SHARES) == pytest.approx(1)
    assert found["share_environment"] * found["seconds"] >= NAP_S * found["agent_steps"] / 2


def test_the_learner_keeps_up_with_the_loop(found):
    busy_s = found["learner_busy_share"] * found["seconds"]
    assert found["learner_updates_per_s"] * busy_s == pytest.approx(found["agent_steps"])  # one update for each step


def test_each_side_alone_bounds_the_loop(found):
    assert 0 < found["environments_alone_per_s"] < 2 / NAP_S
    assert found["learner_alone_per_s"] > 0
    slower = min(found["environments_alone_per_s"], found["learner_alone_per_s"])
    assert found["share_of_slower"] == pytest.approx(found["agent_steps_per_s"] / slower)
    assert found["groups"] == 1  # where the learner has no device of its own


def test_the_distance_to_the_machines_rate(found):
    flops = update_flops(tiny(CASE.config()), 5, 1)
    assert found["update_mflop"] == flops / 1e6
    rate = max(found["gemm_gflop_per_s_before"], found["gemm_gflop_per_s_after"])
    assert found["gemm_gflop_per_s"] == rate > 0
    for name, per_s in (("loop", "agent_steps_per_s"), ("learner", "learner_updates_per_s")):
        assert found[f"{name}_share_of_gemm"] == pytest.approx(found[per_s] * flops / (rate * 1e9))


def test_sizes_and_start(found):
    assert found["startup_s"] > 128 * NAP_S
    width = 2 * 5 + 1 + 6  # floats in a row, and its place in the lists of two gears and a master
    assert found["replay_bytes"] >= 2 * 4096 * 4 * (width + 3)
    assert found["peak_resident_bytes"] > found["replay_bytes"]


def test_the_table_fits(report, found, capsys):
    long = found | {"task": "envpool:MountainCarContinuousWithALongName-v0", "environments": 4, "agents": 64}
    large = long | {"peak_device_bytes": 5 * 2**30, "agent_steps_per_s": 69_000.0}
    print_train(report | {"cores": 2, "cases": [found, large]})
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 100
    words = " ".join(shown.split())
    for word in ("2 cores, ", "jax 0.", "cartpole-swingup paper 4/8", "69,000", "5,120", "steps/s: environment"):
        assert word in words


def test_a_run_that_is_too_short():
    config, told = replace(tiny(CASE.config()), steps=64), []
    env = Slow(make_env(config, 2))
    with pytest.raises(LowgearError, match="64 steps of cartpole-swingup are over before"):
        measure(config, env, 0.5, told.append)
    assert env.closed
    assert told == ["the machine's rate", "warming up, 64 steps"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["walker-stan"], "did you mean walker-stand"),
        (["walker-stand", "--agents", "0"], "--agents 0: write 1 or more"),
        (["walker-stand", "--agents", "1,x"], "--agents '1,x' is not a list"),
        (["walker-stand", "--seconds", "0"], "--seconds 0: write a number above 0"),
        (["walker-stand", "--seconds", "nan"], "--seconds nan"),
        (["walker-stand", "--recipe", "modem"], "unknown recipe 'modem': write modern or paper"),
        (["walker-stand", "--gears", "64,hold,hold"], "hold is there twice"),
        (["walker-stand", "--environments", "3"], "3 environments cannot share"),
        (["--agents", "2"], "--agents 2 is for a case of your own"),
    ],
)
def test_bad_input_is_named(arguments, named):
    result = bench(*arguments)
    assert isinstance(result.exception, LowgearError), result.output
    assert named in str(result.exception)
    assert result.stdout == ""


def test_the_cases_of_our_own():
    shapes = [(c.task, c.recipe.name, c.gears, len(c.agents)) for c in (case.config() for case in CASES)]
    assert len(set(shapes)) == len(CASES) == 5
    assert ("Walker2d-v3", "paper", gears_of((64, 256)), 1) in shapes
    config = Case("gym:Pendulum-v1", "paper", (8, 64), 3, 4).config()
    assert (len(config.agents), config.environments) == (3, 12)  # no preset is needed
