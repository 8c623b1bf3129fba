"""What MuJoCo remarks: notes on the age of a model are dropped, other warnings are told once, and no log is written."""

import importlib.util
import sys

import gymnasium

MADE_OF_IT = ("mujoco", "robotics")  # in the entry points of environments that load it


def hear_for(env_id: str) -> None:
    """Before an environment is made that loads MuJoCo: it would write to standard error, and to MUJOCO_LOG.TXT here."""
    if "mujoco" not in sys.modules and not _loads_mujoco(env_id):
        return
    import mujoco

    mujoco.set_mju_user_warning(_Notes())


def _loads_mujoco(env_id: str) -> bool:
    if importlib.util.find_spec("mujoco") is None:
        return False
    entry = getattr(gymnasium.registry.get(env_id), "entry_point", None)
    return any(name in str(entry) for name in MADE_OF_IT)


class _Notes:
    """Hears each warning, and tells those that matter once; times and places differ, so the first words count."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, text: str) -> None:
        what = text.partition(".")[0]
        if "deprecated" not in text and what not in self._told:
            self._told.add(what)
            print(f"MuJoCo: {text.strip()}", file=sys.stderr)
