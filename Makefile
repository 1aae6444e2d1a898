# `make run` and `make test` set everything up by themselves. They need only Python 3.11 or newer,
# make and git. Another Python is chosen with `make PYTHON=python3.12 ...`.

PYTHON ?= python3
BIN := .venv/bin
UV ?= $(BIN)/uv
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
COMPILE := $(UV) pip compile -q --universal --generate-hashes --no-header --no-annotate \
	--no-emit-index-url $(if $(UPGRADE),--upgrade)
# Tests often wait for real processes and for time, so six keep two cores busy.
WORKERS ?= 6
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal --durations=10 --durations-min=1
GATES := $(BIN)/python -m tests.support.gates

# Without compiled files every worker and every process that a test starts compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run test test-long test-postgres test-postgres-long test-all test-agents audit bench bench-scale measure format map findings pictures lock clean FORCE

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-18s %s\n", $$1, $$2}' Makefile

setup: .venv/.run ## Set up .venv with all that the bridge needs to run
	@echo "Ready: .venv/bin/agent-bridge"

run: .venv/.run ## Set up, then serve on 127.0.0.1:8000 (HOST, PORT)
	@exec $(BIN)/agent-bridge serve

test: .venv/.dev ## Set up, then run every gate and the quick tests (ARGS go to pytest)
	@$(GATES) $(PYTEST) -m 'not slow and not long' $(ARGS)

test-long: .venv/.dev ## The longer stories, which CI runs after the quick tests
	@$(PYTEST) -m 'long and not slow' $(ARGS)

test-postgres: .venv/.dev ## The stories and crashes of the quick tests, with every bridge on PostgreSQL
	@TEST_DATABASE=postgresql $(PYTEST) -m 'not slow and not long and not one_database' \
		tests/contracts/test_adapters.py tests/scenarios $(ARGS)

test-postgres-long: .venv/.dev ## The longer stories, with every bridge on PostgreSQL
	@TEST_DATABASE=postgresql $(PYTEST) -m 'long and not slow and not one_database' \
		tests/contracts/test_adapters.py tests/scenarios $(ARGS)

test-all: .venv/.dev ## All tests: quick, long and slow ones: many seeds, real agents
	@$(BIN)/python -m tests.agents.install
	@$(BIN)/python -m tests.support.audit
	@$(GATES) $(PYTEST) $(ARGS)

audit: .venv/.dev ## Look up every pinned dependency in the published advisories
	@$(BIN)/python -m tests.support.audit

test-agents: .venv/.dev ## Install real agents from npm into .agents, then test their sessions
	@$(BIN)/python -m tests.agents.install
	@$(PYTEST) tests/agents tests/contracts/agent_sessions $(ARGS)

bench: .venv/.dev ## Measure
	@exec $(BIN)/python -m bench $(ARGS)

bench-scale: .venv/.dev ## Measure where one bridge and several on PostgreSQL saturate
	@exec $(BIN)/python -m bench.scale $(ARGS)

measure: .venv/.dev ## Measure the code: its grain, and the modules that one message runs through
	@$(BIN)/python -m tests.support.grain
	@$(BIN)/python -m bench.walk $(ARGS)

format: .venv/.dev ## Put code into its form and repair what can be repaired
	@$(BIN)/ruff check --quiet --fix --exit-zero .
	@$(BIN)/ruff format --quiet .

map: .venv/.dev ## Print the map of modules
	@$(BIN)/python -m tests.support.module_map

findings: .venv/.dev ## Write the list of what doctor finds into the docs
	@$(BIN)/python -m tests.support.doctor_table

pictures: .venv/.dev ## Take the pictures of the docs with Chromium (ARGS="page slack" for some)
	@$(BIN)/python -m tests.support.pictures $(ARGS)

lock: .venv/.dev ## Write the lock files from pyproject.toml (UPGRADE=1 takes newer versions)
	@$(COMPILE) --group build pyproject.toml -o requirements.lock
	@$(COMPILE) --group build --all-extras -c requirements.lock pyproject.toml -o requirements-image.lock
	@$(COMPILE) --group dev --all-extras -c requirements.lock pyproject.toml -o requirements-dev.lock

clean: ## Remove .venv, installed agents and caches
	@rm -rf .agents .screenshots .venv .hypothesis .import_linter_cache .mypy_cache .ruff_cache

# The environment. Two stamps: what the bridge needs, and the tools on top of it. An environment
# that came with a copied or moved folder still points to the old place and is made again.
ifeq ($(shell grep -Fs ' $(CURDIR)/.venv' .venv/pyvenv.cfg),)
.venv/.run .venv/.dev: FORCE
endif

.venv/.run: requirements.lock pyproject.toml
	@$(call install,requirements.lock)
	@touch $@

.venv/.dev: requirements-dev.lock pyproject.toml
	@$(call install,requirements-dev.lock)
	@touch .venv/.run $@

define install
set -e; \
if $(BIN)/python -m pip --version >/dev/null 2>&1 && grep -Fqs ' $(CURDIR)/.venv' .venv/pyvenv.cfg; then \
	echo 'Bringing .venv up to date ...'; \
else \
	version=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || \
		{ echo '$(PYTHON) was not found: install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3' >&2; exit 1; }; \
	case $$version in 2.*|3.?|3.10) \
		echo "Python 3.11 or newer is needed, $(PYTHON) is $$version: name another one, such as make PYTHON=python3.12" >&2; exit 1;; \
	esac; \
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "python3-venv is missing: apt install python3-venv (or python$$version-venv), then try again" >&2; exit 1; }; \
	echo 'Setting up .venv (once, about a minute) ...'; \
	$(PYTHON) -m venv --clear .venv || \
		{ echo '$(PYTHON) could not make .venv, see above. On Debian and Ubuntu: apt install python3-venv' >&2; exit 1; }; \
fi; \
$(PIP) install --require-hashes -r $(1); \
$(PIP) install --no-deps --no-build-isolation -e .
endef
