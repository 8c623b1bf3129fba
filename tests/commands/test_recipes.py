"""`lowgear recipes show`: every setting, of both recipes, and of a task where it has its own."""

import json
from dataclasses import asdict, fields

import pytest
from click.testing import CliRunner

from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.config.recipes import MODERN, MODERN_BY_TASK, PAPER, Recipe, find
from lowgear.config.tasks import find as find_task


def show(*options: str) -> str:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(cli, ["recipes", "show", *options])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_setting_is_shown_with_its_values_and_what_it_is() -> None:
    lines = {line.split()[0]: line for line in show().splitlines() if line.strip()}
    for field in fields(Recipe):
        if field.name == "name":
            continue
        assert field.metadata["doc"] in lines[field.name]
    assert lines["setting"].split()[1:3] == ["modern", "paper"]
    assert lines["batch"].split()[1:3] == [str(MODERN.batch), str(PAPER.batch)]
    assert lines["normalise_observations"].split()[1:3] == ["yes", "no"]
    assert lines["periods"].split()[1:3] == ["2,5,20", "5"]


def test_as_json_it_is_both_recipes() -> None:
    found = json.loads(show("--json"))
    assert found == {recipe.name: json.loads(json.dumps(asdict(recipe))) for recipe in (PAPER, MODERN)}


def test_a_task_has_what_its_recipe_sets_for_it() -> None:
    found = json.loads(show("--task", "Swimmer-v3", "--json"))
    assert found["modern"] == json.loads(json.dumps(asdict(find("modern", "Swimmer-v3"))))
    assert found["modern"] != json.loads(json.dumps(asdict(MODERN)))
    assert "Swimmer-v3" in show("--task", "Swimmer-v3")
    result = CliRunner().invoke(cli, ["recipes", "show", "--task", "walker-sit"])
    assert isinstance(result.exception, LowgearError)
    assert "walker-stand" in str(result.exception)


def test_no_task_sets_more_than_two_things_beside_its_discount() -> None:
    for task, settings in MODERN_BY_TASK.items():
        assert len(settings.keys() - {"discount"}) <= 2, task
        assert find_task(task).name == task


@pytest.mark.parametrize("width", ["80", "120"])
def test_names_are_whole_in_a_narrow_terminal(width: str) -> None:
    result = CliRunner(env={"COLUMNS": width}).invoke(cli, ["recipes", "show"])
    first = {line.split()[0] for line in result.stdout.splitlines() if line.strip()}
    assert {field.name for field in fields(Recipe)} - {"name"} <= first
