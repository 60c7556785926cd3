# Every task of this project is one target, and every target does its own set-up.
#
#   make demo    build, install into .venv, reproduce nsdi12-fig7
#   make test    formatting, lints, types, all tests
#   make ci      make test, the quick gallery, a short benchmark
#
# Needs Rust, Python 3.11 or later, and a C compiler (as Rust's linker).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENTRIES := nsdi12-fig7 cs244-bandwidth-ratio cs244-jitter nsdi12-fig4

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

.PHONY: install dev
install: $(VENV)/.installed
dev: $(VENV)/.installed-dev

# ---- demonstration and gallery --------------------------------------------------------------

.PHONY: demo gallery gallery-full
demo: $(VENV)/.installed
	$(BIN)/anabranch reproduce nsdi12-fig7 --out results/nsdi12-fig7

gallery: $(ENTRIES:%=gallery-%)

gallery-%: $(VENV)/.installed
	$(BIN)/anabranch reproduce $* --out results/$*

gallery-full: $(VENV)/.installed
	for entry in $(ENTRIES); do \
		$(BIN)/anabranch reproduce $$entry --full --out results/$$entry-full || exit; \
	done

# ---- checks ---------------------------------------------------------------------------------

.PHONY: test check-rust test-rust check-python test-python format
test: check-rust test-rust check-python test-python

check-rust:
	cargo fmt --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings

# anabranch-py is an extension module: it links only inside a Python interpreter, and the Python
# tests are its tests.
test-rust:
	cargo test --quiet --workspace --exclude anabranch-py

check-python: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/stubtest anabranch._core

test-python: $(VENV)/.installed-dev
	$(BIN)/pytest

format: $(VENV)/.installed-dev
	cargo fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: ci
ci: test gallery bench-smoke

# ---- benchmark ------------------------------------------------------------------------------

.PHONY: bench bench-smoke bench-peers
bench:
	cargo run --release -p anabranch-sim --bin anabranch-bench

bench-smoke:
	cargo run --release -p anabranch-sim --bin anabranch-bench

bench-peers:
	cargo run --release -p anabranch-sim --bin anabranch-bench

# ---- tidying up -----------------------------------------------------------------------------

.PHONY: clean
clean:
	rm -rf $(VENV) results dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	cargo clean
