"""Charts: matplotlib drawings as data from which a browser draws interactive charts.

A panel draws onto matplotlib's `Axes` once. Printed figures, and reports for readers without
JavaScript, show the picture of these axes. `translate` reads the finished axes (lines, bars, areas,
spans, text, scales, ticks, legend) and returns a description in plain values. ``charts.js`` draws
the description with uPlot, so that a reader can zoom, read values and hide curves.

The alternative is a model of charts that both sides draw. With translation, two dozen entries keep
their few lines of matplotlib, and only a fault of this file can make picture and chart differ. The
price is that matplotlib can draw more than this file knows. `translate` therefore rejects unknown
artists, and the tests run it over the panels of every report.

uPlot is small and works offline. Version 1.6.32 has 51 kB; the basic bundle of Plotly has 1,190 kB,
and Vega with Vega-Lite about 800 kB.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import collections
from matplotlib.collections import LineCollection, PolyCollection, QuadMesh
from matplotlib.colors import to_hex, to_rgba
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Rectangle, StepPatch
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FixedLocator

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_DIGITS = 6
"""Significant digits of coordinates: finer than a pixel after zooming in a thousandfold."""

Chart = dict[str, Any]
Mark = dict[str, Any]
"""A drawn element: its ``kind``, colour, coordinates, and the ``name`` of its legend entry."""


class NotTranslated(TypeError):
    """The axes contain an artist that `translate` does not know."""


def translate(axes: Axes) -> Chart | None:
    """The description of finished axes; `None` if they were switched off to show a sentence.

    Raises:
        NotTranslated: if this file does not know the kind of an artist.
    """
    if not axes.axison:
        return None
    marks = [mark for artist in _drawn(axes) for mark in _marks(artist, axes)]
    legend = _legend(axes)
    _adopt(marks, legend)
    return {
        "title": (axes.get_title(loc="left") or axes.get_title()).replace("\n", " "),
        "grid": not any(isinstance(child, QuadMesh) for child in axes.get_children()),
        "x": _scale(axes.xaxis, axes.get_xlim(), axes.get_xscale(), axes.get_xlabel()),
        "y": _scale(axes.yaxis, axes.get_ylim(), axes.get_yscale(), axes.get_ylabel()),
        "marks": marks,
        "legend": legend,
    }


def as_json(charts: Sequence[Chart]) -> str:
    """Charts as the text of a ``<script type="application/json">``."""
    return json.dumps(charts, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _drawn(axes: Axes) -> list[Any]:
    """The drawn artists from back to front. The parts of a container count as one."""
    containers = [each for each in axes.containers if not _is_of_bars(each, axes)]
    inside = {id(part) for container in axes.containers for part in _parts(container)}
    frame = {axes.patch, axes.title, axes.xaxis, axes.yaxis, *axes.spines.values()}
    titles = [getattr(axes, name) for name in ("_left_title", "_right_title")]
    alone = [
        child
        for child in axes.get_children()
        if id(child) not in inside
        and child not in frame
        and child not in titles
        and child is not axes.get_legend()
        and child.get_visible()
    ]
    return sorted([*containers, *alone], key=_depth)


def _is_of_bars(container: Any, axes: Axes) -> bool:
    """Whether this container is the error bars of a bar chart, which are drawn with the bars."""
    bars = (each for each in axes.containers if isinstance(each, BarContainer))
    return any(each.errorbar is container for each in bars)


def _parts(container: Any) -> Iterator[Artist]:
    if isinstance(container, ErrorbarContainer):
        line, caps, bars = container.lines
        yield from (part for part in (line, *caps, *bars) if part is not None)
    elif isinstance(container, BarContainer):
        yield from container.patches
        if container.errorbar is not None:
            yield from _parts(container.errorbar)
    else:
        yield from container


def _depth(drawn: Any) -> float:
    first = next(_parts(drawn), None) if isinstance(drawn, tuple) else drawn
    return float(first.get_zorder()) if first is not None else 0.0


def _marks(drawn: Any, axes: Axes) -> Iterator[Mark]:
    # Only these exact classes, not subclasses: arrows, for example, are polygons of another kind.
    function = _KINDS.get(type(drawn))
    if function is None:
        raise NotTranslated(f"charts.py cannot translate {drawn!r}")
    yield from function(drawn, axes)


# ---- what can be drawn -----------------------------------------------------------------------


def _errorbar(container: ErrorbarContainer, axes: Axes) -> Iterator[Mark]:
    line, _, bars = container.lines
    if line is None:
        raise NotTranslated(f"charts.py cannot translate intervals without a line: {container!r}")
    for mark in _line(line, axes):
        yield mark | {"name": _name(container)} | _intervals(bars)


def _intervals(bars: Iterable[LineCollection]) -> Mark:
    """The lower and upper ends of vertical intervals."""
    ends = [
        np.array([[piece[0][1], piece[-1][1]] for piece in each.get_segments()]) for each in bars
    ]
    if len(ends) != 1 or not ends[0].size:
        return {}
    return {"low": _numbers(ends[0][:, 0]), "high": _numbers(ends[0][:, 1])}


def _bars(container: BarContainer, axes: Axes) -> Iterator[Mark]:
    if container.patches:
        box = [patch.get_bbox() for patch in container.patches]
        first = container.patches[0]
        yield {
            "kind": "bars",
            "name": _name(container),
            **_corners(box),
            **_paint(first.get_facecolor(), first.get_alpha()),
            **(_intervals(container.errorbar.lines[2]) if container.errorbar else {}),
        }


def _corners(boxes: Sequence[Any]) -> Mark:
    return {
        key: _numbers([getattr(box, corner) for box in boxes])
        for key, corner in (("x0", "x0"), ("x1", "x1"), ("y0", "y0"), ("y1", "y1"))
    }


def _line(line: Line2D, axes: Axes) -> Iterator[Mark]:
    x, y = (np.asarray(each, dtype=np.float64) for each in line.get_data(orig=False))
    if x.size == 0:
        return  # only an entry of the legend
    style = _paint(line.get_color(), line.get_alpha()) | _stroke(line)
    x_is_data, y_is_data = line.get_transform().contains_branch_seperately(axes.transData)
    if not (x_is_data or y_is_data):
        raise NotTranslated(f"charts.py cannot translate a line without data axes: {line!r}")
    if not (x_is_data and y_is_data):
        at = {"axis": "x", "at": float(x[0])} if x_is_data else {"axis": "y", "at": float(y[0])}
        yield {"kind": "rule", **at, **style}
        return
    style |= _marker(line)
    if line.get_drawstyle() != "default":
        style["step"] = line.get_drawstyle()
    yield {"kind": "line", "name": _name(line), "x": _numbers(x), "y": _numbers(y), **style}


def _marker(line: Line2D) -> Mark:
    marker = str(line.get_marker())
    if marker in ("None", "none", "", " "):
        return {}
    return {
        "marker": marker,
        "size": line.get_markersize(),
        "hollow": str(line.get_markerfacecolor()) == "none",
        **_paint(line.get_markeredgecolor(), line.get_alpha()),
    }


def _stroke(line: Line2D) -> Mark:
    if line.get_linestyle() in ("None", "none", "", " "):
        return {"width": 0}
    _, dashes = line._dash_pattern  # type: ignore[attr-defined]  # there is no public attribute
    return {"width": line.get_linewidth(), "dash": [round(each, 2) for each in dashes or ()]}


def _stairs(stairs: StepPatch, axes: Axes) -> Iterator[Mark]:
    values, edges, _ = stairs.get_data()
    yield {
        "kind": "line",
        "name": _name(stairs),
        "x": _numbers(edges),
        "y": _numbers([*values, 0]),
        "step": "steps-post",
        "width": stairs.get_linewidth(),
        "dash": [],
        **_paint(stairs.get_edgecolor(), stairs.get_alpha()),
    }


def _rectangle(patch: Rectangle, axes: Axes) -> Iterator[Mark]:
    box = patch.get_bbox()
    x_is_data, y_is_data = patch.get_transform().contains_branch_seperately(axes.transData)
    if x_is_data and y_is_data:
        corners = [(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)]
        yield _outline(patch, np.array([*corners, corners[0]]))
        return
    axis, ends = ("x", (box.x0, box.x1)) if x_is_data else ("y", (box.y0, box.y1))
    yield {
        "kind": "span", "axis": axis, "from": float(ends[0]), "to": float(ends[1]),
        "name": _name(patch), **_paint(patch.get_facecolor(), patch.get_alpha()),
    }  # fmt: skip


def _box(patch: PathPatch, axes: Axes) -> Iterator[Mark]:
    yield _outline(patch, np.asarray(patch.get_path().vertices)) | {"box": True}


def _outline(patch: Rectangle | PathPatch, corners: Any) -> Mark:
    """A closed shape: an area if it is filled, else a line."""
    points = {"x": _numbers(corners[:, 0]), "y": _numbers(corners[:, 1]), "name": _name(patch)}
    if patch.get_fill():
        return {"kind": "area", **points, **_paint(patch.get_facecolor(), patch.get_alpha())}
    edge = _paint(patch.get_edgecolor(), patch.get_alpha())
    return {"kind": "line", **points, "width": patch.get_linewidth(), "dash": [], **edge}


def _areas(areas: PolyCollection, axes: Axes) -> Iterator[Mark]:
    for path, colour in zip(areas.get_paths(), areas.get_facecolor(), strict=False):
        corners = np.asarray(path.vertices)
        yield {
            "kind": "area", "name": _name(areas), "x": _numbers(corners[:, 0]),
            "y": _numbers(corners[:, 1]), **_paint(colour, areas.get_alpha()),
        }  # fmt: skip


def _pieces(lines: LineCollection, axes: Axes) -> Iterator[Mark]:
    """Vertical line segments, of which a capture has thousands."""
    ends = np.array([[*piece[0], *piece[-1]] for piece in lines.get_segments()])
    if ends.size:
        if not np.array_equal(ends[:, 0], ends[:, 2]):
            raise NotTranslated(f"charts.py cannot translate sloping line segments: {lines!r}")
        yield {
            "kind": "pieces",
            "name": _name(lines),
            "x": _numbers(ends[:, 0]),
            "y0": _numbers(ends[:, 1]),
            "y1": _numbers(ends[:, 3]),
            "width": float(np.max(lines.get_linewidth())),
            **_paint(lines.get_color()[0], lines.get_alpha()),
        }


def _mesh(mesh: QuadMesh, axes: Axes) -> Iterator[Mark]:
    """The cells of a heat map, each with a value and a colour."""
    corners: Any = mesh.get_coordinates()
    low, high = corners[:-1, :-1].reshape(-1, 2), corners[1:, 1:].reshape(-1, 2)
    values: Any = np.ma.asarray(mesh.get_array()).ravel()
    colours = [to_hex(tuple(colour)) for colour in mesh.to_rgba(values)]
    yield {
        "kind": "bars",
        "name": None,
        "x0": _numbers(low[:, 0]), "x1": _numbers(high[:, 0]),
        "y0": _numbers(low[:, 1]), "y1": _numbers(high[:, 1]),
        "values": _numbers(values.filled(np.nan)), "colours": colours, "colour": colours[0],
        "alpha": 1,
    }  # fmt: skip


def _words(text: Text, axes: Axes) -> Iterator[Mark]:
    if not text.get_text():
        return
    shift = (0.0, 0.0)
    if isinstance(text, Annotation):
        if text.arrow_patch is not None:
            raise NotTranslated(f"charts.py cannot translate an arrow: {text!r}")
        (x, y), where = _anchor(text, axes)
        if text.anncoords == "offset points":
            shift = text.xyann
    else:
        x, y = text.get_position()
        where = text.get_transform().contains_branch_seperately(axes.transData)
    yield {
        "kind": "text", "text": text.get_text(), "x": float(x), "y": float(y),
        "data": list(where), "shift": list(shift), "rotate": text.get_rotation(),
        "align": text.get_horizontalalignment(), "baseline": text.get_verticalalignment(),
        "size": text.get_fontsize(), **_paint(text.get_color(), text.get_alpha()),
    }  # fmt: skip


def _anchor(text: Annotation, axes: Axes) -> tuple[tuple[float, float], Sequence[bool]]:
    """The position of an annotation, and which of its coordinates are data coordinates."""
    coordinates: Any = text.xycoords
    if coordinates == "data":
        where: Sequence[bool] = (True, True)
    elif coordinates == "axes fraction":
        where = (False, False)
    else:
        where = coordinates.contains_branch_seperately(axes.transData)
    place = text.xy if text.anncoords == "offset points" else text.xyann
    return (float(place[0]), float(place[1])), where


_KINDS: dict[type, Callable[[Any, Axes], Iterator[Mark]]] = {
    ErrorbarContainer: _errorbar,
    BarContainer: _bars,
    Line2D: _line,
    StepPatch: _stairs,
    Rectangle: _rectangle,
    PathPatch: _box,
    QuadMesh: _mesh,
    PolyCollection: _areas,
    # `fill_between` returns this class since matplotlib 3.10.
    getattr(collections, "FillBetweenPolyCollection", PolyCollection): _areas,
    LineCollection: _pieces,
    Text: _words,
    Annotation: _words,
}

# ---- scales, legend, values ------------------------------------------------------------------


def _scale(axis: Axis, limits: tuple[float, float], name: str, label: str) -> Chart:
    """An axis: its label, its ends, and its ticks if they were set one by one."""
    if name not in ("linear", "log"):
        raise NotTranslated(f"charts.py cannot translate the scale {name}")
    scale: Chart = {"label": label, "from": float(limits[0]), "to": float(limits[1])}
    scale["log"] = name == "log"
    locator = axis.get_major_locator()
    if isinstance(locator, FixedLocator):
        places = [float(place) for place in locator()]
        words = axis.get_major_formatter().format_ticks(places)
        scale["ticks"] = [list(tick) for tick in zip(places, words, strict=True)]
    return scale


def _legend(axes: Axes) -> list[Chart]:
    handles, labels = axes.get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))  # several outages share an entry
    return [{"name": label, **_sample(handle)} for label, handle in entries.items()]


def _sample(handle: Any) -> Chart:
    """The appearance of a legend entry."""
    handle = handle[0] if isinstance(handle, tuple) and len(handle) else handle
    if isinstance(handle, Line2D):
        return _paint(handle.get_color(), handle.get_alpha()) | _stroke(handle) | _marker(handle)
    if isinstance(handle, StepPatch):
        return {**_paint(handle.get_edgecolor(), None), "width": handle.get_linewidth()}
    colours = handle.get_facecolor()
    colour = colours[0] if np.ndim(colours) == 2 else colours
    return {**_paint(colour, handle.get_alpha()), "width": 8}


def _adopt(marks: Sequence[Mark], legend: Sequence[Chart]) -> None:
    """Give unnamed marks the name of the legend entry with their colour, if only one has it.

    Bars, boxes and intervals have the colour of the legend entry that represents them. The legend
    then shows a block of this colour.
    """
    owners: dict[str, list[str]] = {}
    for entry in legend:
        owners.setdefault(entry["colour"], []).append(entry["name"])
    for mark in marks:
        named = owners.get(mark["colour"], [])
        if mark["kind"] not in ("rule", "text") and not mark.get("name") and len(named) == 1:
            mark["name"] = named[0]
    blocks = {mark["name"] for mark in marks if mark["kind"] == "bars" or mark.get("box")}
    for entry in legend:
        if entry["name"] in blocks:
            entry |= {"width": 8, "dash": [], "marker": ""}


def _name(artist: Any) -> str | None:
    label = str(artist.get_label() or "")
    return None if not label or label.startswith("_") else label


def _paint(colour: Any, alpha: float | None) -> Mark:
    rgba = to_rgba(colour[0] if np.ndim(colour) == 2 else colour)
    return {"colour": to_hex(rgba), "alpha": round(rgba[3] if alpha is None else float(alpha), 3)}


def _numbers(values: Any) -> list[float | None]:
    """Values rounded for a file. Values that are not finite become null."""
    return [
        float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None
        for value in np.asarray(values, dtype=np.float64)
    ]
