"""Ctrl-C is never lost while a simulator loads."""

import os
import signal
import sys
import threading

import pytest

from lowgear import LowgearError, envs
from lowgear.config.tasks import find
from lowgear.envs.interrupts import interrupts_wait

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


def test_in_another_thread_nothing_changes():
    def within():
        with interrupts_wait():
            seen.append(signal.getsignal(signal.SIGINT))

    seen = []
    thread = threading.Thread(target=within)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
