# Every task of this project is one target, and every target does its own set-up.
#
#   make demo    build, install into .venv, reproduce nsdi12-fig7
#   make test    check formatting, lints and types, and run all tests except slow ones
#   make help    list all targets
#
# Needs Rust, Python 3.11 or later, and a C compiler (as Rust's linker).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STARTED := $(shell date +%s)

RUST_SOURCES := Cargo.toml $(wildcard Cargo.lock) $(shell find crates -name '*.rs' -o -name Cargo.toml)
PYTHON_SOURCES := pyproject.toml $(shell find python -type f ! -name '*.pyc' ! -name '*.so')

# Cargo unites the features of all packages that it builds together. Without --workspace, a binary
# would have other features than the extension module, and Cargo would build every dependency again.
BUILD_RELEASE := cargo build --quiet --release --workspace

.DEFAULT_GOAL := demo
.DELETE_ON_ERROR:

# ---- set-up ---------------------------------------------------------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "this needs Python 3.11 or later; name it: make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@# The pip of Python 3.11 may take more than 20 minutes to resolve the dependencies.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

# The package with its command at .venv/bin/anabranch.
$(VENV)/.installed: $(BIN)/python $(RUST_SOURCES) $(PYTHON_SOURCES)
	@echo "Installing Python packages (half a minute), then building anabranch (first build: two to five minutes) ..."
	$(BIN)/python -m pip install --disable-pip-version-check .
	@touch $@

# The package with the tools that the checks need. Its extension module shares the build of the Rust
# tests. Assertions are therefore on, and it is slower than the module that other targets install.
$(VENV)/.installed-dev: $(BIN)/python $(RUST_SOURCES) $(PYTHON_SOURCES)
	@echo "Building and installing anabranch with its test tools (the first build takes a few minutes) ..."
	@rm -f $(VENV)/.installed
	MATURIN_PEP517_ARGS='--profile dev' \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[dev]'
	@touch $@

.PHONY: help install dev
help: ## list all targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

install: $(VENV)/.installed ## build and install the command at .venv/bin/anabranch
dev: $(VENV)/.installed-dev

# ---- demonstration and gallery --------------------------------------------------------------

.PHONY: demo gallery gallery-virtual gallery-full
demo: $(VENV)/.installed ## build, install into .venv, reproduce nsdi12-fig7
	@echo "Reproducing Figure 7 of NSDI 2012 (less than half a minute on two idle cores) ..."
	$(BIN)/anabranch reproduce nsdi12-fig7 --out results/nsdi12-fig7
	@echo
	@echo "Done in $$(($$(date +%s) - $(STARTED))) seconds."
	@echo "To use the command:    source $(BIN)/activate"
	@echo "To see the figure:     results/nsdi12-fig7/report.html"

gallery: $(VENV)/.installed ## reproduce every entry in its quick tier; site in results/
	$(BIN)/anabranch gallery --out results

# The other entries run on kernels in real time, for minutes in which the processor is idle.
VIRTUAL_ENTRIES := from anabranch.gallery import catalogue; \
	print(*(name for name in catalogue.names() if not catalogue.entry(name).is_live))

gallery-virtual: $(VENV)/.installed ## the same without the entries that run in real time
	$(BIN)/anabranch gallery $$($(BIN)/python -c '$(VIRTUAL_ENTRIES)') --out results

gallery-full: $(VENV)/.installed ## reproduce every entry at full scale; site in site/
	$(BIN)/anabranch gallery --full --out site

.PHONY: policy-pictures
policy-pictures: $(VENV)/.installed ## draw the pictures of docs/policies and the README from runs
	$(BIN)/python docs/policies/draw.py
	$(BIN)/python docs/site/picture.py

# MkDocs runs the notebooks and fails on a broken link.
.PHONY: docs
docs: $(VENV)/.installed-docs ## build the documentation site into target/docs
	DISABLE_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --quiet
	cargo doc --quiet --workspace --no-deps
	rm -rf target/docs/rust && cp -r target/doc target/docs/rust
	@echo "documentation: target/docs/index.html"

.PHONY: transcripts
transcripts: $(VENV)/.installed ## run the tutorial's commands, and write their outputs into it
	$(BIN)/python docs/site/transcripts.py

# Installs next to the package, whichever build of it is installed.
$(VENV)/.installed-docs: $(BIN)/python pyproject.toml
	@test -e $(VENV)/.installed-dev || $(MAKE) $(VENV)/.installed
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' | \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement /dev/stdin
	@touch $@

