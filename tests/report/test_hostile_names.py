"""Names with markup, formulas and TeX in them, wherever a run or its directory may have them: only ever text."""

import csv
import json
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from lowgear.commands.cli import cli
from lowgear.report.text import csv_text, markdown_text
from tests.fixtures.runs import evaluate, make_run, row

NAMES = [
    "<script>alert(1)<script> '\" onload=alert(1)",  # no slash: it is a directory's name too
    "<!--<script>",
    "$\\frac{$ [bold] [nope] {} %s",
    "=cmd|' !A1",
    "]]> &lt; `code` | cell",
]
END = "</script><script>alert(1)</script>"


class Elements(HTMLParser):
    """The elements of a page, with their attributes, and what its title and its data say."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.text: dict[str, str] = {}
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))
        self.inside = "data" if ("id", "data") in attrs else tag

    def handle_data(self, data: str) -> None:
        self.text[self.inside] = self.text.get(self.inside, "") + data

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", (data,)))


def elements(page: Path) -> Elements:
    found = Elements()
    found.feed(page.read_text())
    return found


def report(*arguments: object) -> None:
    result = CliRunner().invoke(cli, ["report", *map(str, arguments), "--no-video", "--episodes", "0"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_name_adds_no_element(tmp_path: Path, name: str) -> None:
    plain = make_run(tmp_path / "plain", variants=("asymmetric",), seeds=(0,))
    low, high = json.loads((plain / "config.json").read_text())["agents"][0]["dial"]
    rows = [row(0, "asymmetric", value, 90.0, 0.3) for value in (low, high)]
    evaluate(plain, [*rows, row(0, "other", low, 1.0, 0.5), row(0, "other", high, 1.0, 0.6)])
    hostile = make_run(tmp_path / name, variants=("asymmetric",), seeds=(0,))
    evaluate(hostile, [*rows, row(0, name + END, low, 1.0, 0.5), row(0, name + END, high, 1.0, 0.6)])
    raw = json.loads((hostile / "config.json").read_text())
    raw["provenance"] = {"commit": name + END, name + END: {name + END: name + END}}
    raw["recipe"]["name"] = name + END
    (hostile / "config.json").write_text(json.dumps(raw))
    for run, out in ((plain, "one"), (hostile, "two")):
        report(run, "--out", tmp_path / out)
    expected, found = (elements(tmp_path / out / "index.html") for out in ("one", "two"))
    assert found.found == expected.found
    (data,) = json.loads(found.text["data"])["runs"]
    assert data["name"] == name
    assert data["provenance"] == raw["provenance"]
    assert name + END in {each["name"] for each in data["summary"]["rows"]}
    pictures = sorted((tmp_path / "two" / "figures").glob("*.svg"))
    assert pictures
    for picture in pictures:
        tree = ElementTree.fromstring(picture.read_text())
        assert not [node for node in tree.iter() if node.tag.endswith(("script", "foreignObject"))]
    assert any(name in "".join(ElementTree.fromstring(p.read_text()).itertext()) for p in pictures)
    summary = (tmp_path / "two" / "summary.md").read_text()
    assert "<script" not in summary.replace("\\<", "")
    table = [line for line in summary.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1


def test_a_hostile_task(tmp_path: Path) -> None:
    run = evaluate(make_run(tmp_path / "run", variants=("asymmetric",), seeds=(0,)), [])
    task = f"gym:{NAMES[0]}{END}"
    raw = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(raw | {"task": task}))
    report(run, "--out", tmp_path / "out")
    found = elements(tmp_path / "out" / "index.html")
    assert task in found.text["title"]
    assert [tag for tag, _ in found.found].count("script") == 2


@pytest.mark.parametrize("name", ["[/nope]", "[link=https://example.org]x[/link]", "[red]"])
def test_a_directory_whose_name_is_markup_of_the_terminal(tmp_path: Path, name: str) -> None:
    run = make_run(tmp_path / name.replace("/", ""), variants=("asymmetric",), seeds=(0,))
    report(run, "--out", tmp_path / "out")


@pytest.mark.parametrize("cell", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "=cmd|' /C calc'!A0"])
def test_no_cell_is_a_formula(cell: str) -> None:
    (_, line) = csv.reader(csv_text("a,b", [[cell, "-1.5"]]).splitlines())
    assert line == [f"'{cell}", "-1.5"]


def test_markdown_is_escaped() -> None:
    assert markdown_text("a|b <i> [x](y) `z` *w*") == r"a\|b \<i\> \[x\](y) \`z\` \*w\*"
    assert markdown_text("walker-stand") == "walker-stand"
