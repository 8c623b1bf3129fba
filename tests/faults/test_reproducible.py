"""Same seed, same machine, same result, byte for byte: training and evaluation, each in a process of its own."""

import os
import subprocess
import sys

from tests.faults.children import train
from tests.faults.conftest import same

STEPS = 224


def evaluate(run, *options):
    command = [sys.executable, "-m", "lowgear", "evaluate", str(run), "--episodes", "3", "--json", *options]
    printed = subprocess.run(command, capture_output=True, check=True).stdout
    return printed, (run / "evaluation.json").read_bytes()


def test_training_and_evaluation_repeat_themselves(tmp_path, unbroken):
    """Also where strings are hashed otherwise, and where evaluation is done twice."""
    whole, run = unbroken(STEPS), tmp_path / "run"
    done = train(run, STEPS, env=os.environ | {"PYTHONHASHSEED": "7"})
    assert done.returncode == 0, done.stderr
    same(run, whole)
    first = evaluate(run)
    assert first == evaluate(whole.path)
    assert first != evaluate(run, "--seed", "1")
