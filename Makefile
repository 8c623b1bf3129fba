# Every target first makes the virtual environment .venv from the pinned versions in constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: install demo test test-slow check format bench clean

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: install  ## the main job on a small scale
	$(BIN)/lowgear tasks
	$(BIN)/lowgear tasks --try

test: install  ## the default suite, under ten minutes on two cores
	$(BIN)/python -m pytest

test-slow: install  ## proofs that take minutes: sampling, learning
	$(BIN)/python -m pytest -m slow

check: install  ## format, lint, types, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: install  ## speed, printed as ratios within one run
	$(BIN)/python benchmarks/step_overhead.py

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache
