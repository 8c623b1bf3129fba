"""Names that no file system takes are told in one line, by every command that is given one."""

import sys

import pytest

from lowgear.commands import cli, ctrl_c

LONG = "x" * 300


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "envpool:Pendulum-v1", "--steps", "128", "--out", LONG],
        ["train", "--resume", LONG],
        ["train", "envpool:Pendulum-v1", "--settings", LONG],
        ["evaluate", LONG],
        ["tune", LONG, "--keep-return", "0.9"],
        ["export", LONG, "--format", "c"],
        ["report", LONG],
        ["watch", LONG],
        ["bench", "deploy", LONG],
        ["study", "performance", "cartpole-swingup", "--dry-run", "--out", LONG],
    ],
    ids=lambda arguments: " ".join(word for word in arguments if word != LONG),
)
def test_a_name_that_is_too_long(monkeypatch, capsys, tmp_path, arguments):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["lowgear", *arguments])
    monkeypatch.setattr(ctrl_c, "begin", lambda: None)  # it would listen for as long as the tests run
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"lowgear: error: {'x' * 60}... (3")
    assert line.endswith("letters): File name too long; name another")
    assert not list(tmp_path.iterdir())
