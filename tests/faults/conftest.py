"""A run that nothing happened to, how others are held against it, and what is printed in the end."""

import json
from collections import Counter
from pathlib import Path

import pytest

from lowgear.config.run_directory import RunDirectory
from lowgear.policy.file import load
from lowgear.training.checkpoint import read_latest
from tests.faults.children import build, train
from tests.fixtures.training import without_speed

COUNTS: Counter[str] = Counter()


def pytest_terminal_summary(terminalreporter, config):
    """What `make test-faults` has shown."""
    if COUNTS and config.getoption("markexpr") == "faults":
        failed = any(terminalreporter.stats.get(outcome) for outcome in ("failed", "error"))
        terminalreporter.section("faults")
        for name, count in COUNTS.items():
            terminalreporter.write_line(f"{name}: {count:,}")
        terminalreporter.write_line("something failed: see above" if failed else "nothing lost")


@pytest.fixture
def counts():
    return COUNTS


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("inject"))


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory):
    """By its number of steps, a run that nothing happened to."""
    made, folder = {}, tmp_path_factory.mktemp("unbroken")

    def run(steps):
        if steps not in made:
            made[steps] = RunDirectory(folder / f"run{steps}")
            done = train(made[steps].path, steps)
            assert done.returncode == 0, done.stderr
        return made[steps]

    return run


def sound(path: Path) -> int:
    """The steps of the last checkpoint of a run that was killed; whatever it has must be whole."""
    directory = RunDirectory(path)
    if not path.exists():
        return 0
    config, latest = directory.read_config(), read_latest(directory)
    for policy in directory.policies.glob("*.safetensors"):
        load(policy)
    if latest is None:
        return 0
    assert directory.state(latest.number, latest.open_steps).exists()
    assert len(latest.best) == len(config.agents)
    return latest.steps


def files_of(directory: RunDirectory) -> dict[str, bytes]:
    """Everything that a run leaves behind but metrics, and latest.json, whose length of them goes by speeds."""
    names = [path for folder in ("policies", "checkpoint") for path in sorted((directory.path / folder).iterdir())]
    return {path.name: path.read_bytes() for path in names if path != directory.latest}


def same(path: Path, whole: RunDirectory) -> None:
    """Bit for bit, but for what a clock has measured."""
    directory = RunDirectory(path)
    assert files_of(directory) == files_of(whole)
    assert without_speed(directory) == without_speed(whole)
    latest, wanted = (json.loads(each.latest.read_text()) for each in (directory, whole))
    for name in ("metrics_bytes", "end_metrics_bytes"):
        del latest[name], wanted[name]
    assert latest == wanted
    left = {entry.name for entry in path.iterdir()} - {"tensorboard"}
    assert left == {"config.json", "metrics.jsonl", "policies", "checkpoint", "lock"}
