"""Pictures: panels drawn and composed into figures, and figures rendered as files."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

from anabranch.errors import InputError
from anabranch.reports.figures import GREY, Panel, nothing_to_draw
from anabranch.results.folder import NothingMeasured, Results
from anabranch.results.provenance import digest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

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

COLUMNS = 3
"""Number of drawings side by side."""
FORMS = ("pdf", "pgf", "svg", "png")
"""The forms of a figure's file."""
_NO_DATE: Any = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""Metadata with which equal figures are equal files."""
_PANEL_WIDTH, _PANEL_HEIGHT = 4.7, 3.5  # inches
_HEADER_HEIGHT = 0.65
_TITLE_WIDTH = 50  # letters
_LINE_HEIGHT = 0.06  # of a drawing
_LETTER = 0.6  # width of a letter, in sizes of its type
_TITLE_LETTER, _TITLE_LINE = 0.125, 0.2  # inches
_LEGEND_LETTER, _LEGEND_HANDLE, _LEGEND_LINE = 0.075, 0.7, 0.22  # inches
_FOOTER_LETTER = 0.058  # inches


class NotebookFigure(Figure):
    """A figure that a notebook shows as a picture. ``savefig`` writes it by the file's suffix."""

    def _repr_png_(self) -> bytes:
        return rendered(self, "png")


def compose(panels: Sequence[Panel], results: Results, title: str, columns: int) -> Figure:
    """All panels in one figure, with a title and the source of the numbers.

    Panels whose curves all occur in the first panel share one legend at the top.
    """
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context(RC):
        width = _PANEL_WIDTH * columns
        heading = textwrap.fill(title, int(width / _TITLE_LETTER))
        # The legend is known once the first panel is drawn, and decides how high the header is.
        scratch = Figure().subplots()
        _draw(panels[0], results, scratch)
        legend_columns, legend_rows = _legend_layout([*_curves(scratch)], width)
        more = heading.count("\n") * _TITLE_LINE + (legend_rows - 1) * _LEGEND_LINE
        heights = (_HEADER_HEIGHT + more, _PANEL_HEIGHT * rows)
        figure = NotebookFigure(figsize=(width, sum(heights)), layout="constrained")
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
        header.text(0.008, 0.97, heading, fontsize=12, fontweight="bold", va="top")
        if shared:
            header.legend(
                shared.values(), shared.keys(), loc="lower left", ncols=legend_columns, fontsize=9
            )
        source = textwrap.fill(footer(results), int(width / _FOOTER_LETTER))
        body.supxlabel(source, fontsize=7, color=GREY, x=0.008, ha="left")
    return figure


def _legend_layout(labels: Sequence[str], width: float) -> tuple[int, int]:
    """Columns and rows of a legend that is not wider than `width` inches."""
    column = _LEGEND_HANDLE + _LEGEND_LETTER * max(map(len, labels), default=0)
    columns = max(1, min(len(labels), int(width / column)))
    return columns, max(1, -(-len(labels) // columns))


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
        # Below the names of the ticks, which may have several lines, or be rotated.
        names = axes.get_xticklabels()
        lines = max((name.get_text().count("\n") for name in names), default=0)
        drop = ScaledTranslation(0, -max(map(_rise, names), default=0), axes.figure.dpi_scale_trans)
        axes.legend(
            curves.values(), curves.keys(), loc="upper center",
            bbox_to_anchor=(0.5, -0.17 - _LINE_HEIGHT * lines),
            bbox_transform=axes.transAxes + drop,
            ncols=2, handlelength=2.4, columnspacing=1.2,
        )  # fmt: skip


def _rise(name: Text) -> float:
    """The height in inches that rotation adds to the name of a tick."""
    points = _LETTER * float(name.get_fontsize()) * len(name.get_text())
    return points / 72 * math.sin(math.radians(name.get_rotation()))


def rendered(figure: Figure, form: str) -> bytes:
    """The figure as the bytes of a file: one of `FORMS`.

    An SVG follows its reader's choice of light or dark mode.

    Raises:
        InputError: if this machine lacks LaTeX, which measures the words of a ``"pgf"``.
    """
    if form == "pgf":
        return _pgf(figure)
    data = io.BytesIO()
    with matplotlib.rc_context(RC):
        figure.savefig(data, format=form, dpi=150, metadata=_NO_DATE.get(form))
    if form != "svg":
        return data.getvalue()
    return data.getvalue().replace(b"</style>", _dark().encode() + b"</style>", 1)


def _pgf(figure: Figure) -> bytes:
    text = io.StringIO()
    try:
        with matplotlib.rc_context(RC):
            figure.savefig(text, format="pgf")
    except (RuntimeError, OSError) as error:
        raise InputError(
            "a PGF figure needs LaTeX, which measures its words; install xelatex (Debian: apt "
            "install texlive-xetex), or write a PDF"
        ) from error
    return text.getvalue().encode()


def files_of(name: str, figure: Figure) -> dict[str, bytes]:
    """The files of a figure in a folder of results: for the web, for slides and for papers."""
    with matplotlib.rc_context(RC):
        # Each rendering would compute the same layout again, which takes as long as to draw.
        figure.draw_without_rendering()
        figure.set_layout_engine(None)
    return {f"{name}.{form}": rendered(figure, form) for form in ("svg", "png", "pdf")}


def form_of(file: Path) -> str:
    """The form that the suffix of a figure's file names.

    Raises:
        InputError: if it names none.
    """
    form = file.suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise InputError(
            f"{file}: a figure's name ends in .{', .'.join(FORMS[:-1])} or .{FORMS[-1]}"
        )
    return form


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
