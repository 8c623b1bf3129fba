"""A clock that jumps changes nothing; a second process is refused, by name, for as long as the first lives."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.faults.children import NEW, Fault, arguments_of, preloading, train
from tests.faults.conftest import same, sound

STEPS = 416


@pytest.mark.faults
def test_a_clock_that_jumps(tmp_path, unbroken, library, counts):
    run, jumps = tmp_path / "run", {"FAULT_CLOCK": "1"}
    killed = train(run, STEPS, env=preloading(library, run, Fault("rename", "latest.json", "after", 2), **jumps))
    assert killed.returncode == -signal.SIGKILL
    done = train(run, STEPS, env=preloading(library, run, **jumps))
    assert done.returncode == 0, done.stderr
    same(run, unbroken(STEPS))
    counts["faults injected"] += 2
    counts["  clock jumps at every reading"] += 2


@pytest.mark.faults
def test_two_writers(tmp_path, unbroken, counts):
    run = tmp_path / "run"
    long = [sys.executable, "-m", "lowgear", "train", *NEW, "--steps", str(STEPS), "--out", str(run)]
    with subprocess.Popen(long, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        while not (run / "lock").exists() or not (run / "lock").read_text():
            assert first.poll() is None
            time.sleep(0.01)
        first.send_signal(signal.SIGSTOP)  # it lives, and does not get on
        before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
        again = [sys.executable, "-m", "lowgear", *arguments_of(run, STEPS)]
        others = [subprocess.Popen(again, stderr=subprocess.PIPE, text=True) for _ in range(3)]
        for other in others:
            _, said = other.communicate()
            assert other.returncode == 2
            assert f"is in use by process {first.pid} on {os.uname().nodename}: wait until it is done" in said
        assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
        first.kill()
    sound(run)
    assert train(run, STEPS).returncode == 0
    same(run, unbroken(STEPS))
    counts["faults injected"] += 3
    counts["  second writers refused"] += 3
