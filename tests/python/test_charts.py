"""Charts: a panel's description for the browser contains everything that the panel draws."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import anabranch
from anabranch.analyze import panels as capture_panels
from anabranch.analyze.analysis import analyze
from anabranch.batches.single import single
from anabranch.errors import InputError
from anabranch.gallery import catalogue, reproduce
from anabranch.gallery.entry import Entry
from anabranch.reports import charts, figures, outages, pictures, single_run
from anabranch.reports.figures import BLUE, GREEN, RED, Panel, Style
from anabranch.reports.page import drawing, linked
from anabranch.results.estimates import Estimate
from anabranch.results.folder import Results, load
from anabranch.sweeps import panels as sweep_panels
from anabranch.sweeps.sweep import sweep
from sweeping import write_plan


@pytest.fixture
def axes() -> Iterator[Axes]:
    with mpl.rc_context(pictures.RC):
        yield Figure().subplots()


def translated(axes: Axes) -> dict[str, Any]:
    chart = charts.translate(axes)
    assert chart is not None
    assert json.loads(charts.as_json([chart])) == [chart]
    return chart


def estimate(value: float) -> Estimate:
    return Estimate(value, value - 1, value + 2, 5)


def test_a_line_keeps_its_points_colour_dashes_and_name(axes: Axes) -> None:
    axes.plot([1, 2, 3], [10, math.nan, 30], label="a", color=BLUE, linestyle=(0, (4, 2)))
    (mark,) = translated(axes)["marks"]
    assert (mark["kind"], mark["name"], mark["colour"]) == ("line", "a", BLUE.lower())
    assert (mark["x"], mark["y"]) == ([1, 2, 3], [10, None, 30])
    assert mark["dash"] == [round(4 * mark["width"], 2), round(2 * mark["width"], 2)]


def test_steps_and_stairs_are_steps(axes: Axes) -> None:
    axes.step([1, 2], [5, 6], where="post")
    axes.stairs([5, 6], [0, 10, 20])
    stairs, steps = translated(axes)["marks"]  # patches are behind lines
    assert steps["step"] == stairs["step"] == "steps-post"
    assert (stairs["x"], stairs["y"]) == ([0, 10, 20], [5, 6, 0])


def test_estimates_keep_their_intervals(axes: Axes) -> None:
    figures.estimates(axes, [1, 2], [estimate(5), estimate(7)], "a", Style(RED, "-", "s"))
    (mark,) = translated(axes)["marks"]
    assert (mark["low"], mark["y"], mark["high"]) == ([4, 6], [5, 7], [7, 9])
    assert mark["marker"] == "s"


def test_bars_belong_to_the_legend_entry_of_their_colour(axes: Axes) -> None:
    bars: dict[str, tuple[list[Estimate | None], Style]] = {
        "a": ([estimate(5), None], Style(BLUE)),
        "b": ([estimate(1), estimate(2)], Style(RED)),
    }
    figures.grouped_bars(axes, ["one", "two"], bars)
    chart = translated(axes)
    assert [(mark["name"], mark["y1"], mark["low"]) for mark in chart["marks"]] == [
        ("a", [5], [4]),
        ("b", [1, 2], [0, 1]),
    ]
    assert [entry["width"] for entry in chart["legend"]] == [8, 8]
    assert chart["x"]["ticks"] == [[0, "one"], [1, "two"]]


def test_areas_spans_rules_and_words_keep_their_places(axes: Axes) -> None:
    axes.fill_between([0, 1], 0, [2, 3], color=GREEN, label="area")
    axes.axvspan(4, 5, color=RED, label="away")
    figures.reference_line(axes, 7, "limit")
    axes.axvline(3)
    axes.text(1, 2, "here")
    marks = {mark["kind"]: mark for mark in translated(axes)["marks"]}
    assert set(zip(marks["area"]["x"], marks["area"]["y"], strict=True)) >= {(0, 2), (1, 3), (1, 0)}
    assert (marks["span"]["axis"], marks["span"]["from"], marks["span"]["to"]) == ("x", 4, 5)
    rules = [mark for mark in translated(axes)["marks"] if mark["kind"] == "rule"]
    assert {(rule["axis"], rule["at"]) for rule in rules} == {("y", 7), ("x", 3)}
    words = {mark["text"]: mark for mark in translated(axes)["marks"] if mark["kind"] == "text"}
    assert (words["here"]["x"], words["here"]["data"]) == (1, [True, True])
    assert words["limit"]["data"] == [False, True]


def test_a_heat_map_keeps_its_values(axes: Axes) -> None:
    figures.heat_map(axes, ["a", "b"], ["c"], np.array([[1.0, np.nan]]), "Mbit/s")
    chart = translated(axes)
    cells = next(mark for mark in chart["marks"] if mark["kind"] == "bars")
    assert (cells["x0"], cells["values"]) == ([-0.5, 0.5], [1, None])
    assert len(cells["colours"]) == 2
    assert not chart["grid"]


def test_logarithmic_scales_and_limits_are_kept(axes: Axes) -> None:
    axes.plot([1, 1000], [0, 5])
    figures.plain_log_x(axes)
    axes.set(xlabel="buffer (kB)", xlim=(1, 1000), ylim=(0, 6))
    chart = translated(axes)
    assert chart["x"] == {"label": "buffer (kB)", "from": 1, "to": 1000, "log": True}
    assert (chart["y"]["log"], chart["y"]["from"], chart["y"]["to"]) == (False, 0, 6)


def test_what_is_not_known_is_refused_and_its_picture_remains(axes: Axes) -> None:
    axes.quiver([0], [0], [1], [1])  # polygons, but not what `fill_between` draws
    with pytest.raises(charts.NotTranslated, match="Quiver"):
        charts.translate(axes)
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    shown = drawing("title", "caption", figure)
    assert shown.charts == "[]"
    assert shown.picture.startswith("data:image/svg+xml;base64,")


def test_a_sentence_in_place_of_a_drawing_is_no_chart(axes: Axes) -> None:
    figures.nothing_to_draw(axes, "nothing")
    assert charts.translate(axes) is None


def test_sources_lead_to_their_references_and_rfcs_to_their_publisher() -> None:
    references = ("A. Author: Title. NSDI 2012.", "B: Title. CS244, Stanford, 2015.")
    text = linked("NSDI'12, CS244'15, CoNEXT'13, RFC 8684 §3.3.1; E1.1-a <", references, ["E1.1-a"])
    assert '<a href="#reference-1">NSDI&#39;12</a>' in text
    assert '<a href="#reference-2">CS244&#39;15</a>' in text
    assert "CoNEXT&#39;13, <a" in text
    assert "https://www.rfc-editor.org/rfc/rfc8684#section-3.3.1" in text
    assert '<a href="#E1.1-a">E1.1-a</a> &lt;' in text


# ---- reports ---------------------------------------------------------------------------------


def assert_all_is_translated(panels: tuple[Panel, ...], results: Results) -> None:
    assert panels
    for panel in panels:
        (axes,) = pictures.alone(panel, results).axes
        chart = charts.translate(axes)
        assert chart is None or chart["marks"], panel.title
        words = {text.get_text() for text in axes.texts} - {""}
        drawn = [] if chart is None else chart["marks"]
        assert chart is None or words == {mark["text"] for mark in drawn if mark["kind"] == "text"}


AWAY = anabranch.NetworkPath(
    name="wifi",
    rate="8Mbit/s",
    delay="10ms",
    limit="54packets",
    changes=(
        anabranch.Change(at="2s", state="down"),
        anabranch.Change(at="3s", state="up", rate="4Mbit/s"),
    ),
)


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Path]:
    lte = anabranch.NetworkPath(name="lte", rate="4Mbit/s", delay="30ms", limit="100ms")
    scenario = anabranch.Scenario(
        name="away",
        duration="5s",
        warm_up="1s",
        paths=(AWAY, lte),
        connections=(anabranch.Connection(name="main", workload=anabranch.Bulk()),),
    )
    capture = tmp_path_factory.mktemp("away") / "away.pcapng"
    run = anabranch.run(scenario, seed=1, pcap=str(capture))
    return single(run, "away", 0.1), capture


def test_outages_and_changes_of_paths_are_known(away: tuple[Results, Path]) -> None:
    results, _ = away
    (axes,) = pictures.alone(single_run.panels(results)[0], results).axes
    marks = translated(axes)["marks"]
    (span,) = [mark for mark in marks if mark["kind"] == "span"]
    assert (span["from"], span["to"], span["name"]) == (2, 3, "wifi down")
    (rule,) = [mark for mark in marks if mark["kind"] == "rule"]
    assert rule["at"] == 3
    assert "wifi: rate 4Mbit/s" in [mark["text"] for mark in marks if mark["kind"] == "text"]


def test_the_finding_of_a_run_compares_with_what_the_paths_could_carry(
    away: tuple[Results, Path],
) -> None:
    results, _ = away
    delivered, paths = single_run.finding(results)
    # From 1 to 5 s, wifi: 8 Mbit/s for 1 s, nothing for 1 s, 4 Mbit/s for 2 s; lte: 4 Mbit/s.
    assert "of the 8.00 Mbit/s that its paths could carry" in delivered
    assert paths.startswith("Its bytes came over wifi (")


def test_a_path_that_stays_down_is_down_until_the_end() -> None:
    change = {"at": "2s", "state": "down"}
    scenario = {"duration": "5s", "path": [{"name": "wifi", "change": [change]}]}
    assert list(outages.outages(scenario)) == [outages.Outage("wifi", "down", 2, 5)]


def test_all_of_a_run_is_translated(away: tuple[Results, Path]) -> None:
    results, _ = away
    assert_all_is_translated(single_run.panels(results), results)


def test_all_of_a_capture_is_translated(away: tuple[Results, Path]) -> None:
    _, capture = away
    analysis = analyze(capture)
    figure = capture_panels.draw(capture_panels.flow(analysis, 0, "in"), "footer")
    drawn = [charts.translate(axes) for axes in figure.axes]
    assert len(drawn) == 4
    assert all(drawn)


def test_a_sweep_is_drawn_by_two_factors_and_over_time(tmp_path: Path) -> None:
    plan = """
