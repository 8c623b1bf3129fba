"""What a name may put into generated text: the one way from a policy file or a person into C, Python or their comments.

Whatever could end a comment or a string, begin an escape, a trigraph or a line, or is not ASCII becomes an underscore.
"""

import re

from lowgear import LowgearError

LONGEST_NAME = 64  # letters of a symbol's prefix
NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_]{{0,{LONGEST_NAME - 1}}}")
NOT_PLAIN = re.compile(r"[^A-Za-z0-9 _.:+-]")


def plain(text: object) -> str:
    """For comments and string literals of any language."""
    return NOT_PLAIN.sub("_", str(text))


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
