"""`tune`, `evaluate`, `report` and `export` speak of one setting: that which the policy file carries."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lowgear.commands.evaluate import evaluate
from lowgear.commands.export import export
from lowgear.commands.tune import tune
from lowgear.policy.setting import deployed, own_setting, same_setting
from lowgear.report import tables
from lowgear.report.runs import read_run
from lowgear.report.selection import select
from lowgear.report.text import short
from tests.fixtures.runs import make_run


def run(command: Any, *options: Any) -> Any:
    done = CliRunner().invoke(command, [str(option) for option in options], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_what_tune_sets_is_evaluated_exported_and_shown_first(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", variants=("asymmetric",), seeds=(0,))
    before = own_setting(read_run(path).policies[0])
    tuned = run(tune, path, "--max-flops", 2, "--episodes", 8, "--json")["agents"][0]["cost_coefficient"]
    assert not same_setting(tuned, before)
    assert [row["cost_coefficient"] for row in run(evaluate, path, "--episodes", 2, "--json")["agents"]] == [tuned]
    run(export, path, "--format", "numpy", "--json")
    (shipped,) = (path / "export").rglob("*.safetensors")
    from lowgear.policy.file import load

    assert load(shipped).header.cost_coefficient == tuned
    shown = read_run(path)
    assert [one.coefficient for one in select(shown) if one.first] == [tuned]
    tiles = tables.tiles(shown)
    assert tiles is not None
    assert tiles["lead"] == f"Asymmetric agents at λ {short(tuned)} (own setting, which export ships)"
    assert "--cost-coefficient" not in tables.export_command(shown, shown.settings[0])


def test_a_frontier_has_the_policys_own_setting(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", variants=("asymmetric",), seeds=(0,))
    own = own_setting(read_run(path).policies[0])
    found = [
        row["cost_coefficient"] for row in run(evaluate, path, "--frontier", 2, "--episodes", 1, "--json")["agents"]
    ]
    assert found == pytest.approx([0.0001 / 30, own, 0.001])
    assert [s.coefficient for s in read_run(path).settings if s.own] == pytest.approx([own])


def test_a_coefficient_that_is_asked_for_goes_before_the_policys_own(tmp_path: Path) -> None:
    policy = read_run(make_run(tmp_path / "run", variants=("asymmetric",), seeds=(0,))).policies[0]
    assert deployed(policy) is policy
    assert own_setting(deployed(policy, 0.0005)) == 0.0005
    assert same_setting(0.1 * 3, 0.3)
    assert not same_setting(0.3, 0.3001)
