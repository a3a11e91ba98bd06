# Everything a newcomer needs: `make demo` and `make test`. Each does its own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

AGENTS := build/agents

.PHONY: demo test test-long test-agents check bench clean

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

# The real CLIs, against a fake API on loopback: no key, nothing installed outside of
# this folder. Claude Code, Codex and Hermes come in wheels; the other two need npm.
test-agents: $(STAMP) $(AGENTS)/.installed
	$(BIN)/python -m pytest -q -rs tests/agents/test_real_clis.py \
	  tests/agents/test_real_journeys.py

$(AGENTS)/.installed:
	mkdir -p $(AGENTS)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps \
	  --target $(AGENTS)/python claude-agent-sdk openai-codex-cli-bin
	if command -v npm > /dev/null; then \
	  npm install --silent --no-fund --no-audit --prefix $(AGENTS)/node \
	    @google/gemini-cli opencode-ai; \
	else echo "npm is not here: Gemini and opencode are skipped"; fi
	$(PYTHON) -m venv $(AGENTS)/hermes
	$(AGENTS)/hermes/bin/python -m pip install --quiet --disable-pip-version-check \
	  hermes-agent || echo "Hermes cannot be installed here: it is skipped"
	@touch $@

check: $(STAMP)
	scripts/check

bench: $(STAMP)
	$(BIN)/python tests/benchmarks/budgets.py

clean:
	rm -rf $(VENV) build dist *.egg-info .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
