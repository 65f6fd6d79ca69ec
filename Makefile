# The two commands of the README: `make demo` and `make test`. Both set up a virtual environment first.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Supple's modules are compiled to bytecode once, not in every process of the demo and the tests.
unexport PYTHONDONTWRITEBYTECODE

# Two at a time: what checks the text has one thread each, and the tests begin beside the longest of them.
MAKEFLAGS += --jobs=2

.PHONY: demo test lint types layers unit format clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: lint types layers unit

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

layers: $(VENV)/.installed
	$(BIN)/lint-imports

unit: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto --dist worksteal

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/.installed: pyproject.toml
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Supple needs Python 3.11 or later: make PYTHON=python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,demo]'
	@touch $@
