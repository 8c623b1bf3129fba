"""Runs whose gears hold the last action, are frozen or have other depths: what is collected, learned and kept."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lowgear import LowgearError, envs
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import find
from lowgear.policy.gears import HOLD, Gear, names, network
from lowgear.policy.networks import Clip, take
from lowgear.studies.program import Program
from lowgear.training.algorithm import collect_again
from lowgear.training.checkpoint import read_latest
from lowgear.training.collect import Collector
from lowgear.training.frozen import check_frozen
from lowgear.training.loop import Training
from lowgear.training.parallel_collector import ParallelCollector
from lowgear.training.setup import behaviour_of, learners_needed, method_of
from tests.fixtures.collecting import gather_all
from tests.fixtures.kinds import ALONE, policy_of_kind
from tests.fixtures.training import SMALL, StopsAt, policy_bytes, without_speed
from tests.fixtures.weights import KNOWN, random_weights

TASK = find("envpool:Pendulum-v1")
SIZES = {"obs_dim": 3, "act_dim": 1, "layout": (("", 3),), "action_low": (-2.0,), "action_high": (2.0,)}
IMPORT = replace(ALONE, task=TASK.name, **SIZES)
GEARS = (HOLD, network(3), network(5))
# Checkpoints, and stops, fall within picks of 7 steps and within episodes.
OVERRIDES = SMALL | {"master_units": 4, "environments": 2, "periods": (2, 7), "normalise_observations": True}


def config_of(gears, **options):
    settings = {"steps": 384, "evaluate_every": 192, "evaluate_episodes": 1, "checkpoint_every": 192}
    return resolve(TASK, gears=gears, overrides=OVERRIDES, **settings | options)


def frozen_file(folder, header=IMPORT):
    policy_of_kind(header).save(folder / "large.safetensors")
    return folder / "large.safetensors"


def go(directory, config=None, stop_at=None):
    if config is not None:
        directory.create(config, {})
    config = directory.read_config()
    make = lambda count: envs.make(TASK, count)  # noqa: E731
    training = Training(config, make(config.environments), make, directory)
    try:
        training.run([StopsAt(training, stop_at)] if stop_at else [])
    finally:
        training.close()
    return training


def test_every_kind_trains_and_goes_on_bit_for_bit(tmp_path):
    """Four kinds in one population, of every variant, stopped within episodes."""
    variants = ("asymmetric", "fixed-cost", "no-cost", "separate-buffers", "small-only", "large-only")
    config = config_of((frozen_file(tmp_path), "4x4x2", "hold", 3), variants=variants)
    assert names(config.gears) == "hold,3,frozen 4x3,4x4x2"
    whole = RunDirectory(tmp_path / "whole")
    trained = go(whole, config)
    assert {name.split("_")[0] for name in trained.pipeline.metrics} == {"gear1", "gear3", "master"}
    (tmp_path / "large.safetensors").unlink()  # the run has its own
    broken = RunDirectory(tmp_path / "broken")
    go(broken, config, stop_at=224)
    assert (read_latest(broken).steps, read_latest(broken).open_steps) == (224, 32)
    go(broken)
    assert policy_bytes(broken, 6) == policy_bytes(whole, 6)
    assert without_speed(broken) == without_speed(whole)
    wanted = policy_of_kind(IMPORT).weights
    for policy in whole.load_policies():
        assert policy.header.gears == config.gears
        assert policy.weights.gears[0] == []
        for found, own in zip(policy.weights.gears[2], wanted.gears[0], strict=True):
            np.testing.assert_array_equal(found[0], own[0])
        np.testing.assert_array_equal(policy.weights.clips[2].low, wanted.clips[0].low)


def test_only_the_master_learns_around_a_frozen_policy(tmp_path):
    config = replace(config_of(("hold", frozen_file(tmp_path))), evaluate_every=0, steps=160)
    config = replace(config, recipe=replace(config.recipe, known_prices=False))
    spec = envs.make(TASK, 1).spec
    method = method_of(config, spec)
    assert method.gear_learners == ()
    assert method.master.inputs == 3 + 1 + 1
    assert learners_needed(config, method) == (0,)
    training = go(RunDirectory(tmp_path / "run"), config)
    assert {name.split("_")[0] for name in training.pipeline.metrics} == {"master"}
    policy = RunDirectory(tmp_path / "run").load_policies()[0]
    assert policy.weights.master[0][0].shape == (1, 3 + 1 + 1, 4)  # the action, the dial's position
    forced = replace(config, agents=tuple(replace(agent, variant="large-only") for agent in config.agents))
    assert learners_needed(forced, method) == (0,)


def collector_of(gears=GEARS, environments=2, **options):
    """Of two agents of random weights, in Pendulum."""
    config = resolve(TASK, seeds=(1, 2), steps=1000, gears=(2, 4), overrides={"environments": environments})
    header = replace(KNOWN, gears=gears, obs_dim=3, act_dim=1)
    weights = random_weights(2, header=header)
    clips = tuple(
        Clip(-np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)) if gear.clips else None for gear in gears
    )
    behaviour = behaviour_of(config)._replace(kinds=gears, **options)
    return envs.make(TASK, 2 * environments), behaviour, weights._replace(clips=clips if any(clips) else ())


@pytest.mark.parametrize("random_steps", [0, 1_000])
def test_rows_keep_the_action_before_and_hold_repeats_it(random_steps):
    """Also while actions are random: whoever holds does what was really done before."""
    collector = Collector(*collector_of(random_steps=random_steps))
    rows, episodes = gather_all(collector, 450)
    columns = collector.columns
    assert len(episodes) == 2 * 2 * 2
    gear = rows[..., columns.choice].astype(int) % 3
    first = np.zeros(rows.shape[:3], bool)
    first[:, :, 0] = True
    first[:, :, 1:] = rows[:, :, :-1, columns.ended] > 0
    action, before = rows[..., columns.action], rows[..., columns.last_action]
    assert first.sum() == 4 * 3
    assert (gear[first] > 0).all()  # nothing was done yet
    np.testing.assert_array_equal(before[first], 0)
    np.testing.assert_array_equal(before[:, :, 1:][~first[:, :, 1:]], action[:, :, :-1][~first[:, :, 1:]])
    np.testing.assert_array_equal(action[gear == 0], before[gear == 0])
    assert 0.1 < (gear == 0).mean() < 0.6
    again = Collector(*collector_of(random_steps=random_steps))
    assert collect_again(again, rows) == episodes
    for name in ("choice", "age", "last_action", "fresh", "position"):
        np.testing.assert_array_equal(getattr(again.controller, name), getattr(collector.controller, name))


def test_frozen_gears_act_as_they_are_while_others_act_at_random():
    gears = (network(2), Gear("frozen", (4,), "silu", "clip", 1, True))
    collector = Collector(*collector_of(gears, random_steps=1_000))
    rows, _ = gather_all(collector, 64)
    columns = collector.columns
    assert not columns.keeps_last
    frozen = rows[..., columns.choice].astype(int) % 2 == 1
    assert 0.2 < frozen.mean() < 0.8
    for agent in range(2):
        layers = take(collector.weights, agent).gears[1]
        seen = np.clip(rows[agent][frozen[agent]][:, columns.observation].astype(np.float64), -1, 1)
        x = seen @ layers[0][0][0] + layers[0][1][0]
        x = x / (1 + np.exp(-x)) @ layers[1][0][0] + layers[1][1][0]
        found = rows[agent][frozen[agent]][:, columns.action]
        np.testing.assert_allclose(found, np.clip(x, -1, 1), atol=1e-5)


def test_groups_in_processes_collect_the_same_rows():
    gears = (HOLD, network(2), Gear("frozen", (4,), "elu", "clip", 1, True))
    found = []
    for groups in (1, 2):
        collector = ParallelCollector(*collector_of(gears, random_steps=32), 64, groups)
        assert collector.groups == groups
        chunks = [collector.collect()[0].copy()]
        collector.weights = collector.weights._replace(master=[(2 * w, b) for w, b in collector.weights.master])
        chunks.append(collector.collect(last=True)[0].copy())
        collector.close()
        found.append(np.stack(chunks))
    np.testing.assert_array_equal(*found)
    assert set(np.unique(found[0][..., collector.columns.choice].astype(int) % 3)) == {0, 1, 2}


def test_a_program_for_another_process_carries_its_frozen_policies(tmp_path):
    config = config_of(("hold", frozen_file(tmp_path)))
    sent = json.dumps(Program("here", config, 1, 2, ((0, None),), 3).to_json())
    (tmp_path / "large.safetensors").unlink()
    found = Program.from_json(json.loads(sent))
    assert found == Program("here", config, 1, 2, ((0, None),), 3)
    for one, other in zip(
        found.config.frozen[0].read.weights.gears[0], policy_of_kind(IMPORT).weights.gears[0], strict=True
    ):
        np.testing.assert_array_equal(one[0], other[0])


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (replace(IMPORT, obs_dim=4, layout=(("", 4),)), "has 4 observations and 1 actions.*has 3 and 1"),
        (replace(IMPORT, action_high=(3.0,)), "other bounds of actions"),
        (replace(IMPORT, variant="large-only", task="walker-stand"), "of walker-stand is of another task"),
    ],
)
def test_policies_for_other_environments_are_refused(tmp_path, header, message):
    config = config_of((4, frozen_file(tmp_path, header)))
    with pytest.raises(LowgearError, match=message) as caught:
        check_frozen(config, envs.make(TASK, 1).spec)
    assert "\n" not in str(caught.value)


def test_an_imported_policy_may_name_another_task(tmp_path):
    config = config_of((4, frozen_file(tmp_path, replace(IMPORT, task="gym:Pendulum-v1"))))
    spec = envs.make(TASK, 1).spec
    check_frozen(config, spec)
    assert len(method_of(config, spec).gear_learners) == 1
