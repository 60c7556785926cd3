import json
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anabranch import _core
from anabranch.calibration import entry as calibration
from anabranch.calibration import fixed
from anabranch.errors import InputError
from anabranch.gallery import catalogue, registry
from anabranch.gallery.claims import Unnamed
from anabranch.gallery.claims import claim as unnamed
from anabranch.gallery.data import words_in
from anabranch.gallery.parameters import SHARED, with_shared_rows
from anabranch.gallery.registry import SOURCES
from anabranch.gallery.systems import SYSTEMS
from anabranch.results.bounds import Bound
from anabranch.results.folder import TABLES, Results
from anabranch.scenarios.scaling import scaled
from anabranch.sweeps.plan import Plan

pytestmark = pytest.mark.usefixtures("plain_pictures")

ENTRIES = catalogue.all_names()
ROOT = Path(__file__).parents[2]
FOLDER = Path(catalogue.__file__).parent / "entries"
SETTINGS = {"csws14-schedulers-applimited": 200, "rfc8382-sbd": 200}
"""Least number of settings in these designs. Others have 200 for each of two environments, so 400.

The paper of the first has 200.
"""

MEASURED_S = {"veerman12-unscaled": 10, "field-reports": 30, "sigcomm11-fattree": 8}
"""Entries that measure less than 100 s, because their seconds cost much CPU."""


@pytest.mark.parametrize("name", ENTRIES)
def test_cells_are_valid_and_told_apart(name: str) -> None:
    entry = catalogue.entry(name)
    for tier in (entry.quick, entry.full):
        cells = entry.cells(tier)
        assert len({cell.key for cell in cells}) == len(cells)
        assert len({tuple(cell.factors.items()) for cell in cells}) == len(cells)
        for cell in cells:
            assert re.fullmatch(r"[\w().-]+", cell.key), cell.key
            assert cell.task(1).scenario  # the scenario has been checked


@pytest.mark.parametrize("name", ENTRIES)
def test_tiers_are_as_large_as_promised(name: str) -> None:
    entry = catalogue.entry(name)
    assert entry.id == name
    settings = {cell.factors.get("point") for cell in entry.cells(entry.full)} - {None}
    if settings:
        # In a design, the sample consists of settings, not seeds.
        assert len(settings) >= SETTINGS.get(name, 400)
        assert entry.full.seeds >= 3
        return
    if entry.is_live:
        # The entry runs in real time.
        assert entry.full.seeds >= 5
        return
    assert entry.quick.seeds >= 5
    assert entry.full.seeds >= 20
    assert entry.full.measured_s >= MEASURED_S.get(name, 100)


@pytest.mark.parametrize("name", ENTRIES)
def test_claims_and_parameters_have_sources(name: str) -> None:
    entry = catalogue.entry(name)
    ids = [claim.id for claim in entry.claims]
    assert len(set(ids)) == len(ids)
    for claim in entry.claims:
        assert claim.statement
        assert claim.source
        assert claim.check
    assert all(parameter.source for parameter in entry.parameter_table())
    assert entry.references


@pytest.mark.parametrize("name", sorted(set(ENTRIES) - {catalogue.CALIBRATION}))
def test_no_claim_replaces_another_of_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue.entry(name)  # also loads the entries that this one imports
    made = 0

    def counted(*arguments: Any, **named: Any) -> Unnamed:
        nonlocal made
        made += 1
        return unnamed(*arguments, **named)

    monkeypatch.setattr("anabranch.gallery.claims.claim", counted)
    entry = runpy.run_path(str(FOLDER / f"{name.replace('-', '_')}.py"))["EXPERIMENT"]
    assert len(entry.named_claims) == made > 0


def test_a_headline_is_a_claim_of_its_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(registry.entry("nsdi12-fig7"), headline="E1.1")
    monkeypatch.setattr(registry, "entry", lambda _: row)
    with pytest.raises(InputError, match=r'headline = "E1\.1" is none of its claims'):
        catalogue.entry("nsdi12-fig7")


def test_entries_use_every_source_and_all_shared_data() -> None:
    cited = {source for name in ENTRIES for source in catalogue.entry(name).references}
    assert set(SOURCES.values()) <= cited
    rows = registry.registered().entries.values()
    assert {row.system for row in rows} - {""} == SYSTEMS.keys()
    assert {group for row in rows for group in row.uncertain} == registry.UNCERTAIN.keys()
    text = "\n".join(row.parameters for row in rows)
    assert {*re.findall("^<(.+)>$", text, re.MULTILINE)} == SHARED.keys()


@pytest.mark.parametrize("name", ENTRIES)
def test_every_caption_and_every_word_is_used(name: str) -> None:
    entry = catalogue.entry(name)
    row = entry.row
    used = {
        next(pattern for pattern in row.captions if fnmatchcase(panel.title, pattern))
        for panel in entry.panels
    }
    assert used == row.captions.keys()
    file = f"{name.replace('-', '_')}.toml:"
    own = [row for row in registry.registered().claims.values() if row.place.startswith(file)]
    assert own
    claims = "\n".join(f"{claim.statement} {claim.source} {claim.where}" for claim in own)
    text = "\n".join((row.notes, *row.captions.values(), row.parameters, claims))
    assert entry.words.keys() <= words_in(with_shared_rows(text))


