# make demo, make check, make test, make lint, make bench, make fuzz: each creates .venv on its first run.
# PYTHON=… chooses another interpreter.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Rewritten assertions are kept between runs: without that, collecting the tests takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check core test lint bench bench-quick bench-all fuzz clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

# Before each commit: lint and types beside a core of tests.
check: $(VENV)/.dev
	$(MAKE) --no-print-directory -j2 lint core

core: $(VENV)/.dev
	RIESZ_TESTS=core $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not long" @tests/core.txt

# RIESZ_TESTS=all: every case of the large tables, as in CI; some of them otherwise.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(VENV)/.bench
	$(BIN)/python bench/scoreboard.py

bench-quick: $(VENV)/.bench
	$(BIN)/python bench/scoreboard.py --quick

bench-all: bench
	$(BIN)/python bench/scaling.py
	$(BIN)/python bench/calculus.py
	$(BIN)/python bench/numpy_in.py
	$(BIN)/python bench/relations.py

# Random programs: make fuzz N=1000 SEED=0 JOBS=2; what is done already is not run again. FLAGS=--keep writes failures as test cases.
N ?= 1000
SEED ?= 0
JOBS ?= 2
fuzz: $(VENV)/.test
	$(BIN)/python -m fuzz.run --n $(N) --seed $(SEED) --jobs $(JOBS) $(FLAGS)

clean:
	rm -rf $(VENV) dist build fuzz/.state .pytest_cache .ruff_cache .hypothesis
	find src tests examples bench fuzz -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp file per set of extras: pip runs again only when pyproject.toml changes.
$(VENV)/.demo: $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet -e .
	@touch $@

$(VENV)/.test: $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[test]'
	@touch $@

$(VENV)/.bench: $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	@touch $@

$(VENV)/.dev: $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@

$(VENV)/pyvenv.cfg:
	@command -v $(PYTHON) >/dev/null || { echo "riesz needs Python 3.11 or newer, but '$(PYTHON)' was not found; try make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("riesz needs Python 3.11 or newer; $(PYTHON) is %d.%d; try make PYTHON=python3.11" % sys.version_info[:2])'
	$(PYTHON) -m venv --clear $(VENV)
