"""Pendulums that fail on command: what `peer_faults.py` trains on.

FAULT in the environment names what goes wrong, FAULT_STEP the step of an environment at which it does, and FAULT_MARK a
file that the first environment to get there makes: of several environments one fails, and it fails once.
"""

import ctypes
import os
import resource
import signal

import gymnasium
import numpy as np
from gymnasium.envs.classic_control.pendulum import PendulumEnv

FILE_LIMIT = 4_096  # bytes: below any checkpoint, above a line of a log


def full_disk():
    """From here on no file of this process grows past the limit: writes fail, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, resource.RLIM_INFINITY))


def cut_write():
    """As a full disk, but the process is killed in the middle of the write that goes too far."""
    ctypes.CDLL(None).signal(int(signal.SIGXFSZ), None)  # the default: to die; signal.signal works in one thread only
    full_disk()


def broken():
    raise RuntimeError("the simulator broke")


ACTS = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT),
    "terminate": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "full": full_disk,
    "cut": cut_write,
    "raise": broken,
}


class FaultyPendulum(PendulumEnv):
    """A pendulum with one fault."""

    def __init__(self, render_mode=None):
        super().__init__(render_mode)
        self.steps = 0

    def step(self, action):
        observation, reward, *ends = super().step(action)
        self.steps += 1
        fault = os.environ.get("FAULT")
        if fault and self.steps >= int(os.environ["FAULT_STEP"]) and _first():
            if fault in ACTS:
                ACTS[fault]()
            elif fault == "observation":
                observation = np.full_like(observation, np.nan)
            elif fault == "reward":
                reward = float("nan")
        return observation, reward, *ends


def _first():
    try:
        os.close(os.open(os.environ["FAULT_MARK"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


gymnasium.register("FaultyPendulum-v0", FaultyPendulum, max_episode_steps=200)
gymnasium.register("EndlessPendulum-v0", FaultyPendulum)
