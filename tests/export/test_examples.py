"""The C programs of examples/: a loop on this machine, firmware for a Cortex-M4F, its self-test on an emulated one."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.fixtures.exports import write_c
from tests.fixtures.policies import KINDS, episodes_of, policy_of

EXAMPLES = Path(__file__).parents[2] / "examples"


def make(example, export, build, *targets):
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    command = ["make", "-s", "-C", EXAMPLES / example, f"EXPORT={export}", "NAME=robot", f"BUILD={build}", *targets]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_loop_acts_line_by_line(tmp_path, gcc):
    policy = policy_of(KINDS["wide"])
    write_c(policy, tmp_path)
    made = make("c_loop", tmp_path, tmp_path, f"CC={gcc}")
    assert made.returncode == 0, made.stderr
    episodes = episodes_of(policy)
    text = "\n".join("\n".join(" ".join(f"{x:.9g}" for x in row) for row in e.observation) + "\n" for e in episodes)
    done = subprocess.run([tmp_path / "loop"], input=text, capture_output=True, text=True, check=True)
    lines = np.array([line.split() for line in done.stdout.splitlines()], float)
    np.testing.assert_array_equal(lines[:, 0], np.concatenate([e.gear for e in episodes]))
    np.testing.assert_allclose(lines[:, 1:], np.concatenate([e.action for e in episodes]), atol=1e-5)
    off = subprocess.run([tmp_path / "loop", "7"], input=text, capture_output=True, text=True, check=False)
    assert (off.returncode, off.stderr) == (1, "cost coefficient 7 is not on the dial\n")


def cross():
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed (Debian: gcc-arm-none-eabi, libnewlib-arm-none-eabi)")


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_flash_and_ram_of_a_cortex_m(weights, tmp_path):
    cross()
    write_c(policy_of(KINDS["wide"]), tmp_path, weights)
    made = make("cortex_m", tmp_path, tmp_path / "build", "size")
    assert made.returncode == 0, made.stderr
    text, data, bss = map(int, made.stdout.splitlines()[1].split()[:3])
    assert (data, bss) == (0, 0)  # the controller has no memory of its own
    assert text < (36_000 if weights == "float32" else 15_000)
    stack = re.search(r"at most (\d+) bytes", made.stdout)
    assert stack is not None
    assert int(stack[1]) < 2000


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wide", "three gears", "relu", "other bounds"])
def test_the_self_test_on_an_emulated_cortex_m(kind, tmp_path):
    cross()
    if shutil.which("qemu-system-arm") is None:
        pytest.skip("qemu-system-arm is not installed")
    write_c(policy_of(KINDS[kind]), tmp_path)
    done = make("cortex_m", tmp_path, tmp_path / "build", "run")
    assert done.returncode == 0, done.stderr + done.stdout
    assert "0 wrong gears, 0 wrong actions" in done.stdout


@pytest.mark.slow
def test_a_failing_self_test_fails_on_the_board(tmp_path):
    cross()
    if shutil.which("qemu-system-arm") is None:
        pytest.skip("qemu-system-arm is not installed")
    text = write_c(policy_of(), tmp_path)["robot.c"].decode()
    (tmp_path / "robot.c").write_text(text.replace("x * p / q", "x * p / q * 1.001f"))
    done = make("cortex_m", tmp_path, tmp_path / "build", "run")
    assert done.returncode != 0
    assert "wrong actions" in done.stdout
