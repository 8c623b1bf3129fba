# Every target first makes the virtual environment .venv from the pinned versions in constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: install demo test test-slow test-peers test-trackers test-ray test-page test-wheel test-faults test-results \
	reproduce soak fuzz check format bench bench-peers bench-ray peer-faults lock clean

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: install  ## the main job on a small scale: two to three minutes on two cores
	rm -rf runs/demo
	$(BIN)/lowgear train cartpole-swingup --steps 30000 --variants asymmetric,large-only --evaluate-every 10000 \
		--out runs/demo
	$(BIN)/lowgear evaluate runs/demo --episodes 20
	@echo
	@echo 'Go on with:'
	@echo '  . .venv/bin/activate'
	@echo '  lowgear evaluate runs/demo --frontier 7'
	@echo '  lowgear report runs/demo --open'
	@echo '  lowgear export runs/demo --format c'

test: install  ## the default suite: nine minutes on two idle cores the first time, when all is compiled
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-slow: install  ## proofs that take minutes: sampling, learning
	$(BIN)/python -m pytest -m slow

.venv-peers/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	.venv-peers/bin/python -m pip install --quiet torch==2.13.0
	.venv-peers/bin/python -m pip install --quiet --constraint constraints.txt \
		'stable-baselines3>=2.7' 'sb3-contrib>=2.7' 'sbx-rl>=0.20' 'rltools[mkl]==2.2.1'
	@touch $@

test-peers: .venv-peers/installed  ## with Stable-Baselines3, in an environment of its own
	.venv-peers/bin/python -m pytest -m peers

.venv-trackers/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-trackers
	.venv-trackers/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,mlflow,wandb]' \
		'tensorboard>=2.20' 'huggingface_hub>=1'
	@touch $@

test-trackers: .venv-trackers/installed  ## what W&B, MLflow, TensorBoard and the Hugging Face hub read, without a network
	.venv-trackers/bin/python -m pytest -m trackers

.venv-ray/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-ray
	.venv-ray/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,ray,sweep,mlflow]'
	@touch $@

test-ray: .venv-ray/installed  ## studies on clusters of this machine, with kills; twenty minutes on two cores
	.venv-ray/bin/python -m pytest -m ray

bench-ray: .venv-ray/installed  ## what scheduling costs on a simulated cluster of 8 nodes
	.venv-ray/bin/python benchmarks/ray_overhead.py

bench-peers: .venv-peers/installed  ## the work of one asymmetric agent by Stable-Baselines3, SBX, RLtools and Lowgear
	.venv-peers/bin/python benchmarks/peers.py --gears 8,64
	.venv-peers/bin/python benchmarks/peers.py --gears 64,256

# RL Zoo's requirements contradict constraints.txt, so it has an environment to itself.
.venv-zoo/installed:
	$(PYTHON) -m venv .venv-zoo
	.venv-zoo/bin/python -m pip install --quiet torch==2.13.0
	.venv-zoo/bin/python -m pip install --quiet 'rl_zoo3>=2.7' requests
	@touch $@

peer-faults: .venv-peers/installed .venv-zoo/installed  ## the same faults tried on four other tools and Lowgear
	.venv-peers/bin/python benchmarks/peer_faults.py

.page-tools/node_modules/axe-core/axe.min.js:
	mkdir -p .page-tools
	npm install --prefix .page-tools --no-save --silent axe-core@4

test-page: install .page-tools/node_modules/axe-core/axe.min.js  ## the page in Chromium and Firefox, with axe-core; needs npm
	AXE_CORE=$(CURDIR)/.page-tools/node_modules/axe-core/axe.min.js $(BIN)/python -m pytest tests/report/test_page.py \
		tests/report/test_page_in_browsers.py

test-wheel: install  ## builds the wheel, and follows the README with it in a bare environment
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	LOWGEAR_WHEEL=$$(ls dist/lowgear-*.whl) $(BIN)/python -m pytest -m wheel tests/test_readme.py

.venv-fuzz/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-fuzz
	.venv-fuzz/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[fuzz]'
	@touch $@

fuzz: .venv-fuzz/installed  ## coverage-guided fuzzing of every loader, for SECONDS
	.venv-fuzz/bin/python -m tests.fuzz.guided -max_total_time=$(or $(SECONDS),300)

test-faults: install  ## kills at every kind of moment, full disks, lost permissions, jumping clocks, two writers
	$(BIN)/python -m pytest -m faults

test-results: install  ## plays the policies in results/evidence again and holds them against the committed figures
	$(BIN)/python -m pytest -n 2 -m results tests/test_results.py

reproduce: install  ## a row of results/evidence from nothing: make reproduce TASK=walker-stand
	$(BIN)/python benchmarks/evidence.py reproduce $(TASK)

soak: install  ## save, kill, resume, evaluate for SECONDS; ends with an error where anything grows
	$(BIN)/python -m tests.faults.soak --seconds $(or $(SECONDS),3600)

check: install  ## format, lint, imports, types, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: install  ## speed, printed as ratios within one run
	$(BIN)/python benchmarks/step_overhead.py
	$(BIN)/lowgear bench train

lock:  ## write constraints.txt anew from what pyproject.toml admits today
	rm -rf .venv-lock
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet '.[dev]'
	.venv-lock/bin/python -m pip freeze | grep -v '^lowgear' > constraints.txt
	rm -rf .venv-lock

clean:
	rm -rf .venv .venv-peers .venv-trackers .venv-ray .venv-zoo .venv-fuzz .venv-lock .page-tools .pytest_cache .mypy_cache .ruff_cache
