"""Compilers, one test for each that is installed."""

import shutil

import pytest


def _compiler(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@pytest.fixture(params=["gcc", "clang"])
def each_compiler(request) -> str:
    return _compiler(request.param)


@pytest.fixture
def gcc() -> str:
    return _compiler("gcc")
