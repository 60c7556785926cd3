# Fuzzing, random scenarios, long live runs, coverage. Included by the Makefile.

# Duration of `make fuzz` and `make soak` in minutes.
MINUTES ?= 10
FUZZ_TARGETS := options packet endpoint peers convert

$(TOOLS)/bin/cargo-%:
	cargo install --quiet --root $(TOOLS) cargo-$*

# It runs for seconds, and would take minutes to optimise.
$(TOOLS)/bin/cargo-deny:
	cargo install --quiet --debug --root $(TOOLS) cargo-deny

.PHONY: rfc-coverage fuzz soak soak-live coverage mutants
rfc-coverage: ## write docs/rfc-coverage.md; fails if a citation names no clause
	$(PYTHON) tools/check/rfc_coverage.py

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

.PHONY: linux-vm
linux-vm: ## build the kernel of `--in linux-vm`, once, in about ten minutes (LINUX=6.12)
	crates/anabranch-live/linux-vm/build.sh target/linux-vm $(LINUX)
