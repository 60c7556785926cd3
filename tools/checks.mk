# Checks beyond make test, and a tool of the tests. Included by the Makefile.

# The accessibility checker for the browser tests. Without it, they skip that check.
AXE := $(TOOLS)/axe-core

.PHONY: axe
axe:
	@[ -e $(AXE)/package/axe.min.js ] || ! command -v npm >/dev/null || \
		{ mkdir -p $(AXE) && cd $(AXE) && npm pack --silent axe-core@4.14.1 >/dev/null && \
		tar xzf axe-core-4.14.1.tgz; } || echo "no axe-core: the accessibility check is skipped"

.PHONY: test-platforms
test-platforms: ## test engine and simulator with the platforms other than the default
	@set -e; for host in linux-socket rfc; do \
		echo "== $$host"; \
		ANABRANCH_TEST_HOST=$$host $(TEST_RUST) --test suite; \
	done

# The commands of the documentation run with users' build, which takes half of the time.
.PHONY: test-slow
test-slow: $(TEST_VENV)/.installed $(VENV)/.installed ## run the slow tests of Rust and Python
	$(TEST_RUST) --test suite --test allocation -- --ignored
	ANABRANCH_BIN=$(CURDIR)/$(BIN) $(TEST_BIN)/pytest -m slow --numprocesses auto

# The compiler checks code that this machine cannot run, with the oldest version of Rust that
# Cargo.toml promises to users of the crates. Live runs need Linux: on other systems their crate is
# empty, and the Python module refuses them. WebAssembly has no Python. The Linux target covers both
# other kinds of wheels, aarch64 and musl. A module for musl needs musl as a shared library.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
CHECK_TARGETS := aarch64-unknown-linux-musl aarch64-apple-darwin x86_64-pc-windows-gnu
CHECK_RUST := MAKEFLAGS= RUSTFLAGS='-D warnings -C target-feature=-crt-static' cargo +$(MSRV) check --quiet --workspace

.PHONY: check-targets
check-targets: $(TEST_VENV)/.installed ## compile for other platforms with the oldest supported Rust, without running
	@if rustup --quiet toolchain install $(MSRV) --profile minimal --no-self-update \
			$(CHECK_TARGETS:%=--target %) --target wasm32-unknown-unknown; then set -ex; \
		$(CHECK_RUST) $(CHECK_TARGETS:%=--target %); \
		$(CHECK_RUST) --exclude anabranch-py --target wasm32-unknown-unknown; \
	else echo "skipped: rustup could not install Rust $(MSRV) with these targets (see above)"; fi
	$(TEST_BIN)/mypy --platform darwin --no-warn-unreachable --cache-dir .mypy_cache/darwin python/anabranch

# CASE='MP_PRIO back' runs the cases whose names contain all these words.
.PHONY: interop
interop: ## test the engine against this kernel's Multipath TCP: all cases, or CASE=MP_PRIO
	$(TEST_RUST) --test interop -- $(or $(CASE),--include-ignored)

.PHONY: format
format: $(TEST_VENV)/.installed ## format all code
	cargo fmt
	$(TEST_BIN)/ruff check --fix
	$(TEST_BIN)/ruff format

# Neither a tool that cannot be installed nor advisories that cannot be fetched fail the target.
.PHONY: audit
audit: ## check licences, sources and known vulnerabilities of the Rust dependencies
	@if ! $(MAKE) --no-print-directory $(TOOLS)/bin/cargo-deny; then \
		echo "skipped: cargo-deny could not be installed (see above)"; exit 0; fi; \
	export PATH=$(TOOLS)/bin:$$PATH; set -e; \
	cargo deny check licenses bans sources; \
	if cargo deny fetch db; then cargo deny --offline check advisories; \
	else echo "advisories skipped: their database could not be fetched (see above)"; fi

# Makes targets one after the other, and prints how long each of them took.
define timed
+@set -e; for part in $(1); do \
	started=$$(date +%s); $(MAKE) $$part; echo "== $$part: $$(($$(date +%s) - started)) s"; \
done
endef

# Downloads, tests in real time and single-threaded builds leave a processor idle, so two lists of
# targets run side by side. The playground comes first, because installations and wheels contain it. The
# slow tests draw the results of gallery-smoke.
.PHONY: ci ci-builds ci-runs
ci: $(BIN)/python ## run all tests, and build wheel, demonstration, small gallery, short benchmark and documentation
	$(call timed,test test-playground)
	$(MAKE) --jobs=2 ci-builds ci-runs
	$(call timed,digests-smoke bench-smoke test-slow)

ci-builds:
	$(call timed,demo docs wheels-smoke)

ci-runs:
	$(call timed,test-platforms interop proxy-smoke audit check-targets)
