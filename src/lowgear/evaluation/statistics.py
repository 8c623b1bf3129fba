"""What several seeds say together: mean, spread, best, and the estimators of Agarwal et al. 2021.

Few seeds and heavy tails make means and their spreads fragile. The interquartile mean leaves out the lowest and the
highest quarter; its interval comes from drawing the seeds of each task anew, task by task (stratified bootstrap).
Scores are (seeds, tasks), or (seeds,) for one task.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lowgear.policy.arrays import DoubleArray

Estimator = Callable[[DoubleArray], float]
SAMPLES = 2_000
NORMAL_95 = 1.96
# Student's t at 97.5%, for 1 to 30 degrees of freedom.
STUDENT_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


class Spread(NamedTuple):
    """Several seeds of one thing."""

    seeds: int
    mean: float
    std: float  # over seeds; 0 for one
    best: float
    iqm: float
    low: float  # of the interquartile mean's 95% interval
    high: float


def interquartile_mean(scores: npt.ArrayLike) -> float:
    """Mean of what is left without a quarter at each end, rounded down to whole scores as rliable has it."""
    ordered = np.sort(np.asarray(scores, np.float64), axis=None)
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def bootstrap(
    scores: npt.ArrayLike, estimator: Estimator = interquartile_mean, samples: int = SAMPLES, seed: int = 0
) -> tuple[float, float]:
    """The 95% interval of an estimator over all scores, by drawing the seeds of each task anew."""
    table = np.atleast_2d(np.asarray(scores, np.float64).T).T
    seeds, tasks = table.shape
    generator = np.random.default_rng(seed)
    drawn = generator.integers(seeds, size=(samples, seeds, tasks))
    found = [estimator(table[rows, np.arange(tasks)]) for rows in drawn]
    low, high = np.percentile(found, [2.5, 97.5])
    return float(low), float(high)


def mean_interval(scores: npt.ArrayLike, samples: int = SAMPLES, seed: int = 0) -> tuple[float, float]:
    """The 95% bootstrap interval of the mean of one agent's episodes."""
    values = np.asarray(scores, np.float64)
    drawn = np.random.default_rng(seed).integers(len(values), size=(samples, len(values)))
    low, high = np.percentile(values[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def t_interval(values: npt.ArrayLike) -> tuple[float, float]:
    """Student's 95% interval of the mean of two values or more, for few seeds, of which draws know too little."""
    array = np.asarray(values, np.float64)
    mean, half = float(array.mean()), half_width(array)
    return mean - half, mean + half


def half_width(values: DoubleArray) -> float:
    """Half of Student's 95% interval of the mean; 0 for a single value."""
    return student_t(len(values) - 1) * deviation(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def by_step(each: DoubleArray, lengths: DoubleArray) -> DoubleArray:
    """What episodes of these lengths come to per step, so that the mean of it is that of all their steps.

    Its spread tells how far that mean may be off (a ratio of two sums, linearised): an episode counts by its length.
    """
    weights = lengths / lengths.mean()
    mean = (each * weights).mean()
    counted: DoubleArray = mean + (each - mean) * weights
    return counted


def student_t(freedom: int) -> float:
    """Student's t at 97.5%."""
    return STUDENT_T[freedom - 1] if freedom <= len(STUDENT_T) else NORMAL_95 + 2.4 / freedom  # within 0.003


def deviation(values: DoubleArray) -> float:
    """Standard deviation of the sample; 0 of a single value."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def spread(scores: Sequence[float]) -> Spread:
    """Everything that is shown of one task's seeds."""
    values = np.asarray(scores, np.float64)
    low, high = bootstrap(values)
    mean, std, best = float(values.mean()), deviation(values), float(values.max())
    return Spread(len(values), mean, std, best, interquartile_mean(values), low, high)
