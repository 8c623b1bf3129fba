"""`lowgear bench deploy` with a real compiler and ONNX Runtime, few rounds; and what it is made of."""

import json
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.bench import callgrind, deploy, energy, microcontrollers
from lowgear.bench.clock import interleave
from lowgear.bench.deploy import latency, measure
from lowgear.bench.table import print_deploy
from lowgear.commands.cli import cli
from lowgear.export import compiler
from tests.fixtures.kinds import ALONE, policy_of_kind
from tests.fixtures.kinds import KINDS as OTHER_KINDS
from tests.fixtures.policies import HEADER, KINDS, episodes_of, policy_of, run_of


@pytest.fixture(scope="module")
def report():
    policy = policy_of(KINDS["wide"])
    return measure(policy, episodes_of(policy), lambda _: None, rounds=5)


def test_every_contender_is_there(report):
    assert set(report["ns_per_step"]["c"]) == {"controller", "gear0", "gear1"}
    assert set(report["ns_per_step"]["onnx"]) == {"controller", "gear0", "gear1"}
    assert report["installed"]["onnxruntime"]
    for kind in ("c", "chained", "onnx"):
        for ns in report["ns_per_step"][kind].values():
            assert 0 < ns["low"] <= ns["median"] <= ns["high"]
    assert report["ns_per_step"]["c"]["gear0"]["median"] < report["ns_per_step"]["c"]["gear1"]["median"]
    assert report["times_faster_than_onnx"]["gear0"] > 10


def test_the_ratios_are_what_they_say(report):
    times = report["ns_per_step"]["c"]
    assert report["time_reduction"] == pytest.approx(1 - times["controller"]["median"] / times["gear1"]["median"])
    cost = KINDS["wide"].cost
    flops = np.dot(report["gear_share"], cost.gear_flops) + report["picks_per_step"] * cost.pick_flops
    assert report["flops_per_step"]["controller"] == pytest.approx(flops)
    assert report["flops_reduction"] == pytest.approx(1 - flops / cost.gear_flops[1])
    assert report["flops_to_time"] == pytest.approx(report["time_reduction"] / report["flops_reduction"])


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_instructions_are_counted(report):
    counted = report["instructions_per_step"]
    assert callgrind.is_installed()
    assert 50 < counted["gear0"] < counted["controller"] < counted["gear1"] < 20_000


def test_it_prints(report, capsys):
    print_deploy(report | {"from_environment": False})
    shown = capsys.readouterr().out
    for word in ("C, controller", "ONNX Runtime", "of the FLOPs reduction", "estimate", "random observations"):
        assert word in " ".join(shown.split())


def test_latency_of_the_parts():
    policy = policy_of(KINDS["wide"])
    found = latency(policy, episodes_of(policy), rounds=5)
    assert 0 < found.gears_ns[0] < found.gears_ns[1]
    assert found.pick_ns > 0


def test_interleaving_takes_turns_and_medians():
    turns = []

    def contender(name, spins):
        def run(passes):
            turns.append(name)
            sum(range(spins * passes))
            return passes

        return run

    found = interleave({"quick": contender("q", 200), "slow": contender("s", 20_000)}, rounds=3, block_s=0.001)
    assert turns[-6:] == ["q", "s"] * 3
    assert found["quick"].median < found["slow"].median


def test_energy_is_read_where_there_is_a_meter(tmp_path):
    assert energy.meters(tmp_path) == []
    for name, uj in (("intel-rapl:0", "900"), ("intel-rapl:0:1", "5"), ("intel-rapl:1", "oops")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "energy_uj").write_text(uj)
        (tmp_path / name / "max_energy_range_uj").write_text("1000")
    meters = energy.meters(tmp_path)
    assert [path.name for path in meters] == ["intel-rapl:0"]

    def work(now):
        def run():
            (tmp_path / "intel-rapl:0" / "energy_uj").write_text(now)
            return 2

        return run

    assert energy.joules(meters, work("950")) == pytest.approx(50e-6 / 2)
    assert energy.joules(meters, work("50")) == pytest.approx(100e-6 / 2)  # the counter wrapped


