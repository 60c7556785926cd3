"""Pictures: panels drawn and composed into figures, and figures rendered as files."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.figure import Figure

from anabranch.reports.figures import GREY, Panel, nothing_to_draw
from anabranch.results.folder import NothingMeasured, Results
from anabranch.results.provenance import digest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RC: Any = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "font.size": 9,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": True,
    "legend.framealpha": 0.85,
    "legend.edgecolor": "none",
    "lines.linewidth": 1.6,
    "savefig.facecolor": "white",
    "svg.hashsalt": "anabranch",
}

_PANEL_WIDTH, _PANEL_HEIGHT = 4.7, 3.5  # inches
_HEADER_HEIGHT = 0.65
_TITLE_WIDTH = 50  # letters


def compose(panels: Sequence[Panel], results: Results, title: str, columns: int) -> Figure:
    """All panels in one figure, with a title and the source of the numbers.

    Panels whose curves all occur in the first panel share one legend at the top.
    """
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context(RC):
        heights = (_HEADER_HEIGHT, _PANEL_HEIGHT * rows)
        figure = Figure(figsize=(_PANEL_WIDTH * columns, sum(heights)), layout="constrained")
        strips: Any = figure.subfigures(2, 1, height_ratios=heights)
        header, body = strips
        grid = list(body.subplots(rows, columns, squeeze=False).flat)
        for panel, axes in zip(panels, grid, strict=False):
            _draw(panel, results, axes)
        for unused in grid[len(panels) :]:
            unused.set_axis_off()
        shared = _curves(grid[0])
        for axes in grid:
            if not _curves(axes).keys() <= shared.keys():
                _legend_below(axes)
        header.text(0.008, 0.97, title, fontsize=12, fontweight="bold", va="top")
        if shared:
            header.legend(
                shared.values(), shared.keys(), loc="lower left", ncols=len(shared), fontsize=9
            )
        body.supxlabel(footer(results), fontsize=7, color=GREY, x=0.008, ha="left")
    return figure


def alone(panel: Panel, results: Results) -> Figure:
    """One panel as a separate figure for a report, narrow enough for a phone."""
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(4.9, 4.1), layout="constrained")
        axes = figure.subplots()
        _draw(panel, results, axes)
        _legend_below(axes)
    return figure


def thumbnail(panel: Panel, results: Results) -> Figure:
    """One panel for an index: small, with few words in large type."""
    with matplotlib.rc_context({**RC, "font.size": 13, "lines.linewidth": 2.2}):
        figure = Figure(figsize=(5.2, 4.0), layout="constrained")
        axes = figure.subplots()
        _draw(panel, results, axes)
        axes.set_title("")
        for text in axes.texts:
            text.set_fontsize(max(10.0, text.get_fontsize()))
        curves = _curves(axes)
        if curves:
            columns = 1 if max(map(len, curves)) > 18 else 2
            figure.legend(
                curves.values(), curves.keys(), loc="outside lower left", ncols=columns,
                fontsize=12, handlelength=1.8, labelspacing=0.25, columnspacing=1.2,
            )  # fmt: skip
    return figure


def _curves(axes: Axes) -> dict[str, Any]:
    """The legend handles of the curves on some axes, by label."""
    handles, labels = axes.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


def _legend_below(axes: Axes) -> None:
    curves = _curves(axes)
    if curves:
        axes.legend(
            curves.values(), curves.keys(), loc="upper center", bbox_to_anchor=(0.5, -0.17),
            ncols=2, handlelength=2.4, columnspacing=1.2,
        )  # fmt: skip


def rendered(figure: Figure, form: str) -> bytes:
    """The figure as the bytes of a file: ``"svg"`` or ``"png"``.

    An SVG follows its reader's choice of light or dark mode.
    """
    data = io.BytesIO()
    metadata = {"Date": None} if form == "svg" else {}
    with matplotlib.rc_context(RC):
        figure.savefig(data, format=form, dpi=150, metadata=metadata)
    if form == "png":
        return data.getvalue()
    return data.getvalue().replace(b"</style>", _dark().encode() + b"</style>", 1)


@cache
def _dark() -> str:
    return files("anabranch.reports").joinpath("assets", "dark.css").read_text(encoding="utf-8")


def footer(results: Results) -> str:
    """The source of a figure's numbers, in one line."""
    about = results.provenance
    parts = [
        f"anabranch {about['version']}",
        f"commit {about['commit']}" if about.get("commit") else "",
        about.get("entry") or str(about.get("scenario", "")),
        _seed_words(about["seeds"]),
        _time_words(about["duration"], about["warm_up"]),
        " ".join(digest(about)),
    ]
    return " · ".join(part for part in parts if part)


def _time_words(duration: str, warm_up: str) -> str:
    return f"{duration} each" + ("" if warm_up == "0s" else f", first {warm_up} excluded")


def _seed_words(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]}–{seeds[-1]}"


def _draw(panel: Panel, results: Results, axes: Axes) -> None:
    try:
        panel.draw(results, axes)
    except NothingMeasured as nothing:
        nothing_to_draw(axes, str(nothing))
    axes.set_title(textwrap.fill(panel.title, _TITLE_WIDTH))
