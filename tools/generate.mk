# Generated pages, pictures and classes. Included by the Makefile.

.PHONY: policy-pictures
policy-pictures: $(VENV)/.installed ## draw the pictures of docs/policies and the README from runs
	$(BIN)/python docs/policies/draw.py
	$(BIN)/python docs/site/picture.py

# MkDocs runs the notebooks, draws the pictures that git ignores, and fails on a broken link.
.PHONY: docs
docs: $(VENV)/.installed-docs ## build the documentation site into target/docs
	DISABLE_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --quiet
	RUSTDOCFLAGS='-D warnings' cargo doc --quiet --workspace --no-deps
	rm -rf target/docs/rust && cp -r target/doc target/docs/rust
	@if [ -x $(TEST_BIN)/pytest ]; then \
		ANABRANCH_DOCS=target/docs $(TEST_BIN)/pytest --quiet tests/python/test_documentation_in_a_browser.py; fi
	@echo "documentation: target/docs/index.html"

.PHONY: transcripts
transcripts: $(VENV)/.installed ## run the tutorial's commands, and write their outputs into it
	$(BIN)/python docs/site/transcripts.py

$(VENV)/.installed-docs: $(VENV)/.installed pyproject.toml
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' | \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement /dev/stdin
	@touch $@

.PHONY: conformance
conformance: $(VENV)/.installed ## play the packet scripts against engine and kernel, and write their table
	$(BIN)/python tools/generate/conformance.py

.PHONY: scenario-classes
scenario-classes: $(TEST_VENV)/.installed ## generate the Python classes of scenarios from their JSON Schema
	$(TEST_BIN)/python tools/generate/scenario_classes.py

.PHONY: claims
claims: $(TEST_VENV)/.installed ## write the tables of claims and parameters into the gallery's pages
	$(TEST_BIN)/python tools/generate/gallery_claims.py

# The verdicts of entries that are in the folder FROM replace the kept ones.
.PHONY: verdicts
verdicts: $(TEST_VENV)/.installed ## write the gallery's verdicts into the docs, or FROM=site/ takes those of new runs
	$(TEST_BIN)/python tools/generate/gallery_verdicts.py $(if $(FROM),--from $(FROM))

.PHONY: results
results: ## write the pages of docs/results from their data
	$(PYTHON) tools/generate/results.py
