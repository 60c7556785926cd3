import dataclasses
from functools import partial
from pathlib import Path

import pytest
from matplotlib.axes import Axes

from anabranch import _core
from anabranch.errors import ScenarioError
from anabranch.gallery import catalogue, further, sensitivity
from anabranch.gallery.entry import Entry, Tier
from anabranch.gallery.metrics import GOODPUT
from anabranch.gallery.reproduce import execute, save_entry
from anabranch.results.bounds import at_least
from anabranch.results.claims import Claim, Condition, Verdict
from anabranch.results.folder import Results
from anabranch.scenarios.scaling import scaled

TIER = Tier("full", seeds=4, measured_s=3, warm_up_s=1)


def one_cell() -> _core.Scenario:
    entry = catalogue.entry("nsdi12-fig7")
    return entry.cells(TIER)[0].task(1).scenario


@pytest.mark.parametrize(
    ("pattern", "key", "factor", "expected"),
    [
        ("path.wifi*.rate", "rate", 1.1, "8.8Mbit/s"),
        ("path.wifi*.delay", "delay", 0.9, "9ms"),
        ("path.wifi*.limit", "limit", 0.9, "49packets"),
        ("path.wifi*.limit", "limit", 0.001, "1packets"),
        ("path.3g*.limit", "limit", 0.9, "54packets"),
        ("path.wifi*.jitter", "jitter", 1.1, "0s"),
    ],
)
def test_a_pattern_scales_quantities(pattern: str, key: str, factor: float, expected: str) -> None:
    wifi, _ = scaled(one_cell(), pattern, factor).settings["path"]
    assert wifi[key] == expected
    assert wifi["name"] == "wifi"


def test_both_directions_of_a_path_are_scaled() -> None:
    wifi, three_g = scaled(one_cell(), "path.wifi*.delay", 1.1).settings["path"]
    assert (wifi["delay"], wifi["reverse"]["delay"]) == ("11ms", "11ms")
    assert three_g["delay"] == "75ms"


def test_a_wrong_value_is_an_error() -> None:
    with pytest.raises(ScenarioError, match="delay"):
        scaled(one_cell(), "path.wifi*.delay", 1e12)


def _draw(_: Results, axes: Axes) -> None:
    axes.plot([0, 1], [0, 1])


def short_entry() -> Entry:
    """Two of the cells of nsdi12-fig7 are read by the only claim."""
    entry = catalogue.entry("nsdi12-fig7")
    cells = entry.cells(TIER)[:3]
    factors = [dict(cell.factors) for cell in cells[:2]]
    condition = Condition(
        "3G / WiFi", GOODPUT.ratio(factors[1], factors[0]), at_least(0.05, "", "")
    )
    return dataclasses.replace(
        entry,
        full=TIER,
        design=lambda _: cells,
        claims=(Claim("c", "s", "o", (condition,)),),
        drawings={"panel": _draw},
        row=dataclasses.replace(entry.row, captions={"*": "caption"}, notes=""),
        measured_words=lambda _: {},
        uncertain_parameters={"WiFi's rate": "path.wifi*.rate", "3G's delay": "path.3g*.delay"},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bands")


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return execute(short_entry(), TIER, folder)


def test_only_the_cells_that_claims_read_are_varied(folder: Path, results: Results) -> None:
    entry = short_entry()
    read = {cell.key for cell in entry.cells(TIER)[:2]}
    (condition,) = entry.claims[0].conditions
    assert further.cells_read([condition.measure], results) == read
    variants = sensitivity.variants(results, folder)
    assert list(variants) == [
        "WiFi's rate −10 %",
        "WiFi's rate +10 %",
        "3G's delay −10 %",
        "3G's delay +10 %",
    ]
    for variant in variants.values():
        assert set(variant.runs["cell"]) == read
        assert variant.runs.height == len(read) * len(sensitivity.SEEDS)


def test_a_variant_measures_what_the_claim_measures(folder: Path, results: Results) -> None:
    measure = short_entry().claims[0].conditions[0].measure
    variants = sensitivity.variants(results, folder)
    slower = measure(variants["WiFi's rate −10 %"]).value
    faster = measure(variants["WiFi's rate +10 %"]).value
    assert faster < measure(results).value < slower


def test_the_report_shows_bands(folder: Path, results: Results) -> None:
    (judgement,) = save_entry(short_entry(), results, folder)
    assert judgement.verdict is Verdict.REPRODUCED
    assert ", band " in judgement.measured
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert 'class="strip"' in page
    assert "if WiFi&#39;s rate and 3G&#39;s delay change by ± 10 %" in page


def test_the_variants_of_other_results_do_not_count(folder: Path, results: Results) -> None:
    runs = [{**run, "digest": f"{n:032x}"} for n, run in enumerate(results.provenance["runs"])]
    others = dataclasses.replace(results, provenance={**results.provenance, "runs": runs})
    assert sensitivity.variants(others, folder) == {}


def test_an_entry_without_uncertain_parameters_has_no_bands(tmp_path: Path) -> None:
    entry = short_entry()
    row = dataclasses.replace(entry.row, not_varied_because="it is a test")
    entry = dataclasses.replace(entry, uncertain_parameters={}, row=row)
    results = execute(entry, TIER, tmp_path)
    assert sensitivity.variants(results, tmp_path) == {}
    save = partial(save_entry, entry, results, tmp_path)
    assert ", band " not in save()[0].measured
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "This experiment has no bands: it is a test." in page
