# Set-up, checks and the demo. Needs Python 3.11 or newer and make; every target makes the environment it works in.

PYTHON ?= $(or $(shell for python in python3 python3.13 python3.12 python3.11; do \
  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done), \
  $(error Python 3.11 or newer was not found; name one: make $(or $(MAKECMDGOALS),help) PYTHON=/path/to/python3.11))
MINOR = $(shell $(PYTHON) -c 'import sys; print("3.%d" % sys.version_info[1])')
VENV ?= .venv
DEMO_VENV ?= .venv-demo
LOAD_VENV ?= .venv-load
RATINGS_VENV ?= .venv-ratings
WHEELS ?= .wheels
SGLANG_VENV ?= .venv-sglang
SGLANG_MODEL ?= .sglang/model
SGLANG_PYTHON ?= $(if $(filter 3.11,$(MINOR)),$(PYTHON),python3.11)
JOBS ?= 2
SCALE ?= 10
ARGS ?=
# Stable-Baselines3 brings torch, which is large: only where the tests use it by default. SB3=1 anywhere, SB3= nowhere.
SB3 ?= $(if $(filter 3.11,$(MINOR)),1)

BIN := $(VENV)/bin
MARKERS := oracle slow browser postgres sglang train
UNMARKED := not ($(subst $() $(), or ,$(MARKERS)))
PYTEST = $(BIN)/pytest -n $(JOBS)
INSTALL = -m pip install --quiet --no-build-isolation --constraint tests/constraints.txt --editable
PROJECT := .$(if $(SB3),[sb3])
FRAME := pyproject.toml tests/constraints.txt
SGLANG = $(SGLANG_PYTHON) -m tests.sglang.up --venv $(SGLANG_VENV) --model $(SGLANG_MODEL)

