# Everything a newcomer needs: `make demo` and `make test`. Each does its own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

AGENTS := build/agents

.PHONY: demo test test-agents check bench clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $(STAMP)

demo: $(STAMP)
	@$(BIN)/uwf demo

# Thousands of small repositories: in memory, where there is a place for it.
PYTEST := @if [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi; $(BIN)/python -m pytest -n 2

# All behaviours, but for what takes long by nature.
test: $(STAMP)
	$(PYTEST) -q -m "not slow"

# Every test there is: processes, kills, terminals, other people's programs.
test-long: $(STAMP)
	$(PYTEST) -q

check: $(STAMP)
	scripts/check

bench: $(STAMP)
	$(BIN)/python tests/benchmarks/budgets.py

clean:
	rm -rf $(VENV) build dist *.egg-info .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
