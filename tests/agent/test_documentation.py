"""The code of docs/python.md, run as it is written but for the numbers of steps."""

import re
from dataclasses import replace
from pathlib import Path

import lowgear
from lowgear.config import recipes, run
from tests.fixtures.training import SMALL

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
STEPS = {"20_000": "128", "10_000": "64", "1_000": "32", "2e4": "1.28e2", "episodes=20": "episodes=2"}


def test_every_block_runs(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    monkeypatch.chdir(tmp_path)
    small = replace(recipes.MODERN, **SMALL, master_units=4)
    monkeypatch.setitem(recipes.RECIPES, "modern", small)
    monkeypatch.setattr(run, "ANY_GEARS", (2, 8))
    names = {}
    for number, block in enumerate(blocks):
        for long, short in STEPS.items():
            block = block.replace(long, short)
        exec(compile(block, f"{PAGE.name}, block {number + 1}", "exec"), names)
    agent = names["agent"]
    assert agent.total_steps > 3 * 128
    assert names["again"].total_steps == 3 * 128 + 32
    assert lowgear.load("best.safetensors").policy.header.task == "gym:Pendulum-v1"
    assert [path.suffix for path in Path("checkpoints").iterdir()] == [".safetensors"] * 2
    assert names["page"].is_file()
    assert Path("firmware", "pendulum_v1.c").is_file()
