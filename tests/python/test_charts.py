"""Charts: a panel's description for the browser contains everything that the panel draws."""

import contextlib
import json
import math
import shutil
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
from matplotlib.text import Text

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
    figures.estimates(axes, [1, 2], [estimate(5), estimate(7)], "a", Style(RED, "s-"))
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
    assert "Goodput by rate and scheduler" in titles
    assert "Goodput over time; scheduler ecf" in titles
    assert_all_is_translated(panels, results)
    drawn = {panel.title: axes_of(panel, results) for panel in panels}
    by_two = drawn["Goodput by rate and scheduler"]
    assert by_two.get_legend_handles_labels()[1] == ["min_rtt", "ecf"], "a line for each name"
    assert [each.get_text() for each in by_two.get_xticklabels()] == ["4Mbit/s", "8Mbit/s"]
    for container in by_two.containers:
        line, _, bars = container.lines
        assert list(line.get_xdata()) == [4e6, 8e6], "where the rates are"
        assert len(bars) == 1, "with intervals"
    cells = drawn["Goodput over scheduler"].lines[0]
    assert sorted(cells.get_xdata()) == [0, 0, 1, 1], "dots stand at their level"
    times = drawn["Goodput over time; scheduler ecf"].lines[0].get_xdata()
    assert len(times) <= 11


def axes_of(panel: Panel, results: Results) -> Any:
    axes = Figure().subplots()
    panel.draw(results, axes)
    return axes


def test_a_sweep_over_names_has_bars_with_intervals(tmp_path: Path) -> None:
    plan = """
scenario = "base.toml"
seeds = 2

[factors]
"connection.main.scheduler" = ["min_rtt", "ecf"]
"connection.main.congestion_control" = ["lia", "olia"]
"""
    results = sweep(write_plan(tmp_path, plan), tmp_path / "out")
    panels = {panel.title: panel for panel in sweep_panels.panels(results)}
    axes = axes_of(panels["Goodput by scheduler and congestion_control"], results)
    assert axes.get_legend_handles_labels()[1] == ["lia", "olia"]
    assert [len(each.patches) for each in axes.containers if hasattr(each, "patches")] == [2, 2]
    assert_all_is_translated(tuple(panels.values()), results)


def test_a_sweep_over_one_factor_has_intervals_over_seeds(tmp_path: Path) -> None:
    plan = """
scenario = "base.toml"
seeds = 3

[factors]
"path.wifi.rate" = ["2Mbit/s", "16Mbit/s", "4Mbit/s"]
"""
    results = sweep(write_plan(tmp_path, plan), tmp_path / "out")
    panels = sweep_panels.panels(results)
    assert panels[0].caption == "Medians over seeds, with 95 % intervals."
    axes = axes_of(panels[0], results)
    (container,) = axes.containers
    assert list(container.lines[0].get_xdata()) == [2e6, 4e6, 16e6]
    assert axes.get_xscale() == "log"
    assert [each.get_text() for each in axes.get_xticklabels()] == [
        "2Mbit/s",
        "4Mbit/s",
        "16Mbit/s",
    ]


def test_rates_over_time_are_means_over_a_second() -> None:
    times = np.arange(1, 201) * 100_000_000  # 20 s, a sample in each tenth
    bursts = np.where(np.arange(200) % 10 == 9, 125_000, 0)  # 1 Mbit at the end of each second
    samples = pl.DataFrame({"time_ns": times, "bytes": np.cumsum(bursts)})
    seconds, rates = single_run.rate_mbps(samples, "bytes")
    assert seconds[1:].tolist() == pytest.approx(np.arange(1.5, 20))
    assert rates[1:].tolist() == pytest.approx([1.0] * 19)
    assert single_run.mean_words(samples) == "means over 1 s"
    assert single_run.mean_words(samples.head(20)) == "means over 0.19 s"
    assert [each.size for each in single_run.rate_mbps(samples.head(0), "bytes")] == [0, 0]


