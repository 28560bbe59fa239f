# make demo, make check, make test, make test-browser, make docs, make docs-links, make dist, make lint, make bench, make fuzz: each creates .venv on its first run.
# PYTHON=… chooses another interpreter.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Rewritten assertions are kept between runs: without that, collecting the tests takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check core test test-browser docs docs-links dist lint bench bench-quick bench-all fuzz clean
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

# The page in a real browser: Debian's Chromium, installed where that is allowed.
test-browser: $(VENV)/.browser
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } \
		|| { echo "there is no chromium; install it, on Debian with: sudo apt-get install chromium" >&2; exit 1; }
	$(BIN)/python -m pytest tests/browser

# The site, in docs/_build/html: every cell is run, a warning is an error.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -W --keep-going -j 2 -b html docs docs/_build/html

# Every link of the site that leads elsewhere; needs the network.
docs-links: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -b linkcheck -D nb_execution_mode=off docs docs/_build/links

# The wheel and the source archive, looked into, and the wheel used in a new environment.
dist: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet build
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python release/check_dist.py dist

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
	$(BIN)/python bench/page.py

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

$(VENV)/.browser: $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[test,browser]'
	@touch $@

$(VENV)/.docs: $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[docs]'
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
