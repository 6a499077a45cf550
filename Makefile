# Two commands: `make train` and `make test`. Each sets up .venv first with what it needs; a second run installs nothing.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: train test test-all coverage lint types js check audit wheels clean

train: .venv/train
	@$(BIN)/tapnet train MUTAG

test: .venv/dev
	@TAPNET_DATA="$(TAPNET_DATA)" $(BIN)/pytest -n 2 --dist worksteal

# The second tier: twenty kills, every hostile input, a Ray cluster that loses a node, long fuzzing, a wheel in an empty environment.
test-all: .venv/dev
	@TAPNET_DATA="$(TAPNET_DATA)" $(BIN)/pytest -n 2 --dist worksteal --all

coverage: .venv/dev
	@TAPNET_DATA="$(TAPNET_DATA)" $(BIN)/pytest -n 2 --cov --cov-report=term:skip-covered --cov-report=xml

# Known vulnerabilities of the pinned versions; needs the network.
audit: .venv/dev
	@$(BIN)/pip install --quiet pip-audit
	@$(BIN)/pip-audit --skip-editable

# Whether every dependency has a wheel for each Python and platform, into docs/reference/wheels.md; needs the network.
wheels: .venv/dev
	@$(BIN)/pip install --quiet uv
	@$(BIN)/python .ci/wheels.py

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/zizmor --quiet --offline .

# The page's JavaScript, with the rules of eslint.config.mjs; needs npm.
js: node_modules/.package-lock.json
	npx --no-install eslint src/tapnet/explorer/page

node_modules/.package-lock.json: package.json
	npm install --no-audit --no-fund --no-package-lock --loglevel=error
	@touch $@

types: .venv/dev
	$(BIN)/mypy

check: lint types test

.venv/train: pyproject.toml constraints.txt
	@echo "Setting up .venv: a minute or two, the first time only."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(INSTALL) .
	@touch $@

# In one call, also from nothing: pip would resolve twice.
.venv/dev: pyproject.toml constraints.txt
	@echo "Setting up .venv with what the tests need: two or three minutes, the first time only."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(INSTALL) '.[dev]'
	@touch .venv/train $@

clean:
	rm -rf .venv node_modules
