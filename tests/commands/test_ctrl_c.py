"""Ctrl-C ends a command within seconds, with one line and exit code 130, whatever it is at."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from lowgear.commands import ctrl_c

# Each says when it has begun, and never ends by itself.
SWALLOWS = """
while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pass
"""
NATIVE = """
import hashlib
hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # minutes, and no signal ends it
"""
IMPORTS = """
import endless
"""
ENDLESS = """
import time
try:
    time.sleep(60)
except BaseException:  # as extension modules do
    print("lost", flush=True)
    raise ImportError from None
"""
COLLECTS_GARBAGE = """
import gc
gc.callbacks.append(lambda *_: time.sleep(60))
gc.collect()
"""
UNWINDS = """
try:
    time.sleep(60)
finally:
    print("put away", flush=True)
"""
STOPS_IN_ITS_OWN_TIME = """
from lowgear.training.signals import stops
with stops(lambda: None, lambda: ctrl_c.say("stopping")):
    began = time.monotonic()
    while time.monotonic() < began + ctrl_c.PATIENCE_S + 1:
        time.sleep(0.1)
ctrl_c.will_say("stopped where it should")
ctrl_c.end()
"""
BEGINNING = "import time\nfrom lowgear.commands import ctrl_c\nctrl_c.begin()\nctrl_c.will_say('stopped λ')\n"
BEGINNING += "def main():\n    try:\n        work()\n    except KeyboardInterrupt:\n        ctrl_c.end()\n"


# Also where the suite runs in the background, and Ctrl-C is not for it.
AS_USUAL = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"


def start(command, tmp_path, **others):
    """In a group of its own, as a terminal's command is; standard output and error are one."""
    (tmp_path / "endless.py").write_text(ENDLESS)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(tmp_path)])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "encoding": "utf-8"}
    command = [sys.executable, "-c", AS_USUAL, *command]
    return subprocess.Popen(command, env=environment, start_new_session=True, cwd=tmp_path, **pipes | others)


def press(process, *, within):
    os.killpg(process.pid, signal.SIGINT)
    try:
        return process.communicate(timeout=within)[0]
    finally:
        process.kill()


def begin(work, tmp_path):
    body = "".join(f"    {line}\n" for line in ['print("begun", flush=True)', *work.strip().splitlines()])
    process = start([sys.executable, "-c", f"{BEGINNING}def work():\n{body}main()\n"], tmp_path)
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.3)
    return process


@pytest.mark.parametrize("work", [SWALLOWS, NATIVE], ids=["swallows", "native"])
def test_what_does_not_end_is_ended(tmp_path, work):
    process, began = begin(work, tmp_path), time.monotonic()
    assert press(process, within=ctrl_c.PATIENCE_S + 20) == "stopped λ\n"
    assert process.returncode == 130
    assert time.monotonic() - began >= ctrl_c.PATIENCE_S


@pytest.mark.parametrize("work", [IMPORTS, COLLECTS_GARBAGE], ids=["import", "garbage"])
def test_nothing_is_raised_where_it_would_be_lost(tmp_path, work):
    process = begin(work, tmp_path)
    assert press(process, within=20) == "stopped λ\n"
    assert process.returncode == 130


def test_what_can_be_put_away_is(tmp_path):
    process = begin(UNWINDS, tmp_path)
    assert press(process, within=20) == "put away\nstopped λ\n"
    assert process.returncode == 130


def test_a_second_one_does_not_wait(tmp_path):
    process, began = begin(SWALLOWS, tmp_path), time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.5)
    assert press(process, within=20) == "stopped λ\n"
    assert process.returncode == 130
    assert time.monotonic() - began < ctrl_c.PATIENCE_S


def test_a_run_that_stops_at_a_checkpoint_takes_its_time(tmp_path):
    process = begin(STOPS_IN_ITS_OWN_TIME, tmp_path)
    assert press(process, within=ctrl_c.PATIENCE_S + 30) == "stopping\nstopped where it should\n"
    assert process.returncode == 130


def test_a_second_one_ends_that_too(tmp_path):
    process, began = begin(STOPS_IN_ITS_OWN_TIME, tmp_path), time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "stopping\n"
    assert press(process, within=20) == "stopped λ\n"
    assert process.returncode == 130
    assert time.monotonic() - began < ctrl_c.PATIENCE_S


def test_in_a_shells_background_it_is_not_heard():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ctrl_c.begin()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


TRAIN = ["train", "TASK", "--gears", "2,4", "--steps", "200000", "--out", "run"]


def stopped(task, tmp_path, seconds, within=30, **others):
    command = [sys.executable, "-m", "lowgear", *(task if part == "TASK" else part for part in TRAIN)]
    process = start(command, tmp_path, **others)
    time.sleep(seconds)
    said = press(process, within=within)
    assert process.returncode == 130, said
    return said.splitlines()


# Python itself takes a moment to begin, and then imports JAX and dm_control.
@pytest.mark.parametrize("seconds", [0.4, 1.0, 2.0, 3.5])
def test_while_dm_control_and_jax_are_loaded(tmp_path, seconds):
    said = stopped("dmc:walker-walk", tmp_path, seconds)
    assert said[-1].startswith("stopped")
    assert "Traceback" not in "".join(said)


@pytest.mark.faults
@pytest.mark.parametrize("task", ["dmc:walker-walk", "gym:Pendulum-v1"])
def test_at_any_moment(tmp_path, task):
    """Until it learns: every 0.4 seconds, each time a little later."""
    for number in range(25):
        folder = tmp_path / str(number)
        folder.mkdir()
        said = stopped(task, folder, 0.3 + 0.41 * number)
        assert said[-1].startswith("stopped"), (number, said)
        assert "Traceback" not in "".join(said), (number, said)


def test_on_a_terminal_the_cursor_is_shown_again(tmp_path):
    master, terminal = pty.openpty()
    try:
        process = start(
            [sys.executable, "-m", "lowgear", *("envpool:Pendulum-v1" if part == "TASK" else part for part in TRAIN)],
            tmp_path,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
        )
        os.close(terminal)
        shown = b""
        while b"starting" not in shown:
            shown += os.read(master, 4096)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(30) == 130
        while True:
            try:
                shown += os.read(master, 4096)
            except OSError:  # nobody is left who writes there
                break
    finally:
        os.close(master)
    hidden, cursor, last = shown.decode().rpartition("\x1b[?25h")
    assert "\x1b[?25l" in hidden
    assert cursor
    assert "\x1b[?25l" not in last
    assert "go on with `lowgear train --resume run`" in last
