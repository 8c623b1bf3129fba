"""The committed policies still score what results/evidence says: `make test-results`.

Starts are those of the committed plays, but rounding differs between machines, and an episode that is decided by a hair
goes another way. So each figure is held to the interval of the difference of two plays, all of them together at 95%: of
some 400 figures held to 95% each, some would miss it by chance.
"""

import json
import math
from functools import partial
from pathlib import Path
from statistics import NormalDist

import pytest

import lowgear
from lowgear.config.run import RunConfig
from lowgear.envs import make_env
from lowgear.evaluation.evaluate import play_policies, scored_by_success, slots_for, summarise
from lowgear.policy.file import load

KEPT = Path(__file__).parent.parent / "results" / "evidence"
ROWS = sorted(KEPT.glob("*/evidence.json"))
READ = [json.loads(path.read_text()) for path in ROWS]
TUNED = [path for path, row in zip(ROWS, READ, strict=True) if "tuned" in row]
FIGURES = 2 * sum(len(row["policies"]) + len(row.get("tuned", {"agents": []})["agents"]) for row in READ)
SURE = NormalDist().inv_cdf(1 - 0.025 / FIGURES) / NormalDist().inv_cdf(0.975)  # times an interval of 95%
SAME = 1e-3  # of a share: rounding of the committed figures


@pytest.mark.results
@pytest.mark.parametrize("path", ROWS, ids=[path.parent.name for path in ROWS])
def test_committed_policies_score_what_is_committed(path):
    row = json.loads(path.read_text())
    committed = {agent["agent"]: agent for agents in row["scores"].values() for agent in agents}
    assert row["policies"], "no policy is committed"
    policies = [load(path.parent / "policies" / f"agent{number}.safetensors") for number in row["policies"]]
    play_again(row, policies, [committed[number] for number in row["policies"]], seed=0, beside=len(committed))


@pytest.mark.results
@pytest.mark.parametrize("path", TUNED, ids=[path.parent.name for path in TUNED])
def test_tuned_agents_score_what_is_committed(path):
    row = json.loads(path.read_text())
    for agent in row["tuned"]["agents"]:
        policy = load(path.parent / "policies" / f"agent{agent['agent']}.safetensors")
        play_again(row, [policy.at(agent["cost_coefficient"])], [agent], seed=2, beside=1)


def play_again(row, policies, committed, seed, beside):
    """Hold them against the committed figures of plays of so many policies, by which starts go."""
    config, episodes = RunConfig.from_json(row["config"]), row["episodes"]
    slots = slots_for(beside, episodes)
    played = play_policies(policies, partial(make_env, config), episodes, config.master, seed, slots=slots)
    for place, (then, policy) in enumerate(zip(committed, policies, strict=True)):
        now = summarise(played, place, policy.header.cost)
        if scored_by_success(then):
            room = math.hypot(
                *(1.96 * math.sqrt(p * (1 - p) / episodes) for p in (then["success_rate"], now["success_rate"]))
            )
            assert now["success_rate"] == pytest.approx(then["success_rate"], abs=max(SURE * room, 1 / episodes))
        else:
            room = math.hypot(then["return_ci95"], now["return_ci95"])
            slack = SURE * room + 1e-4 * abs(then["return_mean"])
            assert now["return_mean"] == pytest.approx(then["return_mean"], abs=slack)
        room = math.hypot(then["flops_reduction_ci95"], now["flops_reduction_ci95"])
        assert now["flops_reduction"] == pytest.approx(then["flops_reduction"], abs=SURE * room + SAME)


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
