"""`lowgear tune --max-latency-us`: the search by time, and the command with a real compiler."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.bench.deploy import Latency
from lowgear.commands.cli import cli
from lowgear.evaluation.tune import BATCH, SETTINGS, Demand, DialSearch
from lowgear.export import compiler
from lowgear.policy.file import load
from tests.fixtures.policies import policy_of, run_of


def run_search(demand, latency_us):
    policy = policy_of()
    search = DialSearch(policy, demand, 16)
    while wanted := search.next_batches():
        for place, _ in wanted:
            took = np.full(BATCH, latency_us(policy.header.dial.position(search.settings[place])))
            search.add(place, np.ones(BATCH), np.full(BATCH, 100.0), np.full(BATCH, 1000.0), took)
    return search.result()


def test_the_best_setting_within_the_time():
    found = run_search(Demand(max_latency_us=1.5 + 1e-7), lambda position: 1.5 - position)  # met from the middle on
    assert found.meets
    assert found.latency_us == pytest.approx(1.5)
    assert found.cost_coefficient == pytest.approx(policy_of().header.dial.settings(SETTINGS)[SETTINGS // 2])


def test_no_setting_within_the_time():
    found = run_search(Demand(max_latency_us=0.4), lambda position: 1.5 - position)
    assert not found.meets
    assert found.latency_us == pytest.approx(0.5)  # the nearest: the dear end


def test_time_of_episodes_from_their_shares():
    played = SimpleNamespace(
        gear_steps=np.array([[[90.0, 10.0], [0.0, 50.0]]]),
        picks=np.array([[20.0, 10.0]]),
        lengths=np.array([[100.0, 50.0]]),
    )
    each = Latency((10.0, 100.0), 50.0).us_each(played, 0)
    assert each == pytest.approx([(90 * 10 + 10 * 100 + 20 * 50) / 100 / 1000, (50 * 100 + 10 * 50) / 50 / 1000])


def tune(run, *options):
    return CliRunner().invoke(cli, ["tune", str(run), "--episodes", "8", *options])


def test_the_command_sets_the_dial(tmp_path, monkeypatch):
    run = run_of([policy_of()], tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "find", lambda: None)
        assert "--max-latency-us needs a C compiler" in str(tune(run, "--max-latency-us", "1").exception)
    for wrong in ("0", "-1", "nan", "inf"):
        assert isinstance(tune(run, "--max-latency-us", wrong).exception, LowgearError)
    assert "one of them" in str(tune(run, "--max-latency-us", "1", "--max-flops", "0.2").exception)
    result = tune(run, "--max-latency-us", "1000", "--json")  # every setting meets it: the cheap end of the dial
    assert result.exit_code == 0, result.output
    (line,) = json.loads(result.stdout)["agents"]
    assert line["meets"]
    assert 0 < line["latency_us"] < 1000
    assert load(run / "policies" / "agent0.safetensors").header.cost_coefficient == pytest.approx(0.001)


@pytest.mark.slow
def test_the_command_says_how_near_it_came(tmp_path):
    run = run_of([policy_of()], tmp_path / "run")
    missed = tune(run, "--max-latency-us", "0.000001")
    assert missed.exit_code == 1
    assert "no setting takes 1e-06 µs per step or less" in missed.stderr
