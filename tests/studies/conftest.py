from collections.abc import Sequence

import pytest

from lowgear.config.tasks import find
from lowgear.studies.lines import Line, Scored
from lowgear.studies.setup import NOTHING, Paper, Setup

SETUP = Setup(seeds=(0,), recipe="paper", episodes=2, steps=1152, gears=(2, 4))


def line(
    scores: Sequence[float], label: str = "asymmetric", task: str = "reacher-easy", paper: Paper = NOTHING
) -> Line:
    seeds = tuple(Scored(seed, score, 1.0, 0.25, 1000.0, 0.5) for seed, score in enumerate(scores))
    return Line(find(task), label, seeds, paper, 5000)


@pytest.fixture(scope="session")
def studies(tmp_path_factory):
    """Where the tests' studies share their runs."""
    return tmp_path_factory.mktemp("studies")
