"""Rivals on one frontier: from nothing to table, the rule by hand, and what cannot be compared."""

import csv
import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.config.tasks import find
from lowgear.envs import make
from lowgear.evaluation.statistics import t_interval
from lowgear.export import compiler
from lowgear.export.c_format import weight_bytes
from lowgear.export.check import compare
from lowgear.export.layers import quantise
from lowgear.policy.cost import policy_flops, units_for
from lowgear.policy.file import load
from lowgear.studies import rivals, rivals_time, rivals_verdict
from lowgear.studies.rows import SeedResult, TableRow
from lowgear.studies.setup import Setup
from tests.fixtures.exports import compile_c
from tests.fixtures.policies import KINDS, episodes_of, policy_of

TASK = "tests.fixtures.probes:Valley"
SMALL = ["--steps", "320", "--gears", "2,4", "--episodes", "2", "--seeds", "0-1"]
FAST = [
    f"--set={name}" for name in ("batch=8", "critic_units=8", "random_steps=64", "master_units=2", "master_batch=8")
]


def study(folder, *arguments):
    result = CliRunner().invoke(cli, ["study", "rivals", TASK, *SMALL, *FAST, *arguments, "--out", str(folder)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The study on a tiny budget, where it was made, and its rows by label."""
    folder = tmp_path_factory.mktemp("studies")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rivals, "STUDENTS", replace(rivals.STUDENTS, updates=20))
        patch.setattr(rivals, "RELATIVE", (0.1,))
        patch.setattr(rivals_time, "ROUNDS", 3)
        told = study(folder)
    with (folder / "rivals" / "table.csv").open() as file:
        return told, folder, {row["agents"]: row for row in csv.DictReader(file)}


def test_every_rival_has_a_row_with_its_costs(found) -> None:
    told, folder, rows = found
    units = units_for(1, 1, float(rows["asymmetric, rel. λ 2"]["flops_per_step"]))
    assert list(rows) == [
        "small-only",
        "large-only",
        "asymmetric, rel. λ 0.1",
        "asymmetric, rel. λ 2",
        "with hold, rel. λ 0.1",
        "with hold, rel. λ 2",
        f"fit, {units} units",
        *(f"dagger, {width} units" for width in sorted({2, units, 4})),
        "pruned 50%",
        "pruned 75%",
        "pruned 90%",
        "int8 small-only",
        "int8 large-only",
        "int8 asymmetric, rel. λ 2",
    ]
    assert {row["seeds"] for row in rows.values()} == {"2"}
    flops = {label: float(row["flops_per_step"]) for label, row in rows.items()}
    assert flops["large-only"] == flops["int8 large-only"] == flops["dagger, 4 units"] == policy_flops(1, 1, 4)
    assert flops["pruned 50%"] == 2 * (4 + 16 + 8) / 2 + 3
    size = {label: float(row["weight_bytes"]) for label, row in rows.items()}
    assert size["pruned 50%"] == (2 * 5 + 2 * 1 + 4 * 4) + (8 * 5 + 5 * 1 + 4 * 4) + (2 * 5 + 5 * 1 + 1 * 4)
    assert size["int8 large-only"] < size["large-only"] < size["asymmetric, rel. λ 2"] < size["with hold, rel. λ 2"]
    assert "jerk" in told.stdout
    assert json.loads((folder / "rivals" / "study.json").read_text())["lines"][0]["seeds"][0]["decisions"] == 20


def test_time_is_measured_and_pruned_policies_have_that_of_dense_code(found) -> None:
    if compiler.find() is None:
        pytest.skip("no C compiler")
    ns = {label: float(row["step_ns"]) for label, row in found[2].items()}
    assert all(value > 0 for value in ns.values())
    assert ns["pruned 90%"] == ns["large-only"] == ns["dagger, 4 units"] != ns["int8 large-only"]


def test_decisions_repeats_and_jerk_are_told_of_each(found) -> None:
    rows = found[2]
    assert {float(rows[label]["decisions"]) for label in rows if "asym" not in label and "hold" not in label} == {20}
    assert float(rows["asymmetric, rel. λ 2"]["decisions"]) > 20  # the master's picks are passes too
    assert all(0 <= float(row["repeated_share"]) <= 1 and float(row["jerk"]) >= 0 for row in rows.values())


def test_it_ends_with_what_it_shows_and_draws_it(found) -> None:
    told, folder, _ = found
    for name in ("FLOPs", "bytes", "time"):
        assert f"By {name}, not dominated: " in told.stdout
        assert f"By {name}, dominated: " in told.stdout
    assert told.stdout.count(", against the same without: score ") == 2
    picture = folder / "rivals" / "rivals-tests.fixtures.probes-Valley.svg"
    assert "ns per step, C" in picture.read_text()


def test_a_second_call_trains_teaches_and_plays_nothing(found, monkeypatch) -> None:
    told, folder, _ = found
    monkeypatch.setattr(rivals, "STUDENTS", replace(rivals.STUDENTS, updates=20))
    monkeypatch.setattr(rivals, "RELATIVE", (0.1,))
    for name in ("program.Training", "rivals.dagger.fit"):
        monkeypatch.setattr(f"lowgear.studies.{name}", None)
    monkeypatch.setattr("lowgear.evaluation.evaluate.play_policies", None)
    monkeypatch.setattr(rivals_time, "step_times", lambda every, *_: [[1.0] * len(policies) for policies, _ in every])
    again = study(folder)
    assert [line.split("±")[0] for line in again.stdout.splitlines() if "±" in line] == [
        line.split("±")[0] for line in told.stdout.splitlines() if "±" in line
    ]


def test_students_have_the_teacher_of_their_seed(found) -> None:
    paths = sorted(found[1].glob("students/*-dagger-*/agent*.safetensors"))
    assert {load(path).header.seed for path in paths} == {0, 1}
    assert all(load(path).header.steps <= 320 for path in paths)


@pytest.mark.parametrize("kind", ["large-only", "dial"])
def test_an_int8_rival_acts_as_the_compiled_int8_controller(kind: str, tmp_path) -> None:
    cc = compiler.find()
    if cc is None:
        pytest.skip("no C compiler")
    policy = policy_of(KINDS[kind])
    played = quantise(policy, "int8")
    comparison = compare(compile_c(policy, tmp_path, cc, "int8"), episodes_of(played))
    assert comparison.wrong_gears == 0
    assert comparison.largest_action_error < 1e-6
    assert any((a != b).any() for a, b in zip(*(p.weights.gears[-1][1] for p in (policy, played)), strict=True))
    assert weight_bytes(played, "int8") == weight_bytes(policy, "int8")


def test_int8_and_float_controllers_are_timed_apart(tmp_path) -> None:  # noqa: ARG001
    if compiler.find() is None:
        pytest.skip("no C compiler")
    policy = policy_of(replace(KINDS["large-only"], gears=(3, 64)))
    contenders = [
        ([policy], "float32"),
        ([quantise(policy, "int8")], "int8"),
        ([policy_of(policy.header, 1)], "float32"),
    ]
    make_env = partial(make, find("cartpole-swingup"))
    (plain,), (int8,), (same,) = rivals_time.step_times(contenders, make_env, lambda *_: None, rounds=3)
    assert plain == same != int8


def test_without_a_compiler_time_is_missing_and_said_to_be(monkeypatch) -> None:
    monkeypatch.setattr(compiler, "find", lambda: None)
    assert rivals_time.step_times([([policy_of()], "float32")], lambda _: None, lambda *_: None) == [[None]]
    rows = [rival("large-only", [1.0, 2.0], 10, step_ns=None), rival("small-only", [1.0, 2.0], 5, step_ns=None)]
    assert "Time was not measured: no C compiler was found." in rivals_verdict.remarks(rows)


def rival(label: str, scores, flops: float, **others) -> TableRow:
    costs = {"weight_bytes": 100.0, "step_ns": 10.0} | others
    seeds = (SeedResult(seed, score, 1.0, 0.0, flops, 0.0, **costs) for seed, score in enumerate(scores))
    return TableRow(find("reacher-easy"), label, tuple(seeds), steps=10)


LARGE = rival("large-only", [100, 101, 99, 100, 100], 1000)


@pytest.mark.parametrize(
    ("scores", "flops", "dominates"),
    [
        ([100, 101, 99, 100, 100], 100, True),  # as much, for less
        ([98, 99, 97, 98, 98], 100, True),  # 2 less of 100, for less
        ([96, 97, 95, 96, 96], 100, False),  # 4 less is more than 3%
        ([99, 110, 80, 101, 110], 100, False),  # as much on average, but these seeds do not tell
        ([100, 101, 99, 100, 100], 990, False),  # 1% less is nothing that can be measured
        ([103, 104, 102, 103, 104], 1000, True),  # more, for the same
        ([103, 104, 102, 103, 104], 1001, False),  # more, for more
        ([100.1, 110, 99, 100, 100], 1000, False),  # more by chance
    ],
)
def test_the_rule_of_dominance(scores, flops, dominates) -> None:
    other = rival("asymmetric, λ 1", scores, flops)
    verdict = rivals_verdict.judge([LARGE, other], "flops_per_step")
    assert verdict.dominators["large-only"] == (["asymmetric, λ 1"] if dominates else [])


def test_costs_that_differ_from_seed_to_seed_have_intervals_too() -> None:
    other = rival("asymmetric, λ 1", [100, 101, 99, 100, 100], 0)
    flops = (100, 100, 100, 100, 3000)
    seeds = tuple(replace(seed, flops_per_step=one) for seed, one in zip(other.seeds, flops, strict=True))
    verdict = rivals_verdict.judge([LARGE, replace(other, seeds=seeds)], "flops_per_step")
    assert verdict.dominators == {"large-only": [], "asymmetric, λ 1": []}


def test_words_say_where_switching_pays_and_where_it_does_not() -> None:
    cheap = rival("asymmetric, λ 1", [100, 101, 99, 100, 100], 100, weight_bytes=200.0)
    words = rivals_verdict.remarks([LARGE, cheap])
    pays = "By FLOPs, switching pays against large-only: a setting dominates each, and no single network does."
    assert pays in words
    assert "By bytes, switching does not pay: a single network dominates every setting (large-only)." in words
    assert any(words.startswith("By time, these seeds do not show that switching pays") for words in words)
    # A student that does as much as cheaply takes the large network's place: switching is no longer needed for that.
    student = rival("dagger, 8 units", [100, 101, 99, 100, 100], 90)
    with_student = rivals_verdict.remarks([LARGE, cheap, student])
    assert pays not in with_student
    assert (
        "By FLOPs, switching does not pay: a single network dominates every setting (dagger, 8 units)." in with_student
    )


def test_a_gear_that_holds_is_compared_at_the_same_setting() -> None:
    rows = [LARGE, rival("asymmetric, λ 1", [90, 91], 100), rival("with hold, λ 1", [92, 95], 80)]
    words = rivals_verdict.remarks([replace(row, seeds=row.seeds[:2]) for row in rows])[-1]
    assert words == "with hold, λ 1, against the same without: score +3 [-9.706, +15.71], FLOPs -20 [-20, -20]."


def test_one_seed_is_not_judged() -> None:
    (words,) = rivals_verdict.remarks([replace(LARGE, seeds=LARGE.seeds[:1])])
    assert words.startswith("One seed has no interval")


def test_students_t_by_hand() -> None:
    low, high = t_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    half = 2.776 * np.sqrt(2.5 / 5)
    assert (low, high) == (pytest.approx(3 - half), pytest.approx(3 + half))
    assert t_interval([2.0, 2.0]) == (2, 2)


def test_settings_of_dials_and_of_agents_without_one() -> None:
    reacher = find("reacher-easy")
    modern = Setup(seeds=(0,), recipe="modern", episodes=5, steps=1000)
    labels = [group.label for group in rivals.groups(modern, reacher)]
    settings = [f"rel. λ {x:g}" for x in sorted((2.0, *rivals.RELATIVE))]
    assert labels[2:] == [f"{name}, {one}" for name in ("asymmetric", "with hold") for one in settings]
    own = rivals.groups(replace(modern, cost_coefficients=(0.001, 0.1)), reacher)
    assert [group.label for group in own][2] == "asymmetric, λ 0.001"
    paper = [group.label for group in rivals.groups(replace(modern, recipe="paper"), reacher)]
    assert paper == ["small-only", "large-only", "asymmetric", "with hold"]
    given = rivals.groups(replace(modern, gears=("hold", 8, 64)), reacher)
    assert [group.config for group in given] == [group.config for group in rivals.groups(modern, reacher)]


@pytest.mark.parametrize("gears", ["8x8x8,64", "hold,64"])
def test_gears_that_have_no_rivals_are_named(gears: str, tmp_path) -> None:
    command = ["study", "rivals", "reacher-easy", "--gears", gears, "--dry-run", "--out", str(tmp_path / "none")]
    result = CliRunner().invoke(cli, command)
    assert isinstance(result.exception, LowgearError)
    assert "two or more widths of two equal layers; write for example --gears 8,64" in str(result.exception)
    assert not (tmp_path / "none").exists()