def test_microcontrollers_are_estimates_from_exact_counts():
    header = KINDS["wide"]
    assert microcontrollers.operations(header, 0) == (24 * 8 + 8 * 8 + 8 * 6, 22)
    assert microcontrollers.pick_operations(header) == (24 * 16 + 16 * 16 + 16 * 6, 32)
    learned = replace(header, known_prices=False)  # the dial's position is one more input
    assert microcontrollers.pick_operations(learned) == (25 * 16 + 16 * 16 + 16 * 6, 32)
    found = microcontrollers.estimates(header, (1.0, 0.0), 0.0)
    assert all(part["estimate"] for part in found)
    part, row = microcontrollers.MICROCONTROLLERS[0], found[0]
    assert row["controller_us"] == pytest.approx((304 * part.multiply_add + 22 * part.tanh + part.step) / part.mhz)
    assert row["controller_us"] == pytest.approx(row["gears_us"][0])


def test_gears_of_every_kind_are_timed(monkeypatch, capsys):
    monkeypatch.setattr(callgrind, "is_installed", lambda: False)
    header = OTHER_KINDS["every kind"]
    policy = policy_of_kind(header, bias=3.0)
    report = measure(policy, episodes_of(policy), lambda _: None, rounds=3)
    assert set(report["ns_per_step"]["c"]) == {"controller", "gear0", "gear1", "gear2", "gear3"}
    assert set(report["ns_per_step"]["onnx"]) == {"controller", "gear1", "gear2", "gear3"}  # nothing to compute in 0
    assert report["ns_per_step"]["c"]["gear0"]["median"] < report["ns_per_step"]["c"]["gear3"]["median"]
    assert report["gear_share"][0] > 0.1
    assert report["flops_per_step"]["gear0"] == 0
    flops = np.dot(report["gear_share"], header.cost.gear_flops) + report["picks_per_step"] * header.cost.pick_flops
    assert report["flops_per_step"]["controller"] == pytest.approx(flops)
    assert report["bytes"]["state"] == 16 + 4 * header.act_dim
    assert json.loads(json.dumps(report))["gears"][0] == "hold"
    print_deploy(report | {"from_environment": False})
    shown = " ".join(capsys.readouterr().out.split())
    for words in ("gears hold/2/3x2x4/frozen 4x3", "C, hold alone", "ONNX Runtime, frozen 4x3 alone", "state 24 bytes"):
        assert words in shown


def test_a_step_that_holds_takes_no_products():
    header = OTHER_KINDS["every kind"]
    assert microcontrollers.operations(header, 0) == (0, 0)
    assert microcontrollers.operations(header, 2) == (4 * 3 + 3 * 2 + 2 * 4 + 4 * 2, 3 + 2 + 4 + 2)
    assert microcontrollers.operations(header, 3) == (4 * 4 + 4 * 3 + 3 * 2, 4 + 3)  # clipped: no tanh at the end
    assert microcontrollers.pick_operations(header) == (6 * 7 + 7 * 7 + 7 * 12, 14)  # it sees the last action
    assert microcontrollers.pick_operations(ALONE) == (0, 0)


def test_the_command_times_an_imported_policy(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(callgrind, "is_installed", lambda: False)
    monkeypatch.setattr(deploy, "measure", partial(measure, rounds=3))
    path = tmp_path / "imported.safetensors"
    sizes = {"obs_dim": 5, "layout": HEADER.layout, "act_dim": 1, "action_low": (-1.0,), "action_high": (1.0,)}
    policy_of_kind(replace(ALONE, task="cartpole-swingup", **sizes)).save(path)
    result = bench(path, "--episodes", "1", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["from_environment"], report["pick_ns"], report["flops_reduction"]) == (True, 0, 0)
    assert set(report["ns_per_step"]["c"]) == {"controller", "gear0"}
    print_deploy(report)
    shown = capsys.readouterr().out
    assert "pick of the master" not in shown
    assert "frozen 4x3 alone" in shown


def bench(*arguments):
    return CliRunner().invoke(cli, ["bench", "deploy", *map(str, arguments)])


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(callgrind, "is_installed", lambda: False)
    run = run_of([policy_of(), policy_of(KINDS["small-only"])], tmp_path / "run")
    result = bench(run, "--episodes", "1", "--cost-coefficient", "0.05", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["steps"], report["cost_coefficient"], report["from_environment"]) == (1000, 0.05, True)
    assert report["instructions_per_step"] == {}
    for arguments, named in (
        ((run, "--agent", "1"), "small-only: it never shifts"),
        ((run, "--episodes", "0"), "--episodes 0"),
        ((tmp_path / "nowhere",), "no such run directory"),
    ):
        wrong = bench(*arguments)
        assert isinstance(wrong.exception, LowgearError), wrong.output
        assert named in str(wrong.exception)
    monkeypatch.setattr(compiler, "find", lambda: None)
    assert "needs a C compiler" in str(bench(run).exception)
