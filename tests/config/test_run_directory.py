"""Run directories of strangers: an edited config.json and another run's policy are refused by name."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from lowgear import LowgearError
from lowgear.config.run_directory import RunDirectory
from lowgear.policy.files import write_whole
from tests.fixtures.runs import make_run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "run", variants=("asymmetric", "large-only"))


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(whole, tmp_path / "run"))


def refused(run: RunDirectory) -> str:
    with pytest.raises(LowgearError) as caught:
        run.read_config()
    message = str(caught.value)
    assert message.startswith(str(run.config))
    assert message.isprintable()
    assert message.endswith(": start a new run")
    return message


def change(run: RunDirectory, path: str, value: Any) -> None:
    raw = json.loads(run.config.read_text())
    *parents, last = path.split(".")
    place = raw
    for name in parents:
        place = place[int(name) if isinstance(place, list) else name]
    place[last] = value
    run.config.write_text(json.dumps(raw))


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("task", 123, "task is 123"),
        ("task", "a\nb", "task is 'a\\nb'"),
        ("steps", "many", "steps is 'many', not a whole number"),
        ("steps", -64, "steps is -64"),
        ("steps", 1e6, "steps is 1000000.0"),
        ("steps", 65, "steps is 65, not a whole number of chunks of 64 steps"),
        ("steps", 10**15, "steps is 1000000000000000"),
        ("gears", [8], "two are needed at least"),
        ("gears", [64, 8], "the cheapest comes first"),
        ("gears", [8, 10**9], "a width in gears is 1000000000"),
        ("gears", {"0": 8}, "gears is an object"),
        ("boltzmann", "no", "boltzmann is 'no'"),
        ("log_every", 0, "log_every is 0"),
        ("evaluate_episodes", None, "evaluate_episodes is None"),
        ("agents", [], "agents is a list of 0"),
        ("agents", [3], "an agent is 3, not an object"),
        ("agents.0.variant", "two-large", "variant is 'two-large'"),
        ("agents.0.seed", -1, "seed is -1"),
        ("agents.0.dial", [1], "dial is a list of 1, not a list of 2"),
        ("agents.0.dial", [1.0, float("nan")], "an end of dial is nan"),
        ("agents.0.cost_coefficient", 1e9, "cost_coefficient is 1e+09, which no dial from"),
        ("agents.0.discount", 1.0, "discount is 1"),
        ("agents.0.learning_rate", 0, "learning_rate 0"),
        ("agents.0.relative", "yes", "relative is 'yes'"),
        ("recipe", [], "recipe is a list of 0"),
        ("recipe.name", "", "name of recipe is empty"),
        ("recipe.batch", "256", "batch = 256: write a whole number"),
        ("recipe.batch", 10**12, "batch 1000000000000: write 1 or more"),
        ("recipe.environments", 0, "environments 0: write 1 or more"),
        ("recipe.chunk", 10**9, "chunk 1000000000: write 1 or more, 65,536 at most"),
        ("recipe.periods", [5, 2], "period 5,2: write different whole numbers"),
        ("recipe.discount", 10**400, "discount = a number of more than 60 digits: write a number"),
        ("recipe.dial_ends", [-1.0], "dial ends (-1.0,)"),
        ("recipe.target_rate", 2, "target rate 2.0: write a number from 0 to 1"),
        ("recipe.dial", 1, "dial = 1: write true or false"),
        ("recipe.surprise", 1, "surprise: the recipe has no such setting"),
        ("recipe.a\nb", 1, "'a\\nb': the recipe has no such setting"),
    ],
)
def test_every_entry_has_a_type_and_a_range(run: RunDirectory, path: str, value: Any, says: str) -> None:
    change(run, path, value)
    assert says in refused(run)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '{"task": ' + "9" * 5000 + "}", "\udc80"])
def test_what_is_no_configuration(run: RunDirectory, text: str) -> None:
    run.config.write_bytes(text.encode("utf-8", "surrogateescape"))
    refused(run)


def test_a_configuration_beyond_all_measure(run: RunDirectory) -> None:
    with run.config.open("ab") as file:
        file.truncate(1 << 40)  # sparse
    assert "more than the 4,194,304 bytes" in refused(run)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"task": "cartpole-swingup"}, "its task is cartpole-swingup, not agent 0's MountainCarContinuous-v0"),
        ({"seeds": (5, 6)}, "its seed is 5, not agent 0's 0"),
        ({"variants": ("large-only",)}, "its variant is large-only, not agent 0's asymmetric"),
        ({"gears": (8, 32)}, "its gears is 8/32, not agent 0's 8/64"),
        ({"overrides": {"periods": (3, 9)}}, "its periods is 3/9, not agent 0's 2/5/20"),
        ({"overrides": {"actor_activation": "relu"}}, "its activation is relu, not agent 0's tanh"),
    ],
)
def test_another_runs_policy_is_refused_by_name(
    run: RunDirectory, tmp_path: Path, other: dict[str, Any], says: str
) -> None:
    stranger = RunDirectory(make_run(tmp_path / "other", **({"variants": ("asymmetric",)} | other)))
    shutil.copy(stranger.policy(0), run.policy(0))
    for read in (run.load_policies, lambda: run.finished(run.read_config())):
        with pytest.raises(LowgearError) as caught:
            read()
        assert str(caught.value).startswith(f"{run.policy(0)} is of another run: {says}; ")


def test_another_agents_policy_is_refused_by_name(run: RunDirectory) -> None:
    shutil.copy(run.policy(0), run.policy(1))
    with pytest.raises(LowgearError, match=r"agent1\.safetensors is of another run: its seed is 0, not agent 1's 1"):
        run.load_policies()


def test_links_that_lead_out_of_the_run_are_refused(run: RunDirectory, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for place in (run.path / "report", run.path / "metrics.jsonl", run.checkpoint / "rows-0.bin", run.path / "a" / "b"):
        place.parent.mkdir(exist_ok=True)
        place.unlink(missing_ok=True)
        place.symlink_to(elsewhere)
        with pytest.raises(LowgearError) as caught:
            run.read_config()
        assert str(caught.value) == (
            f"{place} is a link that leads out of the run, to {elsewhere}: put a copy in its place, or say --trust"
        )
        assert RunDirectory(run.path, trust=True).read_config().task == "MountainCarContinuous-v0"
        place.unlink()
    (run.path / "latest").symlink_to(run.policies)  # within the run, links are the owner's own affair
    run.read_config()


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    for name in ("evaluation.json", "evaluation.json.partial"):
        (tmp_path / name).symlink_to(precious)
    write_whole(tmp_path / "evaluation.json", b"{}")
    assert (tmp_path / "evaluation.json").read_text() == "{}"
    assert precious.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evaluation.json", "precious"]


def test_a_process_of_another_machine_is_not_in_the_way(tmp_path: Path) -> None:
    """It may have this one's number, on a disk that both share, and be in the middle of making its run."""
    theirs = tmp_path / f".lowgear-{os.getpid()}.partial"
    theirs.mkdir()
    assert RunDirectory(make_run(tmp_path / "run")).read_config().task == "MountainCarContinuous-v0"
    assert theirs.is_dir()
