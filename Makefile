# Two commands matter: `make demo` shows what Farthing does, `make test` proves it. Both set up .venv first.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
TESTING := $(BIN)/pytest -q -n auto
# One decision, one fit, replay, files of any length, two cores, one training, one live call.
SPEED := decision_speed fit_speed replay_speed million_traces two_cores ccpo_speed model_overhead collect_overhead
# One thread a process: the arrays are small, and what runs in parallel runs as processes.
export OMP_NUM_THREADS ?= 1

.DELETE_ON_ERROR:
.PHONY: help demo test check bench figures setup clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

demo: setup ## set up, then compare policies on generated traces and write demo-out/report.html
	$(BIN)/farthing demo

# A page's blocks build on one another, so that a file stays in one process.
test: setup ## set up, then run tests, doctests and the code blocks of README and docs
	$(TESTING) --dist loadfile

check: setup ## formatting, lint, types, import contract, links and blocks of the docs, slow tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q README.md docs tests/test_house.py
	$(TESTING) -m slow

bench: setup ## measure speed, on an otherwise idle machine (some 15 minutes); figures go to docs/log.md
	@set -e; for name in $(SPEED); do echo "== benchmarks/$$name.py"; $(BIN)/python benchmarks/$$name.py; done

figures: setup ## run the experiments again and redraw the figures in docs/
	@set -e; for script in $(filter-out %/common.py,$(wildcard benchmarks/experiments/*.py)); do echo "== $$script"; $(BIN)/python $$script; done

setup: $(STAMP) ## make .venv and install the package in it

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Farthing needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Name a newer one:" >&2; \
	  echo "  make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up .venv (a few minutes, once)"
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean: ## remove .venv, caches and what the demo wrote
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis demo-out
