import numpy as np
import pytest
from scipy.stats import t as reference

from lowgear.evaluation.statistics import bootstrap, half_width, interquartile_mean, spread, student_t, t_interval


def test_interquartile_mean_of_a_multiple_of_four_is_the_middle_half() -> None:
    assert interquartile_mean([100, 2, 3, -50]) == 2.5
    assert interquartile_mean([8, 1, 2, 3, 4, 5, 6, 7]) == 4.5


def test_interquartile_mean_cuts_whole_scores() -> None:
    assert interquartile_mean([0, 10, 20, 60, 1000]) == 30  # one at each end
    assert interquartile_mean([7, 9, 20]) == 12
    assert interquartile_mean([7]) == 7


def test_interquartile_mean_is_over_all_seeds_and_tasks() -> None:
    assert interquartile_mean([[1, 2], [3, 4]]) == interquartile_mean([1, 2, 3, 4])


def test_bootstrap_draws_seeds_within_each_task() -> None:
    # Both tasks are constant over seeds: whatever is drawn, the mean is the same. Mixing the tasks would spread it.
    table = np.array([[0.0, 1.0]] * 5)
    assert bootstrap(table, lambda x: float(x.mean())) == (0.5, 0.5)


def test_bootstrap_covers_the_mean_of_a_normal_sample() -> None:
    generator = np.random.default_rng(0)
    inside = 0
    for _ in range(100):
        low, high = bootstrap(generator.normal(size=30), lambda x: float(x.mean()), samples=300)
        inside += low <= 0 <= high
    assert 85 <= inside <= 99


def test_bootstrap_is_reproducible() -> None:
    assert bootstrap([1, 2, 3, 9]) == bootstrap([1, 2, 3, 9])
    assert bootstrap([1, 2, 3, 9]) != bootstrap([1, 2, 3, 9], samples=50, seed=1)


def test_spread_of_seeds() -> None:
    found = spread([1.0, 2.0, 6.0])
    assert (found.seeds, found.mean, found.best) == (3, 3.0, 6.0)
    assert found.std == pytest.approx(np.sqrt((4 + 1 + 9) / 2))
    assert found.low <= found.iqm <= found.high
    assert spread([5.0])[1:] == (5, 0, 5, 5, 5, 5)


def test_students_t_is_that_of_the_tables() -> None:
    freedoms = [*range(1, 100), 199, 1_000, 100_000]
    assert [student_t(freedom) for freedom in freedoms] == pytest.approx(reference.ppf(0.975, freedoms), abs=3e-3)


def test_a_few_values_have_a_wide_interval() -> None:
    values = np.array([1.0, 2.0, 3.0])  # their standard deviation is 1
    assert half_width(values) == pytest.approx(4.303 / 3**0.5)
    assert t_interval(values) == pytest.approx((2 - half_width(values), 2 + half_width(values)))
    assert half_width(values[:1]) == 0
