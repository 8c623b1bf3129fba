import ast
import re
from pathlib import Path

import pytest

import lowgear
from lowgear import LowgearError
from lowgear.agent.wording import in_python
from tests.fixtures.probes import Valley

ROOMS = ("agent", "config", "envs", "evaluation", "export", "policy", "training")  # that a Python caller reaches


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("--steps 0: a run needs one", "total_timesteps=0: a run needs one"),
        ("--seed -1: write 0 or more", "seed=-1: write 0 or more"),
        ("give --cost-coefficients (0.001)", "give cost_coefficient (0.001)"),
        ("train with --recipe modern", 'train with recipe="modern"'),
        ("a setting: --gears 64,64", "a setting: gears=(64, 64)"),
        ("such as --gears hold,8,64x64x64 or --gears 8,64", 'such as gears=("hold", 8, "64x64x64") or gears=(8, 64)'),
        ("or --gears 16,large.safetensors", 'or gears=(16, "large.safetensors")'),
        ("or keep fewer (--set replay=100000)", "or keep fewer (replay=100000)"),
        ("--agent and --best choose", "agent and best=True choose"),
        ("say --trust", "say trust=True"),
        ("--name 'a b' cannot begin", "name='a b' cannot begin"),
        ("--out a/b.txt: it is a file", 'out="a/b.txt": it is a file'),
        ("go on by `lowgear train --resume x --steps 5`", "go on by `lowgear train --resume x --steps 5`"),
        ("x - y -- and z", "x - y -- and z"),
    ],
)
def test_options_become_arguments(said, heard):
    assert in_python(said) == heard


def test_no_option_is_left_in_any_message():
    found = []
    for room in ROOMS:
        for path in Path(lowgear.__file__).with_name(room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "LowgearError":
                    found.append(_text(node))
    spoken = [text for text in found if "--" in text]
    assert len(spoken) > 10
    left = [text for text in spoken if "--" in re.sub(r"`[^`]*`", "", in_python(text))]
    assert left == []


def _text(node):
    """The letters of a message, 7 for what is put into it."""
    parts = []
    for part in ast.walk(node):
        if isinstance(part, ast.JoinedStr):
            parts.append("".join(str(p.value) if isinstance(p, ast.Constant) else "7" for p in part.values))
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            parts.append(part.value)
    return max(parts, key=len, default="")


def test_agents_errors_name_arguments():
    for options, named in (
        ({"recipe": "paper"}, r'give cost_coefficient .* recipe="modern"'),
        ({"variant": "two-large"}, r"gears=\(64, 64\)"),
        ({"seed": -1}, "seed -1: write a whole number from 0 to 2147483647"),
        ({"seed": 1.5}, "seed 1.5: write a whole number"),
        ({"gears": (8,)}, r"gears '8': two are needed at least.* gears=\(8, 64\) or gears=\(\"hold\", 8, "),
    ):
        with pytest.raises(LowgearError, match=named) as error:
            lowgear.Agent(Valley, **options)
        assert "--" not in str(error.value)
