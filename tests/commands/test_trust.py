"""A task that a file names imports no module unless the person says --trust; one that is typed does as before."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest
from click.testing import CliRunner, Result

from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.config.tasks import check_trust, imported_module, trust_flag
from tests.fixtures.policies import HEADER, policy_of, run_of

TASK = "gym:stranger:Stranger-v0"
MODULE = """
from pathlib import Path

import gymnasium
import numpy as np

Path("OWNED").touch()


class Stranger(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (5,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 20
        return np.zeros(5, np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.full(5, self.left / 20, np.float32), 1.0, False, self.left == 0, {}


gymnasium.register("Stranger-v0", Stranger)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with a module, a run and a policy file of its task; as of `python -m lowgear`."""
    (tmp_path / "stranger.py").write_text(MODULE)
    header = replace(HEADER, task=TASK, layout=(("", 5),))
    run_of([policy_of(header)], tmp_path / "run")
    policy_of(header).save(tmp_path / "policy.safetensors")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("stranger", None)
    gymnasium.registry.pop("Stranger-v0", None)


def lowgear(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def imported() -> bool:
    return Path("OWNED").exists() or "stranger" in sys.modules


REFUSED = [
    ["evaluate", "run", "--episodes", "2"],
    ["tune", "run", "--keep-return", "0.9", "--episodes", "2"],
    ["tune", "run", "--max-latency-us", "100", "--episodes", "2"],
    ["report", "run", "--no-video", "--episodes", "0"],
    ["train", "--resume", "run"],
]


@pytest.mark.parametrize("arguments", REFUSED, ids=" ".join)
def test_a_run_that_names_a_module_is_refused(place: Path, arguments: list[str]) -> None:
    before = sorted(place.rglob("*"))
    result = lowgear(*arguments)
    assert isinstance(result.exception, LowgearError)
    assert str(result.exception) == (
        f"{Path('run/config.json')} names the task {TASK}, which would import the Python module stranger and run its "
        "code: if you know who wrote both, say --trust"
    )
    assert not imported()
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("what", ["run", "policy.safetensors"])
@pytest.mark.parametrize("form", ["c", "onnx", "numpy"])
def test_an_export_goes_without_the_environment(place: Path, what: str, form: str) -> None:
    result = lowgear("export", what, "--format", form, "--out", "out")
    assert result.exit_code == 0, result.output
    assert "note: checked on random observations, not on episodes: " in result.stderr
    assert "would import the Python module stranger" in result.stderr
    assert "say --trust" in result.stderr
    assert not json.loads((place / "out" / "export.json").read_text())["checked"]["from_environment"]
    assert not imported()


@pytest.mark.parametrize("task", ["stranger:Stranger-v0", "GYM:stranger:Stranger-v0", "stranger:Stranger"])
def test_other_ways_to_write_it_import_nothing_either(place: Path, task: str) -> None:
    policy_of(replace(HEADER, task=task, layout=(("", 5),))).save(place / "policy.safetensors")
    result = lowgear("export", "policy.safetensors", "--format", "numpy", "--out", "out")
    assert result.exit_code == 0, result.output
    assert "would import the Python module stranger" in result.stderr
    assert not imported()


@pytest.mark.usefixtures("place")
def test_bench_deploy_goes_without_the_environment() -> None:
    result = lowgear("bench", "deploy", "policy.safetensors", "--episodes", "1", "--json")
    assert result.exit_code == 0, result.output
    assert "would import the Python module stranger" in result.stderr
    assert json.loads(result.stdout)["from_environment"] is False
    assert not imported()


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "run", "--episodes", "2", "--trust"],
        ["export", "run", "--format", "numpy", "--out", "out", "--trust"],
        ["export", "policy.safetensors", "--format", "numpy", "--out", "out", "--trust"],
        ["report", "run", "--no-video", "--episodes", "0", "--trust"],
        ["tasks", TASK],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("place")
def test_what_is_trusted_or_typed_is_imported(arguments: list[str]) -> None:
    result = lowgear(*arguments)
    assert result.exit_code == 0, result.output
    assert imported()
    assert "would import" not in result.output


def test_a_run_of_a_class_is_refused_as_well_and_trusted_alike(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder != str(place)])
    run_of([policy_of(replace(HEADER, task="stranger:Stranger", layout=(("", 5),)))], place / "own")
    assert "would import the Python module stranger" in str(lowgear("evaluate", "own", "--episodes", "2").exception)
    assert not imported()
    result = lowgear("evaluate", "own", "--episodes", "2", "--trust")
    assert result.exit_code == 0, result.output
    assert imported()


def test_the_name_is_checked_before_anything_else(place: Path) -> None:
    for task in ("nowhere:Arm", "gym:nowhere:Arm-v0"):
        result = lowgear("train", task, "--recipe", "paper", "--steps", "-1", "--out", "new")
        assert "there is no Python module nowhere" in str(result.exception)
    assert "cost coefficient" in str(lowgear("train", "stranger:Stranger", "--recipe", "paper").exception)
    assert not (place / "new").exists()


@pytest.mark.parametrize(
    ("task", "module"),
    [
        ("gym:a.b:Env-v0", "a.b"),
        ("gym:a:b:Env-v0", "a:b"),
        ("Gym:a:Env-v0", "a"),
        ("a:Env-v0", "a"),
        ("gym::Env-v0", ""),
        ("a.b:Env", "a.b"),
        ("a:make_env", "a"),
        ("python:Env", "python"),
        ("gym:Pendulum-v1", None),
        ("gym:", None),
        ("walker-stand", None),
        ("Pendulum-v1", None),
        ("dmc:walker-walk", None),
        ("envpool:Ant-v3", None),
        ("", None),
    ],
)
def test_what_a_task_would_import(task: str, module: str | None) -> None:
    assert imported_module(task) == module
    assert trust_flag(task) == ("" if module is None else " --trust")
    check_trust(task, Path("x"), trust=True)
    if module is None:
        check_trust(task, Path("x"), trust=False)
    else:
        with pytest.raises(LowgearError, match="say --trust"):
            check_trust(task, Path("x"), trust=False)
