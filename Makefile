# Every task of this project is one target, and every target does its own set-up.
#
#   make demo    build, install into .venv, reproduce nsdi12-fig7
#   make test    check formatting, lints and types, and run all tests except slow ones
#   make help    list all targets
#
# Needs Rust, Python 3.11 or later, and a C compiler (as Rust's linker). More targets are in tools/*.mk.

PYTHON ?= python3
STARTED := $(shell date +%s)

# Two environments. Users, gallery and benchmarks have the release build in .venv. The tests have a
# build with assertions, next to the tools that they need.
VENV := .venv
BIN := $(VENV)/bin
TEST_VENV := target/test-venv
TEST_BIN := $(TEST_VENV)/bin
TOOLS := $(CURDIR)/target/tools

RUST_SOURCES := Cargo.toml $(wildcard Cargo.lock) $(shell find crates -name '*.rs' -o -name Cargo.toml)
PYTHON_SOURCES := pyproject.toml $(shell find python -path '*/playground/site' -prune -o -type f ! -name '*.pyc' ! -name '*.so' -print)
# Users' installation contains the playground, if it was built. The tests need none.
BUILT_PLAYGROUND := $(wildcard python/anabranch/playground/site/index.html)

# With this selection, programs and tests share the builds of the extension module. Cargo would build
# every dependency again for the features of the playground's module, which has no tests.
PACKAGES := --workspace --exclude anabranch-wasm
BUILD_RELEASE := cargo build --quiet --release $(PACKAGES)

.DEFAULT_GOAL := demo
.DELETE_ON_ERROR:
.PHONY: help install dev demo test check-rust build-test-rust test-rust check-python test-python clean

# ---- set-up ---------------------------------------------------------------------------------

$(BIN)/python $(TEST_BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "this needs Python 3.11 or later; name it: make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(@:/bin/python=)
	@# The pip of Python 3.11 may take more than 20 minutes to resolve the dependencies.
	$@ -m pip install --quiet --disable-pip-version-check --upgrade pip

# A module that is stripped shares no build with other targets: Cargo would compile everything twice.
UNSTRIPPED := --strip false

# The package with its command at .venv/bin/anabranch. Its wheel stays, so that it can be checked.
WHEEL := target/wheel
$(VENV)/.installed: $(BIN)/python $(RUST_SOURCES) $(PYTHON_SOURCES) $(BUILT_PLAYGROUND)
	@echo "Building anabranch (first build: two to five minutes), then installing Python packages (half a minute) ..."
	rm -rf $(WHEEL)
	MATURIN_PEP517_ARGS='$(UNSTRIPPED)' \
		$(BIN)/python -m pip wheel --disable-pip-version-check --no-deps --wheel-dir $(WHEEL) .
	$(BIN)/python -m pip install --disable-pip-version-check $(WHEEL)/*.whl
	@# A wheel of the version that was installed before changes nothing without force.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(WHEEL)/*.whl
	@touch $@

# The package with the tools that the checks need. Its extension module shares the build of the Rust
# tests, with assertions.
$(TEST_VENV)/.installed: $(TEST_BIN)/python $(RUST_SOURCES) $(PYTHON_SOURCES)
	@echo "Building and installing anabranch with its test tools (the first build takes a few minutes) ..."
	MATURIN_PEP517_ARGS='--profile dev $(UNSTRIPPED)' \
		$(TEST_BIN)/python -m pip install --quiet --disable-pip-version-check '.[dev]'
	@touch $@

help: ## list all targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

install: $(VENV)/.installed ## build and install the command at .venv/bin/anabranch
dev: $(TEST_VENV)/.installed

demo: $(VENV)/.installed ## build, install into .venv, reproduce nsdi12-fig7
	@echo "Reproducing Figure 7 of NSDI 2012 (less than half a minute on two idle cores) ..."
	$(BIN)/anabranch reproduce nsdi12-fig7 --out results/nsdi12-fig7
	@echo
	@echo "Done in $$(($$(date +%s) - $(STARTED))) seconds."
	@echo "To use the command:    source $(BIN)/activate"
	@echo "To see the figure:     results/nsdi12-fig7/report.html"

# ---- tests ----------------------------------------------------------------------------------

# Cargo cannot reach make's job server, and would warn about it.
TEST_RUST := MAKEFLAGS= cargo test --quiet $(PACKAGES)

test: ## check formatting, lints and types, and run all tests except slow ones
	$(MAKE) check-rust
	@# pip uses one processor, and tests in real time hardly any, so the lists run side by side.
	$(MAKE) --jobs=2 dev build-test-rust
	$(MAKE) --jobs=2 test-rust check-python test-python

check-rust: ## check formatting, lints and imports of the Rust code
	cargo fmt --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	@# Users of the engine or the network alone do not have the feature serde.
	RUSTFLAGS='-D warnings' cargo check --quiet -p anabranch-proto -p anabranch-net --target-dir target/plain
	$(PYTHON) tools/check/rust_imports.py
	$(PYTHON) tools/check/additions.py
	$(PYTHON) tools/check/rfc_coverage.py --check

build-test-rust:
	$(TEST_RUST) --no-run

test-rust: ## test the Rust crates, with a few cases of interop
	$(TEST_RUST) --no-fail-fast

check-python: $(TEST_VENV)/.installed ## check formatting, lints, types and imports of the Python code
	$(TEST_BIN)/ruff check
	$(TEST_BIN)/ruff format --check
	$(TEST_BIN)/mypy
	$(TEST_BIN)/stubtest anabranch._core
	$(TEST_BIN)/python tools/check/python_imports.py

test-python: $(TEST_VENV)/.installed axe ## test the Python package, without slow tests
	@# Tests in real time mostly wait, so there is one more process than processors.
	$(TEST_BIN)/pytest --numprocesses $$($(PYTHON) -c 'import os; print(os.cpu_count() + 1)') --dist loadfile

clean: ## remove all builds and results
	rm -rf $(PLAYGROUND) $(ENGINE) playground/node_modules $(VENV) results site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	cargo clean

include tools/checks.mk tools/gallery.mk tools/generate.mk tools/playground.mk tools/reliability.mk tools/speed.mk tools/release.mk
