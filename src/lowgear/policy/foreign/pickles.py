"""Reads pickles without running them: what they would import stays a name, what they would call stays a record.

A pickle is a program for a little stack machine, and Python's own runs whatever functions it names. This one knows the
steps that build lists, tuples, dicts, texts and numbers; for an import it puts down a `Name`, for a call a `Made` that
keeps the arguments. Whoever reads the result looks for what they know in it and refuses the rest. Steps, entries and
numbers are bounded, so that a small pickle cannot keep us busy.
"""

import pickletools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from lowgear.policy.fields import BadField, shown

MOST_STEPS = 400_000
MOST_ENTRIES = 50_000  # of all dicts and sets together


class Name(NamedTuple):
    """Something that a pickle would import; it is never imported."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Made:
    """What a call would have made; nothing is called."""

    __slots__ = ("arguments", "items", "maker", "state")

    def __init__(self, maker: Any, arguments: tuple[Any, ...]) -> None:
        self.maker, self.arguments = maker, arguments
        self.state: Any = None  # what it would have been told afterwards
        self.items: dict[Any, Any] = {}  # of a kind of dict

    def __repr__(self) -> str:
        return f"what {shown(str(self.maker)) if isinstance(self.maker, Name) else 'a call'} makes"


class Strange:
    """Stands for a key that no entry we look for has."""

    __slots__ = ()


class Mark:
    """Where a list of values on the stack begins."""

    __slots__ = ()


MARK = Mark()
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
LITERALS = frozenset(
    (
        *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "BINSTRING", "SHORT_BINSTRING"),
    )
)
PUTS, GETS = ("BINPUT", "LONG_BINPUT"), ("BINGET", "LONG_BINGET")
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
IGNORED = ("PROTO", "FRAME")


class Machine:
    """The state of one reading: a stack, and what was put aside."""

    def __init__(self, allow: Callable[[Name], bool], persistent: Callable[[Any], Any] | None) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.entries = 0
        self.allow, self.persistent = allow, persistent

    def step(self, code: str, argument: Any) -> None:
        """One step of the pickle."""
        if code in CONSTANTS:
            self.stack.append(CONSTANTS[code])
        elif code in LITERALS:
            self.stack.append(argument)
        elif code in PUTS:
            self.memo[argument] = self.top()
        elif code == "MEMOIZE":
            self.memo[len(self.memo)] = self.top()
        elif code in GETS:
            if argument not in self.memo:
                raise BadField("it asks for a value that it never put aside")
            self.stack.append(self.memo[argument])
        elif code in TUPLES:
            self.stack.append(self.pop_many(TUPLES[code]))
        elif code in STEPS:
            STEPS[code](self, argument)
        elif code not in IGNORED:
            raise BadField(f"it holds the step {code}, which no file of weights needs")

    def top(self) -> Any:
        """The last value, which stays."""
        if not self.stack or self.stack[-1] is MARK:
            raise BadField("it takes more values than it has")
        return self.stack[-1]

    def pop(self) -> Any:
        """The last value."""
        self.top()
        return self.stack.pop()

    def pop_many(self, count: int) -> tuple[Any, ...]:
        """The last values, in the order they came."""
        return tuple(reversed([self.pop() for _ in range(count)]))

    def pop_to_mark(self) -> list[Any]:
        """The values since the last mark."""
        values: list[Any] = []
        while self.stack:
            value = self.stack.pop()
            if value is MARK:
                values.reverse()
                return values
            values.append(value)
        raise BadField("it takes more values than it has")

    def name(self, module: Any, name: Any) -> None:
        """An import, as a name."""
        if type(module) is not str or type(name) is not str:
            raise BadField("it imports something that has no name")
        found = Name(module, name)
        if not self.allow(found):
            raise BadField(f"it names {shown(str(found))}, which no file of weights needs: it may hold code")
        self.stack.append(found)

    def make(self, maker: Any, arguments: Any) -> None:
        """A call, as a record."""
        self.stack.append(Made(maker, arguments if type(arguments) is tuple else (arguments,)))

    def set_items(self, pairs: list[Any]) -> None:
        """Entries of the dict, or of the record of one, below them."""
        if len(pairs) % 2:
            raise BadField("an entry of it has no value")
        self.count(len(pairs) // 2)
        target = self.top()
        entries = target.items if isinstance(target, Made) else target
        if type(entries) is not dict:
            raise BadField("it gives entries to what has none")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            entries[key if type(key) in (str, int, Name) else Strange()] = value

    def append(self, values: list[Any]) -> None:
        """Items of the list below them; those of other things are not kept."""
        target = self.top()
        if type(target) is list:
            target.extend(values)
        elif not isinstance(target, Made):
            raise BadField("it gives items to what has none")

    def build(self, state: Any) -> None:
        """What the record below is told after it was made."""
        target = self.top()
        if not isinstance(target, Made):
            raise BadField("it gives a state to what has none")
        target.state = state

    def count(self, entries: int) -> None:
        """Entries so far, which are bounded."""
        self.entries += entries
        if self.entries > MOST_ENTRIES:
            raise BadField(f"it has more than {MOST_ENTRIES:,} entries")

    def lasting(self, identifier: Any) -> None:
        """What the pickle keeps beside it."""
        if self.persistent is None:
            raise BadField("it refers to something that is not in it")
        self.stack.append(self.persistent(identifier))


def _set_item(machine: Machine, _: Any) -> None:
    key, value = machine.pop_many(2)
    machine.set_items([key, value])


def _append(machine: Machine, _: Any) -> None:
    machine.append([machine.pop()])


def _pop_mark(machine: Machine, _: Any) -> None:
    machine.pop_to_mark()


def _add_items(machine: Machine, _: Any) -> None:
    machine.count(len(machine.pop_to_mark()))


def _call(machine: Machine, _: Any) -> None:
    machine.make(*machine.pop_many(2))


def _call_with_names(machine: Machine, _: Any) -> None:
    maker, arguments, _names = machine.pop_many(3)
    machine.make(maker, arguments)


def _build(machine: Machine, _: Any) -> None:
    machine.build(machine.pop())


def _global(machine: Machine, argument: Any) -> None:
    machine.name(*str(argument).split(" ", 1))


STEPS: dict[str, Callable[[Machine, Any], None]] = {
    "MARK": lambda machine, _: machine.stack.append(MARK),
    "POP": lambda machine, _: machine.pop(),
    "POP_MARK": _pop_mark,
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.pop_to_mark())),
    "EMPTY_LIST": lambda machine, _: machine.stack.append([]),
    "EMPTY_DICT": lambda machine, _: machine.stack.append({}),
    "EMPTY_SET": lambda machine, _: machine.stack.append(Made(Name("builtins", "set"), ())),
    "FROZENSET": lambda machine, _: machine.make(Name("builtins", "frozenset"), tuple(machine.pop_to_mark())),
    "ADDITEMS": _add_items,
    "APPEND": _append,
    "APPENDS": lambda machine, _: machine.append(machine.pop_to_mark()),
    "SETITEM": _set_item,
    "SETITEMS": lambda machine, _: machine.set_items(machine.pop_to_mark()),
    "GLOBAL": _global,
    "STACK_GLOBAL": lambda machine, _: machine.name(*machine.pop_many(2)),
    "REDUCE": _call,
    "NEWOBJ": _call,
    "NEWOBJ_EX": _call_with_names,
    "BUILD": _build,
    "BINPERSID": lambda machine, _: machine.lasting(machine.pop()),
}


def read_pickle(
    data: bytes, allow: Callable[[Name], bool] = lambda _: True, persistent: Callable[[Any], Any] | None = None
) -> Any:
    """What a pickle describes, without anything of it being run; one that cannot be followed raises `BadField`.

    `allow` says which names it may hold; `persistent` what stands for its references to things beside it.
    """
    machine = Machine(allow, persistent)
    try:
        with warnings.catch_warnings(action="ignore"):  # of texts with odd backslashes
            _follow(machine, data)
    except BadField:
        raise
    except (ValueError, OverflowError, TypeError, MemoryError) as error:
        raise BadField(f"it is no whole pickle ({type(error).__name__})") from None
    if len(machine.stack) != 1:
        raise BadField("it is no whole pickle")
    return machine.pop()


def _follow(machine: Machine, data: bytes) -> None:
    """All steps of a pickle."""
    for number, (code, argument, _) in enumerate(pickletools.genops(data)):
        if number >= MOST_STEPS:
            raise BadField(f"it has more than {MOST_STEPS:,} steps")
        if code.name == "STOP":
            break
        machine.step(code.name, argument)
