"""The README's commands as they are written: each is understood by default, all of them are run where there is time.

What is run by default is the road to a person's own controller in C, with few steps. `make test-slow` runs every
command as it is written, the installation too; `make test-wheel` does so with a wheel and few steps.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from lowgear.commands.cli import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
COMMANDS = [shlex.split(line, comments=True) for block in BLOCKS for line in block.splitlines()]
INSTALL, FIRST, OWN, MORE = BLOCKS
FEW = "640"  # steps


def with_few_steps(block: str) -> str:
    """The block with fewer steps, and a benchmark of fewer agents and less time."""
    return re.sub(r"--steps \d+", f"--steps {FEW}", block).replace("--agents 1,8", "--agents 1 --seconds 1")


def run(script: str, where: Path, **environment: str) -> str:
    """What bash prints of a script whose every line must succeed."""
    clean = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONHOME")}
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=where,
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def copied(where: Path) -> Path:
    """The tracked files, as a clone has them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, where / name)
    return where


def assert_followed(out: str, where: Path) -> None:
    """What is there once the README was followed."""
    assert "arm: 200 steps, 0 wrong gears, 0 wrong actions" in out
    for name in ("runs/demo/report/index.html", "runs/demo/tuning.json", "examples/runs/arm/report/index.html"):
        assert (where / name).is_file()
    header = (where / "examples/arm_c/arm.h").read_text()
    assert "#define ARM_OBS_SPEED 1\n" in header
    assert "#define ARM_ACT_TORQUE 0\n" in header


@pytest.mark.parametrize("words", [words for words in COMMANDS if words and words[0] == "lowgear"], ids=" ".join)
def test_every_command_is_understood(words: list[str]) -> None:
    command: click.Command = cli
    arguments, context = words[1:], click.Context(cli)
    while isinstance(command, click.Group):
        name, found, arguments = command.resolve_command(context, arguments)
        assert found is not None
        command = found
        context = click.Context(command, parent=context, info_name=name)
    command.parse_args(context, list(arguments))
    assert not context.args


def test_nothing_else_is_asked_for() -> None:
    others = {words[0] for words in COMMANDS if words} - {"lowgear"}
    assert others == {"python3", ".", "pip", "cd", "cc", "./arm_test"}


def test_one_run_is_spoken_of_throughout() -> None:
    runs = re.findall(r"\bruns/[\w*-]+", README)
    assert set(runs) == {"runs/demo", "runs/arm", "runs/NAME"}
    assert "--out runs/demo" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_example_is_the_one_that_is_shown() -> None:
    shown = re.findall(r"```python\n(import gymnasium.*?)```", README, re.DOTALL)
    example = (ROOT / "examples" / "arm.py").read_text(encoding="utf-8")
    assert len(shown) == 1
    assert example.endswith(shown[0])
    assert len([line for line in shown[0].splitlines() if line.strip()]) == 15


def test_from_ones_own_environment_to_its_controller(tmp_path: Path) -> None:
    """In the README's order, with few steps; the report is left to the tests of reports."""
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "arm.py", tmp_path / "examples")
    lines = [line for line in with_few_steps(OWN).splitlines() if not re.match("lowgear (report|evaluate|tune)", line)]
    lowgear = f'lowgear() {{ "{sys.executable}" -P -m lowgear "$@"; }}\n'
    out = run(lowgear + "\n".join(lines), tmp_path)
    assert "2 (angle, speed)" in out
    assert "random return" in out
    assert "checked on 4 episodes, 800 steps" in out
    assert "arm: 200 steps, 0 wrong gears, 0 wrong actions" in out
    assert "#define ARM_OBS_SPEED 1\n" in (tmp_path / "examples" / "arm_c" / "arm.h").read_text()


@pytest.mark.slow
def test_every_command_as_it_is_written(tmp_path: Path) -> None:
    """From a clone, in an environment of its own: a quarter of an hour on two cores."""
    out = run("\n".join([INSTALL, FIRST, OWN, MORE]), copied(tmp_path), PYTHONPATH="")
    assert_followed(out, tmp_path)


@pytest.mark.wheel
def test_a_wheel_in_a_bare_environment(tmp_path: Path) -> None:
    """The package alone, without the sources: only the example is copied."""
    wheel = Path(os.environ["LOWGEAR_WHEEL"]).resolve()
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "arm.py", tmp_path / "examples")
    constraints = ROOT / "constraints.txt"
    install = INSTALL.replace("'.[report]'", f"--quiet --constraint '{constraints}' '{wheel}[report]'")
    imported = "python -c 'import lowgear; print(lowgear.__file__)'\nlowgear --help"
    blocks = [install, imported, with_few_steps(FIRST), with_few_steps(OWN), with_few_steps(MORE)]
    out = run("\n".join(blocks), tmp_path, PYTHONPATH="")
    assert f"{tmp_path}/.venv/lib" in out
    assert_followed(out, tmp_path)