def test_live_entries_have_all_words_of_their_notes() -> None:
    """Other entries write their notes in the smoke test of the gallery, which takes minutes."""
    draw, names = np.random.default_rng(1), []
    columns = ("goodput_mbps", "delay_mean_ms", "stall_ms", "share_wan", "late_p999_ms")
    for entry in map(catalogue.entry, ENTRIES):
        if not entry.is_live or entry.id == catalogue.CALIBRATION:
            continue
        runs = [
            {"cell": cell.key, "seed": seed, "late_max_ms": 1.0, "late_share": 0.0, **cell.factors}
            | {column: draw.uniform(0.1, 1) for column in columns}
            for cell in entry.cells(entry.quick)
            for seed in (1, 2, 3)
        ]
        tables: dict[str, Any] = {name: pl.DataFrame() for name in TABLES}
        tables["runs"] = pl.DataFrame(runs)
        names.append(entry.id)
        notes = entry.notes(Results(provenance={}, scenarios={}, **tables))
        assert len(notes) >= 3
        assert not any("–" in note for note in notes), "a quoted cell has no value"
    assert "linux-today" in names


@pytest.mark.parametrize("name", ENTRIES)
def test_all_conditions_of_a_group_have_the_same_bounds(name: str) -> None:
    for claim in catalogue.entry(name).claims:
        bounds: dict[str, set[Bound]] = {}
        for condition in claim.conditions:
            bounds.setdefault(condition.group or condition.quantity, set()).add(condition.bound)
        assert all(len(group) == 1 for group in bounds.values()), claim.id


@pytest.mark.parametrize("name", ENTRIES)
def test_one_thing_is_singular(name: str) -> None:
    for claim in catalogue.entry(name).claims:
        for condition in claim.conditions:
            assert not re.search(r"(?<![\d.,])1 (?!ms\b)[a-z]+s\b", condition.quantity), (
                condition.quantity
            )


def test_every_row_of_the_registry_and_every_bound_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: set[tuple[str, str]] = set()
    bound = registry.ClaimRow.bound

    def recorded(row: registry.ClaimRow, name: str) -> Bound:
        used.add((row.place, name))
        return bound(row, name)

    monkeypatch.setattr(registry.ClaimRow, "bound", recorded)
    for name in ENTRIES:
        catalogue.entry(name)
    calibration.entry_of(
        calibration.experiment_of(fixed.cases(), "", claims=calibration.FAILING_CLAIMS)
    )
    rows = registry.registered().claims.values()
    assert used == {(row.place, name) for row in rows for name in row.bounds}
    assert all(row.bounds for row in rows)


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_varies_uncertain_parameters_or_says_why_not(name: str) -> None:
    entry = catalogue.entry(name)
    assert bool(entry.uncertain_parameters) != bool(entry.row.not_varied_because)
    for words, pattern in entry.uncertain_parameters.items():
        changed = [
            cell
            for cell in entry.cells(entry.full)
            if cell.hosts is None
            and scaled(cell.task(1).scenario, pattern, 1.1) != cell.task(1).scenario
        ]
        assert changed, words


def test_the_pages_have_the_claims_of_their_entries() -> None:
    script = ROOT / "tools/generate/gallery_claims.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True)


@pytest.mark.parametrize("name", ENTRIES)
def test_every_entry_has_a_page(name: str) -> None:
    if name == catalogue.CALIBRATION:
        page, command = "calibration.md", "anabranch calibrate"
    else:
        page, command = f"gallery/{name}.md", f"anabranch reproduce {name.removesuffix('-live')}"
    assert command in (ROOT / "docs" / page).read_text(encoding="utf-8")


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(InputError, match='unknown entry "nsdi-fig7"; did you mean "nsdi12-fig7"'):
        catalogue.entry("nsdi-fig7")
    with pytest.raises(InputError, match='unknown entry "zzz" '):
        catalogue.entry("zzz")


@pytest.mark.parametrize("file", sorted((ROOT / "examples").glob("*.toml")), ids=lambda f: f.name)
def test_examples_are_valid(file: Path) -> None:
    if file.name.startswith("sweep_"):
        assert Plan.read(file).tasks()
    else:
        _core.Scenario.parse(file.read_text(encoding="utf-8"), str(file))


def kept_verdicts() -> dict[str, Any]:
    """The verdicts of the gallery's runs, by entry."""
    file = ROOT / "docs/gallery/verdicts.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def test_the_pages_of_the_gallery_have_the_kept_verdicts() -> None:
    script = ROOT / "tools/generate/gallery_verdicts.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True)


def test_verdicts_are_kept_of_every_claim_in_virtual_time() -> None:
    entries = [entry for name in catalogue.names() if not (entry := catalogue.entry(name)).is_live]
    claims = {entry.id: [claim.id for claim in entry.claims] for entry in entries}
    kept = {
        name: [claim["id"] for claim in each["record"]["claims"]]
        for name, each in kept_verdicts().items()
    }
    assert kept == claims


def test_full_runs_take_as_long_as_the_catalogue_says() -> None:
    for name, each in kept_verdicts().items():
        if on_two_cores := each["record"]["cpu_s"] / 2:
            assert catalogue.SECONDS[name][1] == pytest.approx(on_two_cores, rel=0.1, abs=1), name
