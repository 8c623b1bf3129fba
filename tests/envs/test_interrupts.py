"""Ctrl-C is never lost while a simulator loads."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from lowgear import LowgearError, envs
from lowgear.config.tasks import find
from lowgear.envs.interrupts import interrupts_wait, not_for_children
from lowgear.envs.process import Process

# As extension modules do: what is raised while they begin is an ImportError, or nothing.
LOADING = """
import os, signal
try:
    os.kill(os.getpid(), signal.{name})
except KeyboardInterrupt:
    pass
raise ImportError("initialization failed")
"""


@pytest.fixture(autouse=True)
def heard_as_usual():
    """Also where the suite runs in the background, and Ctrl-C is not for it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("name", "raised"), [("SIGINT", KeyboardInterrupt), ("SIGCONT", LowgearError)])
def test_while_dm_control_is_imported(tmp_path, monkeypatch, name, raised):
    (tmp_path / "dm_control").mkdir()
    (tmp_path / "dm_control" / "__init__.py").write_text(LOADING.format(name=name))
    for module in [each for each in sys.modules if each.split(".")[0] == "dm_control" or each == "lowgear.envs.dmc"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(raised):
        envs.make(find("dmc:walker-walk"), 1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_is_done_goes_on_until_its_end():
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts_wait():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        done.append(True)
    assert done


def test_a_handler_of_somebody_else_hears_at_once():
    heard = []
    signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    with interrupts_wait():
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.01)
        within = list(heard)
    assert heard == [signal.SIGINT]
    assert within in ([], heard)  # it is blocked in this thread; another may take it
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.parametrize("within", [interrupts_wait, not_for_children])
def test_a_child_that_is_started_meanwhile_never_hears(within):
    asleep = [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(60)"]
    with within():
        child = subprocess.Popen(asleep, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with child:
        child.send_signal(signal.SIGINT)  # before its Python has begun
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGINT)
        time.sleep(0.2)
        assert child.poll() is None
        child.kill()


def test_a_process_of_our_own_never_hears():
    process = Process("lowgear.evaluation.apart")
    process.process.send_signal(signal.SIGINT)
    process.close(patience=60)  # it ends by itself, when nobody is there to tell it anything
    assert process.process.returncode == 0


def test_in_another_thread_nothing_changes():
    def within():
        with interrupts_wait():
            seen.append(signal.getsignal(signal.SIGINT))

    seen = []
    thread = threading.Thread(target=within)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
