"""Ctrl-C ends a command within seconds, with one line and exit code 130, whatever it is at."""

import os
import pty
import signal
import sys
import time

import pytest

from lowgear.commands import ctrl_c
from tests.fixtures.keyboard import press, start, stopped

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


def begin(work, tmp_path, patience_s=ctrl_c.PATIENCE_S):
    body = "".join(f"    {line}\n" for line in ['print("begun", flush=True)', *work.strip().splitlines()])
    (tmp_path / "endless.py").write_text(ENDLESS)
    process = start(
        [sys.executable, "-c", f"{BEGINNING}ctrl_c.PATIENCE_S = {patience_s}\ndef work():\n{body}main()\n"], tmp_path
    )
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
    process = begin(SWALLOWS, tmp_path, patience_s=60)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.5)
    assert press(process, within=20) == "stopped λ\n"
    assert process.returncode == 130


def test_a_run_that_stops_at_a_checkpoint_takes_its_time(tmp_path):
    process = begin(STOPS_IN_ITS_OWN_TIME, tmp_path)
    assert press(process, within=ctrl_c.PATIENCE_S + 30) == "stopping\nstopped where it should\n"
    assert process.returncode == 130


def test_a_second_one_ends_that_too(tmp_path):
    process = begin(STOPS_IN_ITS_OWN_TIME, tmp_path, patience_s=60)
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "stopping\n"
    assert press(process, within=20) == "stopped λ\n"
    assert process.returncode == 130


def test_in_a_shells_background_it_is_not_heard():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ctrl_c.begin()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


OPTIONS = ["--gears", "2,4", "--steps", "200000", "--out", "run"]


# Python itself takes a moment to begin, and then imports JAX and dm_control.
@pytest.mark.parametrize("seconds", [0.4, 1.0, 2.0, 3.5])
def test_while_dm_control_and_jax_are_loaded(tmp_path, seconds):
    stopped(["train", "dmc:walker-walk", *OPTIONS], tmp_path, seconds)


def test_on_a_terminal_the_cursor_is_shown_again(tmp_path):
    master, terminal = pty.openpty()
    try:
        process = start(
            [sys.executable, "-m", "lowgear", "train", "envpool:Pendulum-v1", *OPTIONS],
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
