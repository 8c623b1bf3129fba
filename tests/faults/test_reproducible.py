"""Same seed, same machine, same result, byte for byte: training and evaluation, each in a process of its own."""

import os
import subprocess
import sys

import pytest

from tests.faults.children import train
from tests.faults.conftest import same
from tests.faults.trials import QUICK


@pytest.mark.faults
def test_training_and_evaluation_repeat_themselves(tmp_path, unbroken):
    """Also where strings are hashed otherwise."""
    whole, run = unbroken(QUICK), tmp_path / "run"
    done = train(run, QUICK, env=os.environ | {"PYTHONHASHSEED": "7"})
    assert done.returncode == 0, done.stderr
    same(run, whole)
    assert evaluate(run) == evaluate(whole.path)


def evaluate(run):
    """What is printed, and what is kept."""
    command = [sys.executable, "-m", "lowgear", "evaluate", str(run), "--episodes", "3", "--json"]
    printed = subprocess.run(command, capture_output=True, check=True).stdout
    kept = run / "evaluation.json"
    found = printed, kept.read_bytes()
    kept.unlink()
    return found
