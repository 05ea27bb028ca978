# Everything starts from here, on a machine with Python 3.11 or newer and make. The environment in .venv makes itself.

PYTHON ?= python3
PROCESSES ?= 4
HYPOTHESIS_PROFILE ?= ci
export HYPOTHESIS_PROFILE

BIN := .venv/bin
CORE := .venv/core.stamp
DEV := .venv/dev.stamp

.DEFAULT_GOAL := help
.PHONY: help demo test check audit soak bench features walk house lock
# Targets given together share one environment and two cores: one after the other.
.NOTPARALLEL:

help: ## this list
	@echo "Godwit: content-based publish/subscribe for things that move"
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

demo: $(CORE) ## three brokers, people who roam between them, one broker killed: is anything lost?
	@$(BIN)/godwit demo $(ARGS)

test: $(DEV) ## check, then all tests; PROCESSES=8 on a machine with more than two cores
	@# The index is compiled meanwhile, once, where otherwise several tests at a time would each compile it.
	@$(BIN)/python -m tools.warm & $(MAKE) --no-print-directory check && wait
	@# Two processes have Spark compute, which takes both cores; in the others tests wait more than they compute.
	@$(BIN)/python -m tools.suite --processes $(PROCESSES)

check: $(DEV) ## style (ruff), types (mypy --strict), and dependencies against the lock
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/python -m tools.audit

audit: $(DEV) ## what is known against the locked versions; needs a network, and installs pip-audit for the moment
	@$(BIN)/uv export --quiet --format requirements-txt --all-extras --no-emit-workspace > .venv/locked.txt
	@$(BIN)/uv tool run pip-audit --disable-pip --require-hashes -r .venv/locked.txt

soak: $(DEV) ## everything at once for an hour: load, floods, kills, clock steps, a full disk; ARGS="--minutes 5"
	@$(BIN)/python -m tests.net.soaking $(ARGS)

bench: $(DEV) ## speed of matching, simulator and broker beside baselines measured in the same run; ARGS=--quick
	@$(BIN)/python benchmarks/simulator.py $(filter --quick,$(ARGS))
	@$(BIN)/python benchmarks/broker.py $(filter --quick,$(ARGS))
	@$(BIN)/python benchmarks/matching.py $(ARGS)
	@$(BIN)/python benchmarks/speed.py $(filter --quick,$(ARGS))

features: $(DEV) ## each feature of the specs with the tests that prove it; ARGS="--spec content-routing" for one spec
	@$(BIN)/python -m tools.features $(ARGS)

walk: $(DEV) ## how far a publication, a handoff, a matched event and a lab run travel through the code; ARGS=--hops
	@$(BIN)/python -m tools.walk $(ARGS)

house: $(DEV) ## draw the picture of the house in docs/architecture.md again, from the imports
	@$(BIN)/python -m tools.house

lock: $(DEV) ## renew uv.lock after a change of pyproject.toml; ARGS=--upgrade for newer versions of everything
	@$(BIN)/python tools/lock.py $(ARGS)

$(CORE): pyproject.toml uv.lock tools/environment.py
	$(usable-python)
	@$(PYTHON) tools/environment.py core

$(DEV): pyproject.toml uv.lock tools/environment.py
	$(usable-python)
	@$(PYTHON) tools/environment.py dev

another := name another one, as in: make $(MAKECMDGOALS) PYTHON=python3.12

define usable-python
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "Godwit needs Python 3.11 or newer, which '$(PYTHON)' is not; $(another)" >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	{ echo "'$(PYTHON)' lacks venv (Debian and Ubuntu: apt install python3-venv); $(another)" >&2; exit 1; }
endef
