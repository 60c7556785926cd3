# Wheels, and static programs of the proxy. Included by the Makefile.

# For any processor, Zig links with the oldest C library that a wheel's name promises. maturin finds
# Zig next to the first Python on the path.
WHEEL_TARGETS := x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl
PACKAGING := $(TOOLS)/packaging

$(PACKAGING)/bin/maturin: | $(BIN)/python
	$(BIN)/python -m venv $(PACKAGING)
	$(PACKAGING)/bin/pip install --quiet --disable-pip-version-check 'maturin[zig]>=1.9.4,<2' uv

# The compiler's profile, of the module's most frequent work: TCP and Multipath TCP with full
# windows and remedies. The module that records it runs on this machine.
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
	$(PACKAGING)/bin/python tools/check/wheel.py dist/*.whl

# The compiler finds whatever the sdist lacks.
wheels-smoke: $(PACKAGING)/bin/maturin $(VENV)/.installed ## test the wheel that make install built, and the sdist
	$(PACKAGING)/bin/python tools/check/wheel.py $(WHEEL)/*.whl
	rm -rf target/sdist
	$(PACKAGING)/bin/maturin sdist --out target/sdist
	tar xzf target/sdist/*.tar.gz -C target/sdist --strip-components=1
	MAKEFLAGS= cargo check --quiet --package anabranch-py --manifest-path target/sdist/Cargo.toml --target-dir target/plain

# The command of the proxy without Python and without libraries of the system. The linker of Rust needs
# nothing of the other processor.
PROXY_TARGETS := x86_64-unknown-linux-musl aarch64-unknown-linux-musl
PROXY := dist/proxy

# Arguments: the profile, Cargo's name of its folder, and environment variables.
define static-proxy
set -e; mkdir -p $(PROXY); rm -f $(PROXY)/*; \
for target in $(PROXY_TARGETS); do \
	if ! rustup --quiet target add $$target; then \
		echo "$$target skipped: rustup could not add it (see above)"; continue; \
	fi; \
	MAKEFLAGS= $(3) cargo rustc --quiet --package anabranch-proxy --bin anabranch-proxy \
		--target $$target --profile $(1) -- -C linker=rust-lld -C link-self-contained=yes; \
	cp target/$$target/$(2)/anabranch-proxy $(PROXY)/anabranch-proxy-$${target%%-*}; \
done; \
cd $(PROXY); own=anabranch-proxy-$$(uname -m)
endef

.PHONY: proxy proxy-smoke
proxy: ## build the static program anabranch-proxy for x86_64 and aarch64 in dist/proxy
	@$(call static-proxy,release,release); sha256sum anabranch-proxy-* > SHA256SUMS; ./$$own --version

# Without optimisation, as quick to build as possible.
proxy-smoke: PROXY := target/proxy-smoke
proxy-smoke: ## build the static programs without optimisation, and run cases with this machine's
	@$(call static-proxy,dev,debug,CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_OPT_LEVEL=0); \
	[ -e $$own ] || { echo "cases skipped: there is no $$own"; exit 0; }; \
	export ANABRANCH_PROXY=$$PWD/$$own; cd $(CURDIR); \
	for case in curl privileges; do $(TEST_RUST) --test namespaces -- $$case; done