# ---- checks ---------------------------------------------------------------------------------

# Cargo cannot reach make's job server, and would warn about it.
TEST_RUST := MAKEFLAGS= cargo test --quiet --workspace

.PHONY: test check-rust build-test-rust test-rust check-python test-python test-slow format
test: ## check formatting, lints and types, and run all tests except slow ones
	$(MAKE) check-rust
	@# pip and the Python tests leave one of two processors idle, so the Rust tests run at the same time.
	$(MAKE) --jobs=2 dev build-test-rust
	$(MAKE) --jobs=2 test-rust check-python test-python

check-rust: ## check formatting, lints, documentation and imports of the Rust code
	cargo fmt --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --quiet --workspace --no-deps
	$(PYTHON) tests/rust_imports.py
	$(PYTHON) docs/rfc/coverage.py --check

build-test-rust:
	$(TEST_RUST) --no-run

test-rust: ## test the Rust crates, with a few cases of interop
	$(TEST_RUST)

.PHONY: test-platforms
test-platforms: ## test engine and simulator with the platforms other than the default
	@set -e; for host in linux-socket rfc; do \
		echo "== $$host"; \
		ANABRANCH_TEST_HOST=$$host $(TEST_RUST) --test suite; \
	done

test-slow: $(VENV)/.installed-dev ## run the slow tests of Rust and Python
	$(TEST_RUST) --test suite --test allocation -- --ignored
	$(BIN)/pytest -m slow

# The compiler checks code that this machine cannot run. Live runs need Linux: on other systems their
# crate is empty, and the Python module refuses them. WebAssembly has no Python. The Linux target
# covers both other kinds of wheels, aarch64 and musl. A module for musl needs musl as a shared library.
CHECK_TARGETS := aarch64-unknown-linux-musl aarch64-apple-darwin x86_64-pc-windows-gnu
CHECK_RUST := MAKEFLAGS= RUSTFLAGS='-D warnings -C target-feature=-crt-static' cargo check --quiet --workspace

.PHONY: check-targets
check-targets: $(VENV)/.installed-dev ## compile for other platforms, without running
	@if rustup --quiet target add $(CHECK_TARGETS) wasm32-unknown-unknown; then set -ex; \
		$(CHECK_RUST) $(CHECK_TARGETS:%=--target %); \
		$(CHECK_RUST) --exclude anabranch-py --target wasm32-unknown-unknown; \
	else echo "skipped: rustup could not add the targets (see above)"; fi
	$(BIN)/mypy --platform darwin --no-warn-unreachable --cache-dir .mypy_cache/darwin python/anabranch

# CASE='MP_PRIO back' runs the cases whose names contain all these words.
.PHONY: interop
interop: ## test the engine against this kernel's Multipath TCP: all cases, or CASE=MP_PRIO
	$(TEST_RUST) --test interop -- $(or $(CASE),--include-ignored)

.PHONY: conformance
conformance: $(VENV)/.installed ## play the packet scripts against engine and kernel, and write their table
	$(BIN)/python docs/conformance.py

check-python: $(VENV)/.installed-dev ## check formatting, lints, types and imports of the Python code
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/stubtest anabranch._core
	$(BIN)/python tests/python_imports.py

test-python: $(VENV)/.installed-dev axe ## test the Python package, without slow tests
	$(BIN)/pytest

# The accessibility checker for the browser tests. Without it, they skip that check.
AXE := target/tools/axe-core

.PHONY: axe
axe:
	@[ -e $(AXE)/package/axe.min.js ] || ! command -v npm >/dev/null || \
		{ mkdir -p $(AXE) && cd $(AXE) && npm pack --silent axe-core@4.14.1 >/dev/null && \
		tar xzf axe-core-4.14.1.tgz; } || echo "no axe-core: the accessibility check is skipped"

.PHONY: scenario-classes
scenario-classes: $(VENV)/.installed-dev ## generate the Python classes of scenarios from their JSON Schema
	$(BIN)/python tests/scenario_classes.py

.PHONY: claims
claims: $(VENV)/.installed-dev ## write the tables of claims and parameters into the gallery's pages
	$(BIN)/python docs/gallery/claims.py

format: $(VENV)/.installed-dev ## format all code
	cargo fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# RESULTS=results takes the digests of runs that this build finished in the folder.
