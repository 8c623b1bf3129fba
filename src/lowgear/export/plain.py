"""What a name may put into generated text: the one way from a policy file or a person into C, Python or their comments.

Whatever could end a comment or a string, begin an escape, a trigraph or a line, or is not ASCII becomes an underscore.
"""

import re
from collections.abc import Sequence

from lowgear import LowgearError

LONGEST_NAME = 64  # letters of a symbol's prefix
NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_]{{0,{LONGEST_NAME - 1}}}")
NOT_PLAIN = re.compile(r"[^A-Za-z0-9 _.:+-]")


def plain(text: object) -> str:
    """For comments and string literals of any language."""
    return NOT_PLAIN.sub("_", str(text))


def constants(names: Sequence[str]) -> list[str]:
    """Names as the ends of C constants, each another: `joint angle` gives JOINT_ANGLE; a second one, JOINT_ANGLE_3."""
    found: list[str] = []
    for place, name in enumerate(names):
        word = re.sub(r"[^A-Z0-9]+", "_", plain(name).upper())[:LONGEST_NAME].strip("_") or str(place)
        while word in found:
            word = f"{word}_{place}"
        found.append(word)
    return found


def default_name(task: str) -> str:
    """The prefix of a task's symbols: `walker-stand` gives walker_stand, `gym:Pendulum-v1` pendulum_v1."""
    found = re.sub(r"[^a-z0-9]+", "_", task.rpartition(":")[2].lower()).strip("_")
    whole = found if found[:1].isalpha() else f"task_{found}"
    return whole[:LONGEST_NAME].rstrip("_")


def check_name(name: str) -> str:
    """The prefix, if C accepts it; nothing else may begin a symbol or name a file of an export."""
    if not NAME.fullmatch(name):
        raise LowgearError(
            f"--name {name!a} cannot begin a C identifier: write at most {LONGEST_NAME} letters, digits and _, a "
            f"letter first, for example {default_name(name)}"
        )
    return name
