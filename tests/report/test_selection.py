"""Which agents are played, and at which settings."""

from pathlib import Path

import pytest

from lowgear import LowgearError
from lowgear.report.runs import RunData, read_run
from lowgear.report.selection import select
from tests.fixtures.runs import evaluate, make_run, row

DIAL = (0.0001 / 30, 0.00003, 0.0001, 0.0003, 0.001)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    path = make_run(tmp_path_factory.mktemp("runs") / "run")
    dial = [
        row(agent, "asymmetric", coefficient, 90.0 + agent - place, 0.8 - 0.2 * place)
        for agent in (0, 1)
        for place, coefficient in enumerate(DIAL)
    ]
    others = [
        row(2, "small-only", 0.0, 9.0, 0.0),
        row(3, "small-only", 0.0, 8.0, 0.0),
        row(5, "large-only", 0.0, 9.0, 1.0),
    ]
    return read_run(evaluate(path, [*dial, *others]))


def test_the_best_agent_at_each_setting_and_the_best_baselines(run: RunData) -> None:
    selected = select(run)
    assert [one.agent for one in selected] == [1] * 5 + [2, 5]
    assert [one.coefficient for one in selected[:5]] == pytest.approx(DIAL)
    # The dial's own setting, whatever would do for less.
    assert [one.coefficient for one in selected if one.first] == [0.0001]
    assert [one.own for one in selected] == [False, False, True, False, False, False, False]


@pytest.mark.parametrize(("at_most", "kept"), [(1, [0.0001]), (2, [DIAL[0], 0.0001]), (3, [DIAL[0], 0.0001, 0.001])])
def test_fewer_settings_keep_the_one_to_show(run: RunData, at_most: int, kept: list[float]) -> None:
    found = [one.coefficient for one in select(run, None, at_most) if one.main]
    assert found == pytest.approx(kept)


def test_a_setting_that_was_asked_for_comes_first(run: RunData) -> None:
    selected = [one for one in select(run, 0.00031, 2) if one.main]
    assert [(one.coefficient, one.first) for one in selected] == [(DIAL[0], False), (0.00031, True)]
    with pytest.raises(LowgearError, match="outside what the agent was trained for"):
        select(run, 7.0)


def test_a_relative_dial_is_shown_at_the_agents_own_prices(tmp_path: Path) -> None:
    relative = read_run(evaluate(make_run(tmp_path / "run", relative=True)))
    selected = [one for one in select(relative) if one.main]
    assert [one.agent for one in selected] == [1, 1, 1]
    # Its unit is 0.003, and its dial stands at 2 of them.
    assert [(one.coefficient, one.first) for one in selected] == [
        (pytest.approx(-0.003), False),
        (pytest.approx(0.006), True),
        (pytest.approx(0.03), False),
    ]
    assert [one.policy.header.relative_coefficient for one in selected] == pytest.approx([-1, 2, 10])


def test_without_an_evaluation_the_last_scores_while_training_count(tmp_path: Path) -> None:
    selected = select(read_run(make_run(tmp_path / "run")))
    assert [one.agent for one in selected] == [1, 1, 1, 1, 3, 5]


def test_a_run_of_baselines_alone(tmp_path: Path) -> None:
    selected = select(read_run(make_run(tmp_path / "run", variants=("small-only", "large-only"))))
    assert [(one.label, one.main) for one in selected] == [("large-only", True), ("small-only", False)]