.PHONY: digests
digests: $(VENV)/.installed ## write the digests of gallery, benchmark and soak, or CHECK=1 to compare
	$(BUILD_RELEASE) --bin anabranch-bench --bin anabranch-soak
	$(BIN)/python tests/digests.py $(if $(CHECK),--check) $(if $(RESULTS),--results $(RESULTS))

# Neither a tool that cannot be installed nor advisories that cannot be fetched fail the target.
.PHONY: audit
audit: ## check licences, sources and known vulnerabilities of the Rust dependencies
	@if ! $(MAKE) --no-print-directory $(TOOLS)/bin/cargo-deny; then \
		echo "skipped: cargo-deny could not be installed (see above)"; exit 0; fi; \
	export PATH=$(TOOLS)/bin:$$PATH; set -e; \
	cargo deny check licenses bans sources; \
	if cargo deny fetch db; then cargo deny check --disable-fetch advisories; \
	else echo "advisories skipped: their database could not be fetched (see above)"; fi

.PHONY: ci digests-smoke
ci: test check-targets wheels-smoke test-platforms gallery-virtual test-slow interop digests-smoke bench-smoke docs ## run all tests, and build wheel, quick gallery, short benchmark and documentation

digests-smoke: gallery-virtual
	$(MAKE) digests CHECK=1 RESULTS=results

# ---- reliability ----------------------------------------------------------------------------

TOOLS := $(CURDIR)/target/tools
# Duration of `make fuzz` and `make soak` in minutes.
MINUTES ?= 10
FUZZ_TARGETS := options packet endpoint peers

$(TOOLS)/bin/cargo-%:
	cargo install --quiet --root $(TOOLS) cargo-$*

.PHONY: rfc-coverage fuzz soak soak-live coverage mutants
rfc-coverage: ## write docs/rfc-coverage.md; fails if a citation names no clause
	$(PYTHON) docs/rfc/coverage.py

# The nightly compiler instruments the code. New inputs go to target/fuzz-corpus.
fuzz: $(TOOLS)/bin/cargo-fuzz ## run the fuzzing targets for MINUTES=10 in total
	@rustup toolchain list | grep -q nightly || rustup toolchain install nightly --profile minimal
	@set -e; for target in $(FUZZ_TARGETS); do \
		echo "== $$target"; \
		mkdir -p target/fuzz-corpus/$$target; \
		PATH=$(TOOLS)/bin:$$PATH cargo +nightly fuzz run --sanitizer none --features fuzzing \
			--target-dir target/fuzz $$target target/fuzz-corpus/$$target fuzz/corpus/$$target -- \
			-max_total_time=$$(($(MINUTES) * 60 / $(words $(FUZZ_TARGETS)))) -max_len=4096 \
			-print_final_stats=1 -verbosity=0; \
	done

soak: ## run random scenarios for MINUTES=10, or with SOAK='--seeds 1000'
	$(BUILD_RELEASE) --bin anabranch-soak
	target/release/anabranch-soak $(or $(SOAK),--minutes $(MINUTES))

# Gigabytes of one transfer, number of concurrent connections, and MINUTES with a flapping path.
GB ?= 10
CONNECTIONS ?= 200
SOAK_LIVE := target/release/anabranch-soak-live

soak-live: ## run engine and kernel live: GB=10 in one transfer, CONNECTIONS=200, flaps for MINUTES=10
	$(BUILD_RELEASE) --bin anabranch-soak-live
	@set -e; for phase in 'transfer $(GB)' 'connections $(CONNECTIONS)' 'flaps $(MINUTES)'; do \
		$(SOAK_LIVE) $$phase target/soak-live; \
	done

coverage: $(TOOLS)/bin/cargo-llvm-cov ## measure line and branch coverage of wire and proto
	rustup component add --toolchain nightly llvm-tools
	PATH=$(TOOLS)/bin:$$PATH cargo +nightly llvm-cov --branch --summary-only \
		-p anabranch-wire -p anabranch-proto

# Without optimisation the tests are slow. With more optimisation the build of each mutant is slow.
mutants: $(TOOLS)/bin/cargo-mutants ## run mutation tests of connection/ and subflow/ (hours), or of SHARD=0/8
	PATH=$(TOOLS)/bin:$$PATH CARGO_PROFILE_TEST_OPT_LEVEL=1 CARGO_PROFILE_TEST_DEBUG=0 \
		CARGO_PROFILE_DEV_DEBUG=0 cargo mutants -p anabranch-proto --output target \
		--timeout 90 --cap-lints true $(if $(SHARD),--shard $(SHARD) --sharding round-robin) \
		-f 'crates/anabranch-proto/src/connection/*.rs' -f 'crates/anabranch-proto/src/subflow/*.rs'

