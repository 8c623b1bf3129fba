"""Errors in the words of who called: the rooms below speak of options, a Python caller has arguments."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lowgear import LowgearError

NAMES = {  # of arguments that are called otherwise in Python
    "steps": "total_timesteps",
    "cost-coefficients": "cost_coefficient",
    "seeds": "seed",
    "variants": "variant",
    "period": "periods",
}
FLAGS = ("best", "trust", "unchecked")
LISTS = ("gears",)  # options whose value is a list of words and numbers
WORDS = ("format", "license", "out", "recipe", "repo", "weights")  # options whose value is a word
NUMBER = r"-?\d(?:[\d.,e+-]*\d)?"
WORD = r"(?!and\b|or\b)[\w./,-]*[\w./-]"
OPTION = re.compile(rf"--(?P<name>[a-z][a-z-]*)(?: (?P<value>'[^']*'|(?:{NUMBER})(?![\w,])|{WORD}))?")


@contextmanager
def python_words() -> Iterator[None]:
    """A LowgearError that leaves here names arguments, not options."""
    try:
        yield
    except LowgearError as error:
        error.args = (in_python(str(error)),)
        raise


def in_python(text: str) -> str:
    """A message with `name=value` for `--name value`; what stands in backquotes is a command, and stays."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else OPTION.sub(_argument, part) for part in parts)


def _argument(found: re.Match[str]) -> str:
    option, value = found["name"], found["value"]
    if option == "set":  # --set batch=128
        return value or "a setting"
    name = NAMES.get(option, option.replace("-", "_"))
    if option in FLAGS:
        return f"{name}=True" + (f" {value}" if value else "")
    if value is None:
        return name
    if value.startswith("'"):
        return f"{name}={value}"
    if re.fullmatch(NUMBER, value):
        return f"{name}=({value.replace(',', ', ')})" if "," in value else f"{name}={value}"
    if option in LISTS:
        return f"{name}=({', '.join(_item(one) for one in value.split(','))})"
    return f'{name}="{value}"' if option in WORDS else f"{name} {value}"


def _item(text: str) -> str:
    return text if text.isdigit() else f'"{text}"'
