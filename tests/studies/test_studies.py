from dataclasses import replace

import numpy as np
import pytest

from lowgear.config.paper import Figures, tables
from lowgear.config.tasks import find, published_tasks
from lowgear.policy import cost
from lowgear.policy.dial import Dial
from lowgear.policy.gears import gears_of
from lowgear.studies import catalogue, sizes, sweeps, table
from lowgear.studies.rows import SeedResult, aggregate
from lowgear.studies.run_store import Member, RunStore
from lowgear.studies.setup import Setup
from tests.fixtures.policies import HEADER, policy_of
from tests.fixtures.studies import row

SETUP = Setup(seeds=(0,), recipe="paper", episodes=2, steps=1152, gears=(2, 4))

WIDTHS = (*sizes.CANDIDATES, sizes.CRITERION)


def sized(*scores: float):
    return [row([score], f"{units} units") for units, score in zip(WIDTHS, scores, strict=True)]


@pytest.mark.parametrize("task", tables()["distillation_table"]["rows"])
def test_fit_has_the_published_width(task: str) -> None:
    printed, preset = tables()["distillation_table"]["rows"][task], find(task)
    units = cost.units_for(preset.obs_dim, preset.act_dim, printed["flops_ours"])
    assert units == printed["fit_units"]
    assert cost.policy_flops(preset.obs_dim, preset.act_dim, units) == printed["flops_fit"]


def test_sizes_chooses_by_the_papers_rule() -> None:
    words = sizes.reasoning(sized(100, 300, 890, 910, 950, 990, 1000))
    assert "Short of 90% of it: 8 units 10%, 32 units 30%, 64 units 89%." in words
    assert "Large is 128 units, the narrowest that reaches 91%." in words
    assert words[-1] == "Chosen: --gears 32,128 (the paper chose 8,64)."


def test_sizes_says_when_no_candidate_is_poor_enough() -> None:
    words = sizes.reasoning(sized(800, 810, 990, 910, 950, 990, 1000))
    assert "though it scores 80% of the criterion" in words[-2]
    assert words[-1].startswith("Chosen: --gears 8,64")


def test_sizes_says_when_none_is_wide_enough_or_the_narrowest_is() -> None:
    assert "No candidate reaches 90%" in sizes.reasoning(sized(1, 2, 3, 4, 5, 6, 1000))[-1]
    assert "cheap enough to run alone" in sizes.reasoning(sized(950, 2, 3, 4, 5, 6, 1000))[-1]
    assert "not positive" in sizes.reasoning(sized(-5, -4, -3, -2, -2, -2, -1))[-1]


def test_every_study_has_groups_on_every_task_it_names() -> None:
    setup = Setup(seeds=(0, 1), recipe="paper", episodes=5, steps=1000)
    for name, study in catalogue.STUDIES.items():
        for task in study.tasks:
            groups = study.groups(setup, find(task))
            assert len({group.label for group in groups}) == len(groups) > 1, name
            assert all(len(group.config.agents) == 2 for group in groups)


def test_the_sweep_of_a_dial_is_relative_unless_coefficients_are_given() -> None:
    reacher = find("reacher-easy")
    groups = sweeps.cost_coefficient(Setup(seeds=(0,), recipe="modern", episodes=5, steps=1000), reacher)
    assert [(group.label, group.setting) for group in groups] == [(f"relative λ {x:g}", x) for x in sweeps.RELATIVE]
    assert all(group.config.agents[0].relative for group in groups)
    setup = Setup(seeds=(0,), recipe="modern", episodes=5, steps=1000, cost_coefficients=(0.001, 0.1))
    given = sweeps.cost_coefficient(setup, reacher)
    assert [group.setting for group in given] == Dial(0.001, 0.1).settings(len(sweeps.COEFFICIENTS))
    assert {group.label.split()[0] for group in given} == {"λ"}
    assert not given[0].config.agents[0].relative


def test_a_relative_setting_is_each_agents_own_in_rewards(tmp_path) -> None:
    setup = Setup(seeds=(0,), recipe="modern", episodes=5, steps=1000)
    (group, *_) = sweeps.cost_coefficient(setup, find("reacher-easy"))
    (run,) = RunStore(tmp_path).plan([group])
    run.directory.path.mkdir(parents=True)
    run.directory.policy(0).parent.mkdir()
    of_run = replace(HEADER, task="reacher-easy", seed=0, gears=run.config.gears, master_units=16)
    header = replace(of_run, dial=Dial(-0.5, 5.0), cost_coefficient=0.05, cost_unit=0.5)
    policy_of(header).save(run.directory.policy(0))
    found = Member(run, 0, 0.3).load().header
    assert (found.cost_coefficient, found.relative_coefficient) == (pytest.approx(0.15), 0.3)
    policy_of(of_run).save(run.directory.policy(0))
    assert Member(run, 0, 0.02).load().header.cost_coefficient == 0.02