scenario = "base.toml"
seeds = 2
keep = ["samples"]

[factors]
"connection.main.scheduler" = ["min_rtt", "ecf"]
"path.wifi.rate" = ["4Mbit/s", "8Mbit/s"]
"""
    results = sweep(write_plan(tmp_path, plan), tmp_path / "out")
    panels = sweep_panels.panels(results)
    titles = [panel.title for panel in panels]
    assert "Goodput by scheduler and rate" in titles
    assert "Goodput over time; scheduler ecf" in titles
    assert_all_is_translated(panels, results)


@pytest.mark.slow
@pytest.mark.parametrize("name", catalogue.all_names())
def test_all_of_an_entry_is_translated(name: str, tmp_path: Path) -> None:
    entry = catalogue.entry(name)
    results = made(entry) or run_in_virtual_time(entry, tmp_path)
    assert_all_is_translated(entry.panels, results)
    results.save(tmp_path)
    reproduce.save_entry(entry, results, tmp_path)
    assert entry.headline in ("", *(claim.id for claim in entry.claims))


def made(entry: Entry) -> Results | None:
    """Results of an earlier `make gallery`, which are faster to draw than to run.

    `None` if the entry has got other cells since.
    """
    try:
        results = load(Path(__file__).parents[2] / "results" / entry.id)
    except InputError:
        return None
    cells = {cell.key for cell in entry.cells(entry.quick)}
    return results if set(results.runs["cell"].unique()) == cells else None


def run_in_virtual_time(entry: Entry, folder: Path) -> Results:
    """Results of a short run of an entry, to be drawn."""
    cells = entry.cells
    in_virtual_time = replace(
        entry, cells=lambda tier: [replace(cell, hosts=None) for cell in cells(tier)]
    )
    tier = replace(entry.quick, seeds=1, measured_s=min(entry.quick.measured_s, 100))
    results = reproduce.execute(in_virtual_time, tier, folder)
    if entry.is_live:
        late = (pl.lit(0.1).alias(f"late_{name}") for name in ("p999_ms", "max_ms", "share"))
        results = replace(results, runs=results.runs.with_columns(*late))
    return results
