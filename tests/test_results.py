"""The committed policies still score what results/evidence says: `make test-results`."""

import json
import math
from functools import partial
from pathlib import Path

import pytest

import lowgear
from lowgear.config.run import RunConfig
from lowgear.envs import make_env
from lowgear.evaluation.evaluate import play_policies, scored_by_success, summarise
from lowgear.policy.file import load

KEPT = Path(__file__).parent.parent / "results" / "evidence"
ROWS = sorted(KEPT.glob("*/evidence.json"))
TUNED = [path for path in ROWS if "tuned" in json.loads(path.read_text())]
SAME = 1e-3  # of a share: rounding of the committed figures


@pytest.mark.results
@pytest.mark.parametrize("path", ROWS, ids=[path.parent.name for path in ROWS])
def test_committed_policies_score_what_is_committed(path):
    row = json.loads(path.read_text())
    committed = {agent["agent"]: agent for agents in row["scores"].values() for agent in agents}
    assert row["policies"], "no policy is committed"
    policies = [load(path.parent / "policies" / f"agent{number}.safetensors") for number in row["policies"]]
    play_again(row, policies, [committed[number] for number in row["policies"]], seed=0)


@pytest.mark.results
@pytest.mark.parametrize("path", TUNED, ids=[path.parent.name for path in TUNED])
def test_tuned_agents_score_what_is_committed(path):
    row = json.loads(path.read_text())
    for agent in row["tuned"]["agents"]:
        policy = load(path.parent / "policies" / f"agent{agent['agent']}.safetensors")
        play_again(row, [policy.at(agent["cost_coefficient"])], [agent], seed=2)  # alone: starts go by how many play


def play_again(row, policies, committed, seed):
    """Within the interval of the difference of two plays."""
    config, episodes = RunConfig.from_json(row["config"]), row["episodes"]
    played = play_policies(policies, partial(make_env, config), episodes, config.master, seed)
    for place, (then, policy) in enumerate(zip(committed, policies, strict=True)):
        now = summarise(played, place, policy.header.cost)
        if scored_by_success(then):
            width = 1.96 * math.sqrt(then["success_rate"] * (1 - then["success_rate"]) / episodes)
            assert now["success_rate"] == pytest.approx(then["success_rate"], abs=max(width, 1 / episodes))
        else:
            room = math.hypot(then["return_ci95"], now["return_ci95"]) + 1e-4 * abs(then["return_mean"])
            assert now["return_mean"] == pytest.approx(then["return_mean"], abs=room)
        room = then["flops_reduction_ci95"] + SAME
        assert now["flops_reduction"] == pytest.approx(then["flops_reduction"], abs=room)


@pytest.mark.results
@pytest.mark.parametrize("path", ROWS, ids=[path.parent.name for path in ROWS])
def test_a_committed_policy_becomes_checked_c(path, tmp_path):
    row = json.loads(path.read_text())
    policy = path.parent / "policies" / f"agent{row['scores']['asymmetric'][0]['agent']}.safetensors"
    report = lowgear.export(policy, "c", tmp_path / "c")
    assert report["checked"]["from_environment"]
    assert report["checked"]["wrong_gears"] == 0


@pytest.mark.parametrize("path", ROWS, ids=[path.parent.name for path in ROWS])
def test_every_row_is_whole(path):
    row = json.loads(path.read_text())
    assert row["task"] == path.parent.name
    assert row["commit"]
    assert row["device"]
    assert {len(agents) for agents in row["scores"].values()} == {5}
    assert sum(policy.stat().st_size for policy in path.parent.glob("policies/*")) <= 3_000_000


@pytest.mark.parametrize("path", TUNED, ids=[path.parent.name for path in TUNED])
def test_tuned_agents_are_the_asymmetric_ones_within_a_fifth_of_the_flops(path):
    row = json.loads(path.read_text())
    agents = row["tuned"]["agents"]
    assert [agent["agent"] for agent in agents] == [agent["agent"] for agent in row["scores"]["asymmetric"]]
    for agent in agents:
        assert agent["flops_reduction"] + agent["flops_reduction_ci95"] >= 0.8
    assert row["tuned"]["commit"]
    assert not row["tuned"]["commit"].endswith("dirty")
