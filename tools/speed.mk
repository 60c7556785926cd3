# Benchmarks. Included by the Makefile.

.PHONY: bench bench-smoke bench-peers bench-build bench-tun
bench-build:
	$(BUILD_RELEASE) --bin anabranch-bench

bench: bench-build ## time the benchmark scenarios; results also in target/bench.json
	$(PYTHON) bench/run.py

bench-smoke: bench-build ## run a short benchmark; fails below the promised speed, or if many connections cost more
	$(PYTHON) bench/run.py --runs 1 --smoke
	$(PYTHON) bench/growth.py --smoke

bench-peers: bench-build ## compare with ns-3, and with the programs that ANABRANCH_HTSIM and ANABRANCH_PICOQUIC name
	$(PYTHON) bench/run.py --peers

bench-tun: ## measure the engine over TUN, compared with a bare copy, against this kernel
	$(BUILD_RELEASE) --bin anabranch-bench-tun
	target/release/anabranch-bench-tun
