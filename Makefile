# `make help` lists the targets. Python 3.11 or newer and Node 20 or newer are all it needs.

# The first interpreter that is new enough; `make PYTHON=… setup` chooses another.
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$name && break; done)

BIN := .venv/bin
STAMP := .venv/.set-up
NODE_LOCK := $(wildcard tests/conformance/package-lock.json)
NODE_STAMP := $(if $(NODE_LOCK),tests/conformance/node_modules/.set-up)

# pyright's wrapper tells of newer versions; ours is in the lock.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types imports sizes nightly bench coverage diagrams lock

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) $(NODE_STAMP) ## make .venv as the lock says; nothing when it is up to date

demo: setup ## start the demo
	$(BIN)/agui demo

test: setup check ## the checks, then the whole suite
	$(BIN)/python -m pytest -q

check: lint types imports sizes ## style, types, directions of imports, sizes of files

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/pyright

imports: setup
	$(BIN)/lint-imports

sizes: setup
	$(BIN)/python -m pytest -q tests/architecture

nightly: setup ## the suite with the long tests and many more examples
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -q -m "nightly or not nightly"

bench: setup ## beside the peers; fails below three times the fastest; ARGS="--quick" to try it
	$(BIN)/python -m tests.bench $(ARGS)
	$(BIN)/python -m tests.bench.growth

coverage: setup ## the suite with coverage of lines and branches
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

diagrams: setup ## draw the pictures that come from tables, into docs/images
	$(BIN)/python -m tests.diagrams

lock: setup ## write requirements.lock anew from pyproject.toml; UPGRADE=1 takes newer versions
	$(BIN)/uv pip compile -q pyproject.toml --group dev --universal --python-version 3.11 \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links \
		$(if $(UPGRADE),--upgrade) -o requirements.lock

# The lock names every package, so nothing is resolved; the project itself is then built
# with the locked hatchling.
$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -r requirements.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(NODE_STAMP): $(NODE_LOCK)
	cd tests/conformance && npm ci --no-audit --no-fund
	@touch $@
