# Every task of this project is one target, and every target does its own set-up.
#
#   make demo    build, install into .venv, reproduce nsdi12-fig7
#   make test    formatting, lints, types, all tests
#   make help    all targets
#
# Needs Rust, Python 3.11 or later, and a C compiler (as Rust's linker).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENTRIES := nsdi12-fig7 cs244-bandwidth-ratio cs244-jitter nsdi12-fig4 nsdi11-lia conext12-olia conext13-design csws14-schedulers-bulk csws14-schedulers-applimited ferlin14-bufferbloat ferlin14-drepas networking16-blest rfc8382-sbd veerman12-lan veerman12-wan veerman12-fairness veerman12-unscaled

RUST_SOURCES := Cargo.toml $(wildcard Cargo.lock) $(shell find crates -name '*.rs' -o -name Cargo.toml)
PYTHON_SOURCES := pyproject.toml $(shell find python -type f ! -name '*.pyc' ! -name '*.so')

.DEFAULT_GOAL := demo
.DELETE_ON_ERROR:

# ---- set-up ---------------------------------------------------------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed; name one: make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The package with its command, at .venv/bin/anabranch.
$(VENV)/.installed: $(BIN)/python $(RUST_SOURCES) $(PYTHON_SOURCES)
	@echo "Building and installing anabranch (the first build takes some minutes) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check .
	@touch $@

# The same, with the tools that the checks need.
$(VENV)/.installed-dev: $(BIN)/python $(RUST_SOURCES) $(PYTHON_SOURCES)
	@echo "Building and installing anabranch with its test tools (the first build takes some minutes) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[dev]'
	@touch $(VENV)/.installed $@

.PHONY: help install dev
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

install: $(VENV)/.installed ## build and install the command at .venv/bin/anabranch
dev: $(VENV)/.installed-dev

# ---- demonstration and gallery --------------------------------------------------------------

.PHONY: demo gallery gallery-full
demo: $(VENV)/.installed ## build, install into .venv, reproduce nsdi12-fig7
	$(BIN)/anabranch reproduce nsdi12-fig7 --out results/nsdi12-fig7

gallery: $(ENTRIES:%=gallery-%) ## reproduce every entry, quick

gallery-%: $(VENV)/.installed
	$(BIN)/anabranch reproduce $* --out results/$*

gallery-full: $(VENV)/.installed ## reproduce every entry with 20 seeds and 100 s each
	for entry in $(ENTRIES); do \
		$(BIN)/anabranch reproduce $$entry --full --out results/$$entry-full || exit; \
	done

.PHONY: policy-pictures
policy-pictures: $(VENV)/.installed ## draw the pictures of docs/policies anew, from runs
	$(BIN)/python docs/policies/draw.py

# ---- checks ---------------------------------------------------------------------------------

.PHONY: test check-rust test-rust check-python test-python format
test: check-rust test-rust check-python test-python ## formatting, lints, types, all tests

check-rust: ## formatting and lints of the Rust code
	cargo fmt --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings

# anabranch-py is an extension module: it links only inside a Python interpreter, and the Python
# tests are its tests.
test-rust: ## tests of the Rust crates
	cargo test --quiet --workspace --exclude anabranch-py

check-python: $(VENV)/.installed-dev ## formatting, lints and types of the Python code
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/stubtest anabranch._core

test-python: $(VENV)/.installed-dev ## tests of the Python package
	$(BIN)/pytest

format: $(VENV)/.installed-dev ## format everything
	cargo fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: ci
ci: test gallery bench-smoke ## make test, the quick gallery, a short benchmark

# ---- benchmark ------------------------------------------------------------------------------

.PHONY: bench bench-smoke bench-peers bench-build
bench-build:
	cargo build --quiet --release -p anabranch-sim --bin anabranch-bench

bench: bench-build ## time the benchmark scenarios; figures also in target/bench.json
	$(PYTHON) bench/run.py

bench-smoke: bench-build ## the same in short; fails below the promised speed
	$(PYTHON) bench/run.py --runs 1 --smoke

bench-peers: bench-build ## compare with ns-3, side by side
	$(PYTHON) bench/run.py --peers

# ---- tidying up -----------------------------------------------------------------------------

.PHONY: clean
clean: ## remove everything that was built or measured
	rm -rf $(VENV) results dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	cargo clean
