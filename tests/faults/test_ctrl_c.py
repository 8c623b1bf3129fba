"""Ctrl-C at any moment of a command, as from a terminal: it ends within seconds, with one line and exit code 130."""

import pytest

from tests.faults.trials import QUICK
from tests.fixtures.keyboard import stopped

EVERY_S, MOMENTS = 0.47, 25


@pytest.mark.faults
@pytest.mark.parametrize("task", ["dmc:walker-walk", "gym:Pendulum-v1"])
def test_while_it_trains(tmp_path, task, counts):
    """Importing JAX and the simulator, making networks, taking random steps, compiling; then learning."""
    for moment in range(MOMENTS):
        (folder := tmp_path / str(moment)).mkdir()
        arguments = ["train", task, "--gears", "2,4", "--steps", "1000000", "--out", "run"]
        stopped(arguments, folder, EVERY_S * moment)
    counts["commands ended by Ctrl-C"] += MOMENTS
    counts[f"  train {task}"] += MOMENTS


@pytest.mark.faults
def test_while_it_evaluates(tmp_path, unbroken, counts):
    run = unbroken(QUICK).path
    for moment in range(MOMENTS):
        lines = stopped(["evaluate", str(run), "--episodes", "1000000"], tmp_path, EVERY_S * moment)
        assert [line for line in lines if line] == ["stopped"]
    assert not (run / "evaluation.json").exists()
    counts["commands ended by Ctrl-C"] += MOMENTS
    counts["  evaluate"] += MOMENTS
