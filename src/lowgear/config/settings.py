"""Fields of a recipe as people write them: `--set batch=128`, or a TOML file of such lines."""

import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from lowgear import LowgearError
from lowgear.config.recipes import Recipe
from lowgear.policy import fields as values
from lowgear.policy.files import read_text

TYPES: dict[str, Any] = typing.get_type_hints(Recipe)
NAMES = tuple(field.name for field in fields(Recipe) if field.name != "name")
FLOATS_END = 1e300
MOST_BYTES = 1 << 20  # of a file of settings
WORDS = {"true": True, "yes": True, "false": False, "no": False, "none": None}


def from_assignments(assignments: Sequence[str]) -> dict[str, Any]:
    """`["batch=128", "periods=2,5"]` as settings of a recipe."""
    found: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise LowgearError(f"--set {assignment!r}: write NAME=VALUE, for example --set batch=128")
        name = name.strip().replace("-", "_")
        if name in found:
            raise LowgearError(f"--set {name} is there twice: leave one of them out")
        found |= checked({name: _read(text.strip())}, "--set ")
    return found


def from_file(path: Path) -> dict[str, Any]:
    """The settings in a TOML file."""
    if not path.exists():
        raise LowgearError(f"--settings {path}: no such file")
    remedy = "write lines such as batch = 128"
    try:
        raw = tomllib.loads(read_text(path, "file of settings", remedy, MOST_BYTES))
    except (RecursionError, ValueError) as error:
        raise LowgearError(f"--settings {path} is not a TOML file ({values.reason(error)}): {remedy}") from None
    return checked(raw, f"{path}: ")


def checked(settings: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The settings, each of its field's type; an unknown name or another type is an error."""
    return {name: _checked(name, value, where) for name, value in settings.items()}


def _checked(name: str, value: Any, where: str) -> Any:
    if name not in NAMES:
        near = get_close_matches(name[: values.SHOWN], NAMES, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`lowgear recipes show` lists them"
        shown = name if name.isprintable() and len(name) <= values.SHOWN else values.shown(name)
        raise LowgearError(f"{where}{shown}: the recipe has no such setting; {hint}")
    wanted = TYPES[name]
    options = typing.get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)
    for option in options:
        fitted = _fit(value, option)
        if fitted is not None or (value is None and option is types.NoneType):
            return fitted
    raise LowgearError(f"{where}{name} = {_shown(value)}: write {' or '.join(map(_described, options))}")


def _fit(value: Any, wanted: Any) -> Any:
    """The value as the type that is wanted, or None; NumPy's numbers and arrays count as Python's."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if typing.get_origin(wanted) is tuple:
        part = typing.get_args(wanted)[0]
        items = list(value) if isinstance(value, list | tuple) else [value]
        fitted = [_fit(item, part) for item in items]
        return None if None in fitted else tuple(fitted)
    if wanted is float and type(value) in (int, float):
        return None if type(value) is int and abs(value) > FLOATS_END else float(value)
    return value if type(value) is wanted else None


def _read(text: str) -> Any:
    """A value from the command line: a number, a word for yes, no or none, a list with commas, or text."""
    if "," in text:
        return [_read(part.strip()) for part in text.split(",")]
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple) and len(value) <= values.SHOWN:
        return ",".join(str(item) if type(item) in (int, float) else values.shown(item) for item in value)
    plain = isinstance(value, str) and value.isprintable() and len(value) <= values.SHOWN
    return str(value) if plain else values.shown(value)


def _described(wanted: Any) -> str:
    if typing.get_origin(wanted) is tuple:
        return "numbers with commas between them"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}.get(wanted, "none")
