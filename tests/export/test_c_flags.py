"""Flags that take the check of observations out are refused by the compiler, the others are not."""

import pytest

from lowgear import LowgearError
from lowgear.export import compiler
from tests.fixtures.exports import write_c
from tests.fixtures.policies import policy_of


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-ffinite-math-only"])
def test_fast_math_does_not_compile(flag, tmp_path, each_compiler):
    write_c(policy_of(), tmp_path)
    for self_test in ([], ["-DROBOT_SELF_TEST"]):
        with pytest.raises(LowgearError, match="compile without -ffast-math"):
            compiler.build(each_compiler, [flag, "-c", *self_test], [tmp_path / "robot.c"], tmp_path / "robot.o")
    assert not (tmp_path / "robot.o").exists()


@pytest.mark.parametrize(
    "flags", [["-O3", "-ffp-contract=fast"], ["-O2", "-fno-fast-math"], ["-Os", "-fno-math-errno"]]
)
def test_other_flags_do(flags, tmp_path, each_compiler):
    write_c(policy_of(), tmp_path)
    compiler.build(each_compiler, [*flags, "-c"], [tmp_path / "robot.c"], tmp_path / "robot.o")
    assert (tmp_path / "robot.o").exists()
