"""The paper's figures as rows of its tables."""

import numpy as np
import pytest

from lowgear.config import paper
from lowgear.config.paper import NOTHING, Figures


def test_a_task_of_the_main_paper_and_one_of_the_supplement() -> None:
    walker = paper.variant("walker-stand", "asymmetric")
    assert walker == Figures((943.8, 23.3), 967.2, (pytest.approx(0.197), pytest.approx(0.098)), pytest.approx(0.823))
    reacher = paper.variant("reacher-easy", "asymmetric")
    assert (reacher.score, reacher.best) == ((689.7, 272.7), 931.7)
    assert paper.variant("reacher-easy", "small-only").best is None  # the supplement prints means alone


def test_rows_of_the_other_tables() -> None:
    assert paper.variant("walker-stand", "no-cost") == paper.ablation("walker-stand", "no-cost") != NOTHING
    assert paper.width("walker-stand", 512).score == (915.7, 91.2)
    assert paper.two_large("walker-stand").score == (978.6, 2.2)
    assert paper.distillation("MountainCarContinuous-v0", "bc").best == 93.3
    assert paper.expert_data("Ant-v3", "bc", 50).score == (4857.0, 95.0)


def test_what_the_paper_does_not_print_is_empty() -> None:
    for figures in (
        paper.variant("gym:Pendulum-v1", "asymmetric"),
        paper.variant("walker-stand", "two-large"),
        paper.ablation("reacher-easy", "no-cost"),
        paper.two_large("reacher-easy"),
        paper.width("walker-stand", 196),
        paper.width("gym:Pendulum-v1", 512),
        paper.distillation("walker-stand", "dagger"),
        paper.expert_data("walker-stand", "bc", 2),
    ):
        assert figures == NOTHING


def test_scores_are_scaled_by_random_and_by_large_only() -> None:
    walker = paper.published("walker-stand")
    assert walker.scaled(walker.random) == 0
    assert walker.scaled(walker.large_only[0]) == 1
    assert walker.scaled(np.array([walker.random, 1000.0]), 1000.0).tolist() == [0, 1]
