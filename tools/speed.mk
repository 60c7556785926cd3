# Benchmarks. Included by the Makefile.

.PHONY: bench bench-smoke bench-peers bench-build bench-tun bench-proxy
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

# Debian's SOCKS proxy, and the library that opens its sockets with the kernel's Multipath TCP. Nothing is
# installed. Where they cannot be had, the benchmark skips them.
MICROSOCKS := $(TOOLS)/microsocks
$(MICROSOCKS):
	mkdir -p $@
	-cd $@ && apt-get download microsocks libmptcpwrap0 && for each in *.deb; do dpkg-deb -x $$each .; done

# The proxy of shadowsocks, whose two ends have the shape of client and relay. Where it cannot be had, the
# benchmark skips it.
SHADOWSOCKS := $(TOOLS)/shadowsocks
$(SHADOWSOCKS):
	mkdir -p $@
	-cargo install --quiet --locked --root $@ --no-default-features \
		--features local,server,multi-threaded,aead-cipher shadowsocks-rust@1.25.0

# Options of the load test: LOAD='--connections 1000 --minutes 5 --json docs/results/proxy.json'.
LOAD ?=

bench-proxy: $(MICROSOCKS) $(SHADOWSOCKS) ## load test of the proxy: 1,000 connections for an hour, throughput and latency, or LOAD='--minutes 5'
	$(BUILD_RELEASE) --bin anabranch-proxy --bin anabranch-bench-tun
	python3 bench/proxy.py $(LOAD)