def test_long_titles_and_legends_do_not_overlap(away: tuple[Results, Path]) -> None:
    results, _ = away

    def draw(_: Results, axes: Axes) -> None:
        for number in range(12):
            axes.plot([0, number], label=f"a long name of curve {number}")

    panel = Panel("A title of a drawing " * 6, "", draw)
    figure = pictures.compose([panel] * 2, results, "A long title of a figure " * 8, 3)
    figure.canvas.draw()
    header, _ = figure.subfigs
    titles = [text for text in figure.findobj(Text) if "drawing" in text.get_text()]
    extents = [each.get_window_extent() for each in (header.texts[0], *titles)]
    assert len(extents) == 3
    extents.append(header.legends[0].get_window_extent().padded(-8))  # without its margin
    width = figure.bbox.width
    assert all(box.x0 >= 0 and box.x1 <= width for box in extents)
    for index, box in enumerate(extents):
        assert not any(box.overlaps(other) for other in extents[index + 1 :]), extents


def test_a_legend_is_below_names_of_several_lines(away: tuple[Results, Path]) -> None:
    results, _ = away

    def draw(_: Results, axes: Axes) -> None:
        axes.plot([0, 1], label="curve")
        axes.set_xticks([0, 1], ["one\ntwo\nthree", "one"])
        axes.set_xlabel("factor")

    figure = pictures.alone(Panel("title", "", draw), results)
    figure.canvas.draw()
    (axes,) = figure.axes
    legend = axes.get_legend()
    assert legend is not None
    assert not legend.get_window_extent().overlaps(axes.xaxis.label.get_window_extent())


def test_a_legend_is_below_rotated_names(away: tuple[Results, Path]) -> None:
    results, _ = away

    def draw(_: Results, axes: Axes) -> None:
        axes.plot([0, 1], label="curve")
        axes.set_xticks([0, 0.5, 1], ["a rather long name"] * 3, rotation=60, ha="right")

    figure = pictures.alone(Panel("title", "", draw), results)
    figure.draw_without_rendering()  # as savefig does
    figure.canvas.draw()
    (axes,) = figure.axes
    legend = axes.get_legend()
    assert legend is not None
    names = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert not any(legend.get_window_extent().overlaps(name) for name in names)
    assert legend.get_window_extent().ymin >= 0


def test_a_figure_is_a_picture_and_a_file_of_each_form(
    away: tuple[Results, Path], tmp_path: Path
) -> None:
    results, _ = away
    figure = pictures.compose(single_run.panels(results), results, "run", 3)
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert set(pictures.files_of("figure", figure)) == {"figure.svg", "figure.png", "figure.pdf"}
    assert pictures.rendered(figure, "pdf").startswith(b"%PDF-")
    assert b"CreationDate" not in pictures.rendered(figure, "pdf")
    figure.savefig(tmp_path / "paper.pdf")
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF-")
    with pytest.raises(InputError, match=r"x\.bmp: a figure's name ends in \.pdf, \.pgf, \.svg or"):
        pictures.form_of(tmp_path / "x.bmp")
    if shutil.which("xelatex"):
        assert b"\\begin{pgfpicture}" in pictures.rendered(figure, "pgf")
    else:
        with pytest.raises(InputError, match="a PGF figure needs LaTeX"):
            pictures.rendered(figure, "pgf")


@pytest.mark.slow
@pytest.mark.parametrize("name", catalogue.all_names())
def test_all_of_an_entry_is_translated(name: str, tmp_path: Path) -> None:
    entry = catalogue.entry(name)
    results = made(entry) or run_in_virtual_time(entry, tmp_path)
    assert_all_is_translated(entry.panels, results)
    results.save(tmp_path)
    reproduce.save_entry(entry, results, tmp_path)


def made(entry: Entry) -> Results | None:
    """Results of an earlier `make gallery` or `make gallery-smoke`: drawing is faster than running.

    `None` if there are none, or if the entry has got other cells since.
    """
    cells = {cell.key for cell in entry.cells(entry.quick)}
    for folder in ("results", "results/one-seed"):
        with contextlib.suppress(InputError):
            results = load(Path(__file__).parents[2] / folder / entry.id)
            if set(results.runs["cell"].unique()) == cells:
                return results
    return None


def run_in_virtual_time(entry: Entry, folder: Path) -> Results:
    """Results of a short run of an entry, to be drawn."""
    cells = entry.cells
    in_virtual_time = replace(
        entry, design=lambda tier: [replace(cell, hosts=None) for cell in cells(tier)]
    )
    tier = replace(entry.quick, seeds=1, measured_s=min(entry.quick.measured_s, 100))
    results = reproduce.execute(in_virtual_time, tier, folder)
    if entry.is_live:
        late = (pl.lit(0.1).alias(f"late_{name}") for name in ("p999_ms", "max_ms", "share"))
        results = replace(results, runs=results.runs.with_columns(*late))
    return results