# ---- Linux in virtual time ------------------------------------------------------------------

.PHONY: linux-vm
linux-vm: ## build the kernel of `--in linux-vm`, once, in about ten minutes (LINUX=6.12)
	crates/anabranch-live/linux-vm/build.sh target/linux-vm $(LINUX)

# ---- benchmark ------------------------------------------------------------------------------

.PHONY: bench bench-smoke bench-peers bench-build bench-tun
bench-build:
	$(BUILD_RELEASE) --bin anabranch-bench

bench: bench-build ## time the benchmark scenarios; results also in target/bench.json
	$(PYTHON) bench/run.py

bench-smoke: bench-build ## run a short benchmark; fails below the promised speed, or if many connections cost more
	$(PYTHON) bench/run.py --runs 1 --smoke
	$(PYTHON) bench/growth.py --smoke

bench-peers: bench-build ## compare with ns-3, and with htsim if ANABRANCH_HTSIM names its sources
	$(PYTHON) bench/run.py --peers

bench-tun: ## measure the engine over TUN, compared with a bare copy, against this kernel
	$(BUILD_RELEASE) --bin anabranch-bench-tun
	target/release/anabranch-bench-tun

# ---- distribution ---------------------------------------------------------------------------

# For any processor, Zig links with the oldest C library that a wheel's name promises. maturin finds
# Zig next to the first Python on the path.
WHEEL_TARGETS := x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl
PACKAGING := $(TOOLS)/packaging

$(PACKAGING)/bin/maturin: | $(BIN)/python
	$(BIN)/python -m venv $(PACKAGING)
	$(PACKAGING)/bin/pip install --quiet --disable-pip-version-check 'maturin[zig]>=1.9.4,<2' uv

# What the module does most, as the compiler's profile: TCP and Multipath TCP with full windows and
# remedies. The module that records it runs on this machine.
PROFILE := $(CURDIR)/target/pgo/profile.profdata
# Empty: without the profile, whose module takes minutes to build.
PGO ?= yes

$(PROFILE): $(RUST_SOURCES)
	test -x $(BIN)/anabranch || $(MAKE) install
	rm -rf target/pgo && mkdir -p target/pgo/raw target/pgo/python
	RUSTFLAGS=-Cprofile-generate=$(CURDIR)/target/pgo/raw \
		cargo build --quiet --release --package anabranch-py --target-dir target/pgo/build
	cp -r python/anabranch target/pgo/python
	cp target/pgo/build/release/lib_core.so target/pgo/python/anabranch/_core.abi3.so
	PYTHONPATH=target/pgo/python $(BIN)/python -P -m anabranch \
		reproduce nsdi12-fig7 --out target/pgo/results >/dev/null
	$$(rustc --print sysroot)/lib/rustlib/*/bin/llvm-profdata merge -o $@ target/pgo/raw
	rm -rf target/pgo/build

# maturin builds each wheel from the unpacked sdist, which proves that the sdist is complete.
.PHONY: wheels wheels-smoke
wheels: $(PACKAGING)/bin/maturin ## build sdist, wheels and checksums in dist/; test this machine's wheel
	rustup --quiet target add $(WHEEL_TARGETS)
	rm -rf dist
	@set -ex; if [ -z "$(PGO)" ]; then echo "without profile-guided optimisation: PGO is empty"; \
	elif rustup --quiet component add llvm-tools; then \
		$(MAKE) $(PROFILE); export RUSTFLAGS=-Cprofile-use=$(PROFILE); \
	else echo "without profile-guided optimisation: rustup could not add llvm-tools"; fi; \
	for target in $(WHEEL_TARGETS); do \
		PATH=$(PACKAGING)/bin:$$PATH maturin build --quiet --sdist --release --zig --target $$target --out dist; \
	done
	cd dist && sha256sum *.tar.gz *.whl > SHA256SUMS
	$(PACKAGING)/bin/python tests/wheel.py

wheels-smoke:
	$(MAKE) wheels WHEEL_TARGETS=$$(uname -m)-unknown-linux-gnu PGO=

# ---- tidying up -----------------------------------------------------------------------------

.PHONY: clean
clean: ## remove all builds and results
	rm -rf $(VENV) results site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	cargo clean