# Collected by `make wheels`: then nothing is asked of a network.
ifneq ($(wildcard $(WHEELS)/*.whl),)
export PIP_NO_INDEX := 1
export PIP_FIND_LINKS := $(abspath $(WHEELS))
endif
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.NOTPARALLEL:
.PHONY: help demo test lint bench bench-load bench-ratings bench-sb3 docs coverage test-ci test-wheel $(MARKERS:%=test-%) sglang-cpu sglang-python demo-llm train-llm wheels \
  clean distclean

help: ## what there is
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(DEMO_VENV)/.core ## a rated tournament of built-in agents on four games; leaves runs/demo
	$(DEMO_VENV)/bin/arena demo --out runs/demo $(ARGS)

test: $(VENV)/.test ## the fast suite
	$(PYTEST) -m "$(UNMARKED)" $(ARGS)

lint: $(VENV)/.lint ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.peers ## our figures beside those of other libraries
	$(BIN)/python -m benchmarks $(ARGS)

bench-load: $(VENV)/.test $(LOAD_VENV)/.load ## thousands of language models at once, beside verifiers and inspect-ai (half an hour)
	ARENA_LOAD_PYTHON=$(LOAD_VENV)/bin/python $(BIN)/python -m benchmarks \
	  --only load,load_many,load_peers,load_faults,load_slow $(ARGS)

bench-ratings: $(VENV)/.test $(RATINGS_VENV)/.ratings ## ratings beside arena-rank and FastChat's bootstrap; coverage; pairing
	ARENA_RATINGS_PYTHON=$(RATINGS_VENV)/bin/python $(BIN)/python -m benchmarks --only ratings,coverage,pairing,store $(ARGS)

bench-sb3: $(VENV)/.train $(VENV)/.peers ## MaskablePPO on our games beside PettingZoo's; exploitability over self-play (an hour)
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore -m benchmarks --only sb3,sb3_strength,sb3_poker $(ARGS)

docs: $(VENV)/.docs ## the site in site/, with a page per game
	$(BIN)/mkdocs build --strict
	@echo "open site/index.html"

coverage: $(VENV)/.test ## the fast suite with branch coverage; fails under 95 % of arena, games, tournaments
	$(PYTEST) -m "$(UNMARKED)" --cov --cov-report= $(ARGS)
	$(BIN)/coverage report --skip-covered --include 'arena/*,games/*,tournaments/*' --fail-under 95

test-ci: ## a small version of every marker, the wheel on other Pythons, the site
	$(MAKE) SCALE=1 $(MARKERS:%=test-%) test-wheel docs

$(MARKERS:%=test-%): export ARENA_SCALE := $(SCALE)

test-oracle: $(VENV)/.oracles $(RATINGS_VENV)/.ratings ## our rules against other implementations
	$(PYTEST) -m oracle $(ARGS)

test-slow: $(VENV)/.test ## what takes minutes
	$(PYTEST) -m slow $(ARGS)

test-browser: $(VENV)/.test ## pages in a real Chromium
	.ci/apt chromium
	$(PYTEST) -m browser $(ARGS)

# The tests start servers of their own; Debian keeps the programs out of the way. Where no test runs, pytest fails (5).
test-postgres: $(VENV)/.test ## the store on a PostgreSQL server
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || .ci/apt postgresql
	$(PYTEST) -m postgres $(ARGS)

# Workers share the cores: threads of torch in each of them would only wait for each other.
test test-train: export OMP_NUM_THREADS := 1
test-train: $(VENV)/.train ## exports loaded by the real trainers; models that learn (needs torch)
	$(PYTEST) -m train $(ARGS)

# One server for all tests, and so one process: it takes 4 GB and both cores.
test-sglang: export SGLANG_VENV := $(SGLANG_VENV)
test-sglang: export SGLANG_MODEL := $(SGLANG_MODEL)
test-sglang: $(VENV)/.test $(if $(SGLANG_BASE_URL),,sglang-python) ## agents on an SGLang server of their own, or on SGLANG_BASE_URL=http://...
	$(if $(SGLANG_BASE_URL),,$(SGLANG) --prepare)
	$(BIN)/pytest -n 0 -m sglang $(ARGS)

sglang-cpu: sglang-python ## the real SGLang on this machine's CPU until Ctrl-C (PORT=30000, ARGS="its own flags")
	$(SGLANG) $(if $(PORT),--port $(PORT)) $(ARGS)

demo-llm: $(DEMO_VENV)/.core sglang-python ## a real language model in a rated tournament, on this machine's CPU; leaves runs/demo-llm
	$(SGLANG) --run "$(DEMO_VENV)/bin/arena demo --model 'sglang:{url}?model=smollm2' --out runs/demo-llm $(ARGS)"

train-llm: $(VENV)/.train ## a small language model, made here, learns from records and its own games (three seeds); leaves runs/train-llm
	$(BIN)/python -m examples.train_llm $(ARGS)

sglang-python:
	@$(SGLANG_PYTHON) -c '' 2>/dev/null || { echo "SGLang's environment needs Python 3.11, and $(SGLANG_PYTHON) was not found:" \
	  "name one, with SGLANG_PYTHON=/path/to/python3.11"; exit 1; }

test-wheel: $(VENV)/.test ## every id from the wheel, in clean environments, on every Python found (PYTHONS="a b" to say which)
	.ci/wheel $(BIN)/python $(PYTHONS)

wheels: $(VENV)/.pip ## collect all that demo, lint, test and docs install, for a machine without a network
	rm -rf $(WHEELS)
	$(BIN)/python -m pip wheel --quiet --wheel-dir $(WHEELS).part --constraint tests/constraints.txt \
	  "pip>=25.1" "setuptools>=77" $(PROJECT) --group test --group lint --group docs
	rm -f $(WHEELS).part/gymnasium_arena-*.whl
	mv $(WHEELS).part $(WHEELS)

clean: ## remove what was built; environments and collected wheels stay
	rm -rf build dist site runs *.egg-info .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean ## remove the environments and collected wheels too
	rm -rf $(VENV) $(DEMO_VENV) $(LOAD_VENV) $(RATINGS_VENV) $(SGLANG_VENV) .sglang $(WHEELS) $(WHEELS).part

%/.pip:
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make environments:" \
	  "on Debian and Ubuntu, apt-get install python3-venv (or python$(MINOR)-venv)"; exit 1; }
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet "pip>=25.1" "setuptools>=77"
	@touch $@

$(DEMO_VENV)/.core: $(DEMO_VENV)/.pip $(FRAME)
	PYTHONWARNINGS=ignore $(@D)/bin/python $(INSTALL) .
	@touch $@

# Peers that must not share an environment with the project: their pins are others.
$(LOAD_VENV)/.load: $(LOAD_VENV)/.pip
	$(@D)/bin/python -m pip install --quiet "verifiers==0.1.14" "inspect-ai>=0.3.285" openai
	@touch $@

$(RATINGS_VENV)/.ratings: $(RATINGS_VENV)/.pip
	$(@D)/bin/python -m pip install --quiet "arena-rank==0.1.1"
	@touch $@

$(VENV)/.test: $(VENV)/.pip $(FRAME)
	PYTHONWARNINGS=ignore $(@D)/bin/python $(INSTALL) "$(PROJECT)" --group test
	@touch $@

$(VENV)/.train: $(VENV)/.test $(FRAME)
	PYTHONWARNINGS=ignore $(@D)/bin/python $(INSTALL) ".[sb3,train]" --group train
	@touch $@

$(VENV)/.lint $(VENV)/.docs $(VENV)/.oracles $(VENV)/.peers: $(VENV)/.%: $(VENV)/.test $(FRAME)
	PYTHONWARNINGS=ignore $(@D)/bin/python $(INSTALL) "$(PROJECT)" --group $*
	@touch $@
