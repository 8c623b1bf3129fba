"""Nothing that a policy file or a person names can leave its comment or its string in generated code."""

import ast
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from safetensors.numpy import load as parse
from safetensors.numpy import save as pack

from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.export import compiler, export
from lowgear.export.c_format import c_files
from lowgear.export.numpy_format import export_numpy
from lowgear.export.onnx_model import onnx_files
from lowgear.export.plain import LONGEST_NAME, check_name, default_name, plain
from lowgear.export.source import ExportRequest, Source
from lowgear.policy.file import Policy
from tests.fixtures.exports import write_files
from tests.fixtures.policies import HEADER, episodes_of, policy_of

ODD = [
    "*/ int evil(void); /*",
    "\\",
    "x\\\n#error evil",
    "??/",
    "??/\n#error evil",
    "??-??<",
    "\n#include <evil.h>",
    "\r\n#error evil",
    '"; evil(); "',
    "'''\nimport evil\n'''",
    '"""\nimport evil\n"""',
    "{evil}",
    "%n%s",
    "naïve ☃ \u2028 \x00 \x1b[2J",
    "//",
    "a" * 200,
]


@pytest.mark.parametrize("odd", ODD)
def test_what_is_left_of_odd_names_is_plain(odd: str) -> None:
    left = plain(odd)
    assert len(left) == len(odd)
    assert left.isascii()
    assert not set(left) & set("*/\\?\n\r\"'{}%<>#;()")
    assert plain(left) == left
    assert check_name(default_name(odd)) == default_name(odd)
    assert plain("gym:My-Env_v0 1.5") == "gym:My-Env_v0 1.5"


@pytest.mark.parametrize("name", ["", "1a", "_a", "a-b", "a b", "a/b", "../a", "a\n", "é", "a" * (LONGEST_NAME + 1)])
def test_what_begins_no_symbol_is_refused(name: str) -> None:
    with pytest.raises(LowgearError, match="cannot begin a C identifier") as caught:
        check_name(name)
    assert "\n" not in str(caught.value)
    source = Source(policy_of(), Path("agent0.safetensors"), None, None)
    for make in (export_numpy, lambda request: export(request, "onnx", Path("nowhere"))):
        with pytest.raises(LowgearError, match="cannot begin a C identifier"):
            make(ExportRequest(source, name))
    with pytest.raises(LowgearError, match="cannot begin a C identifier"):
        c_files(policy_of(), name, "float32", episodes_of(policy_of()))


def odd_policy(odd: str) -> Policy:
    """With the text wherever a header has any, and where it should have none; no file can hold all of it."""
    policy = policy_of()
    anything: Any = odd
    layout = ((odd, 3), (odd[::-1], 2))
    names = {"task": odd, "variant": odd, "recipe": odd, "seed": anything, "steps": anything, "layout": layout}
    return replace(policy, header=replace(policy.header, **names))


@pytest.mark.parametrize("odd", ODD)
def test_odd_names_do_not_change_the_code(odd: str, tmp_path: Path, gcc: str) -> None:
    odd_files, files = (
        c_files(each, "robot", "float32", episodes_of(policy_of())) for each in (odd_policy(odd), policy_of())
    )
    write_files(odd_files, tmp_path)
    strict = [*compiler.STRICT, "-Wcomment", "-Wtrigraphs", "-trigraphs"]
    compiler.build(gcc, [*strict, "-DROBOT_SELF_TEST"], [tmp_path / "robot.c"], tmp_path / "test")

    def code(text: bytes) -> str:
        """Without its comments."""
        path = tmp_path / "code.c"
        path.write_bytes(text)
        command = [gcc, "-std=c99", "-trigraphs", "-fpreprocessed", "-dD", "-E", "-P", "-x", "c", str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    for name in files:
        assert odd_files[name].isascii()
        assert code(odd_files[name]) == code(files[name])


@pytest.mark.parametrize("odd", ODD)
def test_odd_names_reach_no_model_and_no_program(odd: str) -> None:
    assert onnx_files(odd_policy(odd)) == onnx_files(policy_of())
    source = Source(policy_of(replace(HEADER, task="x")), Path("agent0.safetensors"), None, None)
    programs = []
    for name in (default_name(odd), "walker"):
        files = export_numpy(ExportRequest(source, name)).files
        assert f"{name}.safetensors" in files
        programs.append(files["controller.py"].decode().replace(f"{name}.safetensors", "FILE"))
        programs[-1] = programs[-1].replace(f"{name}_policy", "PACKAGE")
    assert programs[0] == programs[1]
    ast.parse(programs[0])


@pytest.mark.parametrize("odd", ODD)
def test_odd_names_of_observations_become_constants(odd: str, tmp_path: Path, gcc: str) -> None:
    policy = policy_of()
    names = ("angle", odd, odd, "joint speed", odd[::-1])
    header = replace(policy.header, observation_names=names, action_names=(odd,))
    files = c_files(replace(policy, header=header), "robot", "float32", episodes_of(policy))
    write_files(files, tmp_path)
    compiler.build(
        gcc, [*compiler.STRICT, "-DROBOT_SELF_TEST", "-trigraphs"], [tmp_path / "robot.c"], tmp_path / "test"
    )
    defined = [line.split() for line in files["robot.h"].decode().splitlines() if line.startswith("#define ROBOT_OBS_")]
    assert [int(value) for _, _, value in defined] == [0, 1, 2, 3, 4]
    assert len({name for _, name, _ in defined}) == 5
    assert all(re.fullmatch("[A-Z0-9_]+", name) for _, name, _ in defined)
    assert [defined[0][1], defined[3][1]] == ["ROBOT_OBS_ANGLE", "ROBOT_OBS_JOINT_SPEED"]


@pytest.mark.parametrize("field", ["seed", "steps", "task", "variant", "layout"])
@pytest.mark.parametrize("form", ["c", "onnx", "numpy"])
def test_a_header_with_code_in_it_is_not_exported(
    field: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "agent0.safetensors"
    policy_of().save(path)
    code = '0 */\n#include <stdlib.h>\n__attribute__((constructor)) static void f(void){system("touch OWNED");}\n/*'
    value = [[code, 3], ["velocity", 2]] if field == "layout" else code
    path.write_bytes(pack(parse(path.read_bytes()), {"lowgear": json.dumps(HEADER.to_json() | {field: value})}))
    result = CliRunner().invoke(cli, ["export", str(path), "--format", form, "--name", "robot", "--out", "out"])
    assert isinstance(result.exception, LowgearError)
    assert f"{path} has a damaged policy header" in str(result.exception)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["agent0.safetensors"]


def test_nor_is_a_policy_made_in_python_with_code_in_its_header(tmp_path: Path) -> None:
    source = Source(odd_policy("*/ evil /*\n"), tmp_path / "agent0.safetensors", None, None)
    with pytest.raises(LowgearError, match="could not export"):
        export(ExportRequest(source, "robot"), "c", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
