# Two commands: `make train` and `make test`. Both set up .venv first; a second run installs nothing.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: train test test-all lint types check audit clean

train: .venv/installed
	@$(BIN)/tapnet train MUTAG

test: .venv/installed
	@TAPNET_DATA="$(TAPNET_DATA)" $(BIN)/pytest -n 2

# The second tier: twenty kills, every hostile input, a Ray cluster that loses a node, long fuzzing.
test-all: .venv/installed
	@TAPNET_DATA="$(TAPNET_DATA)" $(BIN)/pytest -n 2 --all

# Known vulnerabilities of the pinned versions; needs the network.
audit: .venv/installed
	@$(BIN)/pip install --quiet pip-audit
	@$(BIN)/pip-audit --skip-editable

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed
	$(BIN)/mypy

check: lint types test

.venv/installed: pyproject.toml constraints.txt
	@echo "Setting up .venv: a minute or two, the first time only."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv
