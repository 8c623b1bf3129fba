"""Python modules that a task names, imported from the working directory or from what is installed.

A command that is installed does not look into the working directory by itself. The module's own name is looked for
there first; afterwards the directory stands last on the path, so that nothing in it hides what Lowgear imports later.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from lowgear import LowgearError
from lowgear.envs.checked import blamed_on
from lowgear.envs.spaces import nearest


def import_module(task: str, module: str) -> ModuleType:
    """The module that `task` names; one that can't be imported is an error that says why."""
    with _working_directory_first(), blamed_on(task, f"while the Python module {module} was imported"):
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            missing = error.name or ""
            if module == missing or module.startswith(f"{missing}."):
                raise LowgearError(
                    f"{task}: there is no Python module {module} in {os.getcwd()} or among the installed packages: "
                    f"run from the directory that holds {module.partition('.')[0]}.py, or check the spelling"
                ) from None
            raise LowgearError(
                f"{task}: the Python module {module} needs {missing}, which is not installed: pip install {missing}"
            ) from None


def attribute(task: str, module: ModuleType, name: str) -> Any:
    """What the module calls `name`."""
    if not hasattr(module, name):
        where = getattr(module, "__file__", None) or module.__name__
        hint = nearest(name, [known for known in dir(module) if not known.startswith("_")])
        raise LowgearError(f"{task}: {where} has no {name!r}: {hint or 'check the spelling'}")
    return getattr(module, name)


@contextmanager
def _working_directory_first() -> Iterator[None]:
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
        if here not in sys.path:
            sys.path.append(here)
