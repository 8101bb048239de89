# The only command list; CI calls the same targets.
PYTHON ?= python3
TORCH ?= torch==2.13.0
# Name an index here (or in the environment) on machines whose default index serves torch as a CUDA build.
TORCH_INDEX ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEVICES := $(VENV)/.devices
# Compilers and runtimes that tests use when they are there (1.5 GB); EXTRAS= leaves them out, and their tests skip.
EXTRAS ?= opencl,sycl,triton

.PHONY: help demo test quick check fmt proto hostile faults bench property clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(STAMP): pyproject.toml
	@PYTHON="$(PYTHON)" TORCH="$(TORCH)" TORCH_INDEX="$(TORCH_INDEX)" sh .ci/setup $(VENV)
	@touch $@

$(DEVICES): $(STAMP)
	@sh .ci/extras $(VENV) "$(EXTRAS)"
	@touch $@

demo: $(STAMP) ## run a whole campaign on this machine: no GPU, no API key
	@$(BIN)/kfd demo tasks/softmax_rows --least-gain 1.5

test: $(DEVICES) ## every test that needs no GPU
	$(BIN)/python -m pytest -q

quick: $(STAMP) ## the fast tests
	$(BIN)/python -m pytest -q -m 'not slow'

check: $(STAMP) ## format, lint, types, import rules, generated code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m mypy kfd worker/kfd_worker client/kfd_client
	$(BIN)/lint-imports
	PATH="$(CURDIR)/$(BIN):$$PATH" sh proto/generate.sh --check

fmt: $(STAMP) ## format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

proto: $(STAMP) ## generate the wire contract's code
	PATH="$(CURDIR)/$(BIN):$$PATH" sh proto/generate.sh

hostile: $(DEVICES) ## every hostile program and every honest look-alike, one line each
	$(BIN)/python -m tests.hostile

property: $(STAMP) ## the large search of the protocol's state machine (about ten minutes)
	KFD_HYPOTHESIS=nightly $(BIN)/python -m pytest -q tests/property

faults: $(STAMP) ## kill -9 at many more moments than make test does
	KFD_KILLS=60 $(BIN)/python -m pytest -q tests/fault

bench: $(DEVICES) ## the figures that docs/benchmarks.md reports
	$(BIN)/python -m benchmarks.throughput --candidates 5000
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.build_cost
	$(BIN)/python -m benchmarks.evaluate_cost
	$(BIN)/python -m benchmarks.aa
	$(BIN)/python -m benchmarks.sweep

clean: ## remove what was built here
	rm -rf $(VENV) build dist .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
