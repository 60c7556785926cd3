# The playground: the engine in a web page. Included by the Makefile.

PLAYGROUND := python/anabranch/playground/site
ENGINE := playground/src/engine/module
NODE_MODULES := playground/node_modules/.installed
BIND := target/bind/debug/bind
WASM := target/wasm32-unknown-unknown/page/anabranch_wasm.wasm
WASM_OPT := playground/node_modules/.bin/wasm-opt
# Every browser of 2022 and later has these.
WASM_FEATURES := --enable-bulk-memory --enable-nontrapping-float-to-int --enable-sign-ext \
	--enable-mutable-globals --enable-reference-types --enable-multivalue
# O2 makes the module a fifteenth smaller than the compiler does, in half a minute. Empty: without.
WASM_LEVEL ?= -O2
PAGE_SOURCES := $(shell find playground -path playground/node_modules -prune -o -path $(ENGINE) -prune -o -path playground/tests -prune -o -type f -print)

# Prints why the playground cannot be built here, if it cannot.
WITHOUT_PLAYGROUND = $$(command -v npm >/dev/null || echo "no npm"; \
	rustup --quiet target add wasm32-unknown-unknown >/dev/null 2>&1 || echo "rustup could not add wasm32-unknown-unknown")

.PHONY: playground test-playground check-playground playground-pictures playground-scenarios
playground: ## build the playground, a web page with the engine, into the Python package
	@why="$(WITHOUT_PLAYGROUND)"; if [ -n "$$why" ]; then echo "playground skipped: $$why"; \
	else $(MAKE) --no-print-directory $(PLAYGROUND)/index.html; fi

$(NODE_MODULES): playground/package.json playground/package-lock.json
	cd playground && npm ci --silent
	@touch $@

$(BIND): $(wildcard playground/bind/src/*.rs) playground/bind/Cargo.toml playground/bind/Cargo.lock
	MAKEFLAGS= cargo build --quiet --manifest-path playground/bind/Cargo.toml --target-dir target/bind
	@touch $@

# Without the settings that make other release builds faster to compile: this one is for users.
$(WASM): $(RUST_SOURCES)
	MAKEFLAGS= cargo rustc --quiet --package anabranch-wasm --lib --crate-type cdylib --profile page \
		--target wasm32-unknown-unknown
	@touch $@

$(ENGINE)/engine_bg.wasm: $(WASM) $(BIND) $(NODE_MODULES)
	@mkdir -p $(ENGINE)
	$(BIND) $(WASM) $(ENGINE)
	$(if $(WASM_LEVEL),$(WASM_OPT) $(WASM_LEVEL) $(WASM_FEATURES) --strip-debug --strip-producers $@ -o $@)

$(PLAYGROUND)/index.html: $(ENGINE)/engine_bg.wasm $(PAGE_SOURCES)
	cd playground && npx vite build --logLevel warn
	@echo "playground: $@ (anabranch play serves it once make install has run)"

check-playground: $(ENGINE)/engine_bg.wasm ## check types and lints of the playground
	cd playground && npm run --silent check

# The native build says what the digests of random scenarios are.
target/playground/digests.jsonl: $(RUST_SOURCES)
	@mkdir -p $(@D)
	MAKEFLAGS= cargo run --quiet --bin anabranch-soak -- --digests --seeds 200 > $@

test-playground: ## check and test the playground: in Node, and in Chromium where it is installed
	@why="$(WITHOUT_PLAYGROUND)"; if [ -n "$$why" ]; then echo "playground skipped: $$why"; exit 0; fi; \
	set -e; $(MAKE) --no-print-directory $(PLAYGROUND)/index.html target/playground/digests.jsonl check-playground; \
	cd playground && npm test --silent; \
	if [ -x "$${CHROMIUM:-/usr/bin/chromium}" ]; then npm run --silent test:browser; \
	else echo "browser tests skipped: no /usr/bin/chromium; name it: CHROMIUM=/path/to/chromium"; fi

playground-pictures: $(PLAYGROUND)/index.html ## take the screenshots of docs/playground.md
	cd playground && PLAYGROUND_PICTURES=../docs/img/playground PLAYGROUND_LESSONS=slow-3g,remedies npx vitest run --project browser pictures

playground-scenarios: $(TEST_VENV)/.installed ## write scenarios, words of causes, expected sentences and addresses for the playground
	$(TEST_BIN)/python tools/generate/playground_gallery.py
	$(TEST_BIN)/python tools/generate/playground_causes.py
	$(TEST_BIN)/python tools/generate/playground_findings.py
	$(TEST_BIN)/python tools/generate/playground_addresses.py
