"""What a run tells while it goes."""

import io

import pytest
from rich.console import Console

from lowgear.training import progress
from lowgear.training.progress import Display, Pace, describe


def line(variant, score, share, steps=1024, cost=0.0, relative=None, **others):
    return {
        "kind": "train",
        "steps": steps,
        "agent": 0,
        "variant": variant,
        "cost_coefficient": cost,
        "relative_coefficient": relative,
        "return": score,
        "large_share": share,
        "success": None,
    } | others


def test_asymmetric_agents_are_not_averaged_with_baselines():
    lines = [
        line("asymmetric", 80.0, 0.2, cost=0.002, relative=2.0),
        line("asymmetric", 90.0, 0.3, cost=0.003, relative=2.0),  # each seed's λ is its own
        line("small-only", 10.0, 0.0),
        line("large-only", 100.0, 1.0),
    ]
    assert describe(lines) == "asymmetric return 85.0 with 25% large; small-only return 10.0; large-only return 100.0"


def test_agents_of_several_coefficients_are_told_apart_and_stopped_ones_left_out():
    lines = [
        line("fixed-cost", -0.001, 0.9, cost=0.001),
        line("fixed-cost", -0.003, 0.1, cost=0.01),
        line("fixed-cost", 1e9, 0.1, cost=0.01, stopped="it diverged"),
    ]
    assert describe(lines) == (
        "fixed-cost λ 0.001 return -0.00100 with 90% large; fixed-cost λ 0.01 return -0.00300 with 10% large"
    )
    assert describe([line("asymmetric", None, None)]) == "no episode has ended yet"
    assert describe([line("large-only", -40.0, 1.0, success=0.5)]) == "large-only success 50%"


def test_a_return_that_agents_are_judged_by_is_told_beside_their_success():
    lines = [line("asymmetric", -40.0, 0.5, success=0.0, scored_by="return")]
    assert describe(lines) == "asymmetric return -40.0 and success 0% with 50% large"


def test_the_pace_is_the_recent_one():
    pace = Pace()
    assert pace.rate is None
    for second in range(61):  # 10 steps a second, then 100
        pace.mark(10 * second if second <= 30 else 300 + 100 * (second - 30), float(second))
    assert pace.rate == pytest.approx(100)
    pace.restart()
    assert pace.rate is None


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def test_what_comes_before_learning_is_named_and_its_rate_is_not_shown(clock):
    out = io.StringIO()
    display = Display(4096, console=Console(file=out, width=40))
    display.on_phase("taking 1,024 random steps")
    clock[0] += 0.1
    display.on_steps(1024)
    display.on_log([line("asymmetric", 5.0, 0.5)])  # 10,000 steps a second, at random
    display.on_phase("compiling the learners")
    clock[0] += 20
    assert display.status == "compiling the learners, 20 s so far"
    display.on_phase(None)
    clock[0] += 10
    display.on_steps(2048)
    display.on_log([line("asymmetric", 7.0, 0.25, steps=2048)])
    assert out.getvalue().splitlines() == [
        "taking 1,024 random steps",
        "compiling the learners",
        "2,048/4,096 steps, asymmetric return 7.00 with 25% large, 102 agent-steps/s, 20 s left",
    ]


def test_scores_stand_until_the_next_episode_ends():
    display = Display(4096, console=Console(file=io.StringIO()))
    display.on_phase(None)
    for score, said in [(None, "no episode has ended yet"), (7.0, "return 7.00"), (None, "return 7.00")]:
        display.on_log([line("asymmetric", score, 0.5)])
        assert said in display.status


@pytest.mark.parametrize("width", [40, 100])
def test_on_a_terminal_nothing_of_the_status_is_cut(clock, width):
    out = io.StringIO()
    display = Display(100_000, console=Console(file=out, width=width, force_terminal=True, color_system=None))
    display.on_phase(None)
    clock[0] += 1
    display.on_log([line("asymmetric", 812.5, 0.28), line("small-only", 10.0, 0.0), line("large-only", 850.0, 1.0)])
    display.on_steps(1024)
    display.close()
    shown = " ".join(out.getvalue().split())
    assert "1024/100000 steps" in shown
    for part in ("812.5", "28%", "large-only", "850.0", "3,072", "left"):
        assert part in shown
    assert "…" not in shown
