# Runs of the gallery, and their digests. Included by the Makefile.

.PHONY: gallery gallery-smoke gallery-full
gallery: $(VENV)/.installed ## reproduce every entry in its quick tier; site in results/
	$(BIN)/anabranch gallery --out results

# The other entries run on kernels in real time, for minutes in which the processor is idle.
VIRTUAL_ENTRIES := from anabranch.gallery import catalogue; \
	print(*(name for name in catalogue.names() if not catalogue.entry(name).is_live))

# Drawing a report uses one processor, so two entries run at a time.
gallery-smoke: $(VENV)/.installed ## reproduce every entry in virtual time with one seed
	names=$$($(BIN)/python -c '$(VIRTUAL_ENTRIES)') && printf '%s\n' $$names | \
		xargs -P 2 -I{} $(BIN)/anabranch reproduce {} --seeds 1 --out $(ONE_SEED)/{}

ONE_SEED := results/one-seed

gallery-full: $(VENV)/.installed ## reproduce every entry at full scale; site in site/
	$(BIN)/anabranch gallery --full --out site

# RESULTS=results takes the digests of runs that this build finished in the folder.
.PHONY: digests
digests: $(VENV)/.installed ## write the digests of gallery, benchmark and soak, or CHECK=1 to compare
	$(BUILD_RELEASE) --bin anabranch-bench --bin anabranch-soak
	$(BIN)/python tools/check/digests.py $(if $(CHECK),--check) $(if $(RESULTS),--results $(RESULTS))

.PHONY: digests-smoke
digests-smoke: gallery-smoke ## compare the digests, with the runs of gallery-smoke
	$(MAKE) digests CHECK=1 RESULTS=$(ONE_SEED)