def test_a_plan_holds_each_agent_once_in_as_few_programs_as_can_be(tmp_path) -> None:
    setup = Setup(seeds=(0, 1), recipe="paper", episodes=5, steps=1000)
    groups = [g for name in ("performance", "cost-term", "two-large") for g in _groups(name, setup)]
    runs = RunStore(tmp_path).plan(groups)
    assert [(run.config.gears, len(run.config.agents)) for run in runs] == [
        (gears_of((8, 64)), 8),
        (gears_of((64, 64)), 2),
    ]
    assert len({run.directory.path for run in runs}) == 2
    assert not any(run.finished or run.steps_done for run in runs)


def test_other_settings_are_other_runs(tmp_path) -> None:
    plan = RunStore(tmp_path).plan
    (first,) = plan(_groups("performance", SETUP))
    for change in (
        {"seeds": (1,)},
        {"steps": 2000},
        {"recipe": "modern"},
        {"gears": (2, 8)},
        {"overrides": {"batch": 8}},
    ):
        (other,) = plan(_groups("performance", Setup(**(vars(SETUP) | change))))
        assert other.directory.path != first.directory.path
    (same,) = plan(_groups("performance", Setup(**(vars(SETUP) | {"episodes": 9}))))
    assert same.directory.path == first.directory.path


def test_what_a_study_sweeps_comes_before_what_was_set() -> None:
    setup = Setup(seeds=(0,), recipe="modern", episodes=5, steps=1000, overrides={"batch": 8, "periods": (3,)})
    groups = sweeps.period(setup, find("reacher-easy"))
    assert len({group.config.recipe.periods for group in groups}) == len(groups) > 1
    assert {group.config.recipe.batch for group in groups} == {8}


def test_success_rates_are_scores_where_there_are_any() -> None:
    found = {
        "return_mean": -20.0,
        "return_std": 3.0,
        "success_rate": 0.8,
        "large_share": 0.1,
        "flops_per_step": 5.0,
        "flops_reduction": 0.9,
    }
    assert SeedResult.of(3, found) == SeedResult(3, 0.8, pytest.approx(0.4), 0.1, 5.0, 0.9)
    assert SeedResult.of(3, found | {"success_rate": None}).score == -20
    assert SeedResult.of(3, found | {"scored_by": "return"}).score == -20


def test_overall_scales_by_random_and_by_large_only() -> None:
    reacher, cartpole = published_tasks()["reacher-easy"], published_tasks()["cartpole-swingup"]
    assert reacher.published is not None
    assert cartpole.published is not None
    rows = [
        row([1000.0, 1000.0], "large-only"),
        row([reacher.published.random] * 2, "asymmetric"),
        row([500.0, 500.0], "large-only", "cartpole-swingup"),
        row([500.0, 500.0], "asymmetric", "cartpole-swingup"),
        row([1.0, 2.0], "only here"),
    ]
    found = aggregate(rows)
    assert list(found) == ["large-only", "asymmetric"]
    assert found["large-only"][0] == pytest.approx(1)
    assert found["asymmetric"][0] == pytest.approx(np.mean([0, 1]))  # one cut at each end of 0, 0, 1, 1
    assert aggregate(rows[:2]) == {}  # one task


def test_tables_show_ours_beside_the_papers() -> None:
    rows = [row([900.0, 800.0], paper=Figures((689.7, 272.7), 931.7, (0.504, 0.285), 0.424))]
    shown = table.markdown("Title", rows, ["A remark."]).splitlines()[4]
    assert shown == (
        "| reacher-easy | asymmetric | 5,000 | 2 | 850.0 ± 70.7 | 850.0 [800.0, 900.0] | 900.0 (50.0%) | 25.0% ± 0.0% "
        "| 1,000 | 50.0% ± 0.0% | 689.7 ± 272.7 | 931.7 | 50.4% ± 28.5% | 42.4% |"
    )
    text = table.latex("λ & more_of it", rows, ["A remark, 50%."])
    assert r"\caption{$\lambda$ \& more\_of it}" in text
    assert r"850.0 $\pm$ 70.7" in text
    assert r"A remark, 50\%.\par" in text
    assert "paper" not in table.markdown("Title", [row([1.0])], [])


def _groups(name: str, setup: Setup):
    return catalogue.find(name).groups(setup, find("reacher-easy"))


def test_a_sweep_from_below_0_is_drawn_whole(tmp_path) -> None:
    drawn = pytest.importorskip("lowgear.studies.figure", reason="the extra `report` is not installed").draw
    rows = [replace(row([1.0, 2.0], f"λ {x:g}"), x=x) for x in (-0.1, 0.0, 0.01, 0.1)]
    (svg, _) = drawn(rows, "cost coefficient λ", tmp_path)
    assert "relative" not in svg.read_text()
    assert "cost coefficient λ, as the dial turns" in svg.read_text()
    (svg, _) = drawn(rows[2:], "cost coefficient λ", tmp_path)
    assert "cost coefficient λ, log scale" in svg.read_text()
    (svg, _) = drawn(rows[:2], "cost coefficient λ", tmp_path)
    assert "log scale" not in svg.read_text()
