"""What shells complete, the list of studies, and what is kept out of a person's sight."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from lowgear.commands import completion
from lowgear.commands.cli import cli
from lowgear.studies.catalogue import STUDIES


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_a_script_for_each_shell(shell):
    result = CliRunner().invoke(cli, ["completion", shell])
    assert result.exit_code == 0, result.output
    assert f"_LOWGEAR_COMPLETE={shell}_complete" in result.stdout


def complete(*words):
    """What bash would be told for the last word."""
    asked = {"_LOWGEAR_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", "from lowgear.commands.cli import main; main()"],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_names_are_completed_through_the_installed_command():
    assert complete("lowgear", "train", "walker") == ["Walker2d-v3", "walker-stand"]
    assert complete("lowgear", "stud") == ["studies", "study"]


@pytest.mark.parametrize(
    ("function", "typed", "found"),
    [
        (completion.task_names, "gym", ["gym:"]),
        (completion.study_names, "co", ["cost-term", "cost-coefficient"]),
        (completion.recipe_names, "", ["paper", "modern"]),
        (completion.assignments, "actor_e", ["actor_every="]),
        (completion.variants, "asymmetric,sm", ["asymmetric,small-only"]),
    ],
)
def test_values_are_completed(function, typed, found):
    assert sorted(item.value for item in function(None, None, typed)) == sorted(found)


def test_every_study_is_listed_and_its_table_is_named_where_it_was_made(tmp_path, monkeypatch):
    assert tuple(STUDIES) == completion.STUDIES
    (tmp_path / "sizes").mkdir()
    (tmp_path / "sizes" / "table.md").write_text("")
    listed = CliRunner().invoke(cli, ["studies", "--out", str(tmp_path), "--json"])
    rows = {row["name"]: row for row in json.loads(listed.stdout)}
    assert list(rows) == list(STUDIES)
    assert rows["sizes"]["table"] == str(tmp_path / "sizes" / "table.md")
    assert rows["performance"]["table"] is None
    assert len(rows["performance"]["tasks"]) == 16
    monkeypatch.setenv("COLUMNS", "40")
    shown = CliRunner().invoke(cli, ["studies"]).stdout
    assert all(name in shown for name in STUDIES)
    assert max(len(line) for line in shown.splitlines()[:-1]) <= 40


WARNS = """
import warnings, sys
from lowgear.commands import cli
def command(**_):
    warnings.filterwarnings("once", "", DeprecationWarning)  # as Gymnasium does when it is imported
    warnings.warn("out of date", DeprecationWarning)
    warnings.warn("noise")
cli.cli.main = command
cli.main()
"""


@pytest.mark.parametrize(("flags", "heard"), [([], False), (["-W", "default"], True)])
def test_warnings_of_libraries_are_kept_out_unless_asked_for(flags, heard):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    done = subprocess.run([sys.executable, *flags, "-c", WARNS], capture_output=True, text=True, check=True, env=env)
    assert ("noise" in done.stderr) == heard
    assert heard or done.stderr == ""
