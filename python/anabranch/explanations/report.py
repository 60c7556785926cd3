"""The report of an explanation, and its tables."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from anabranch._core import __version__
from anabranch.analyze.analysis import Analysis
from anabranch.explanations import drawing
from anabranch.explanations.capture import CaptureExplanation
from anabranch.explanations.capture import table as capture_states
from anabranch.explanations.explanation import Explanation, Loss
from anabranch.files import write_whole
from anabranch.reports import page, pictures
from anabranch.reports.table import Table
from anabranch.results.estimates import number
from anabranch.runs.run import Run
from anabranch.scenarios.addresses import address
from anabranch.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from anabranch.explanations.what_if import WhatIf

_SMALLEST = 0.001
"""Causes below this share of the capacity have one row together; capacity.parquet has them all."""


def causes(explanation: Explanation) -> Table:
    """A row for each cause of lost capacity, the largest first."""
    least = _SMALLEST * explanation.capacity_mbps
    merged: dict[tuple[str, str], list[Loss]] = {}
    for loss in explanation.losses:
        merged.setdefault((loss.words, loss.path), []).append(loss)
    sums = [
        (words, path, sum(loss.mbps for loss in each), sum(loss.share for loss in each))
        for (words, path), each in merged.items()
    ]
    sums.sort(key=lambda row: -row[2])
    rows = [
        (words, path, number(mbps), "–" if path == "all" else f"{share * 100:.1f} %")
        for words, path, mbps, share in sums
        if mbps >= least
    ]
    small = [mbps for *_, mbps, _ in sums if mbps < least]
    if small:
        rows.append((counted(len(small), "smaller cause"), "all", number(sum(small)), "–"))
    total = explanation.capacity_mbps - explanation.goodput_mbps
    last = ("sum = capacity − goodput", "all", number(total), "–")
    return Table(("cause", "path", "Mbit/s", "of the path"), (*rows, last))


def delays(explanation: Explanation) -> Table | None:
    """A row for each part of the blocks' delays; `None` without blocks."""
    if explanation.delays is None:
        return None
    rows = tuple(
        (words, number(mean), number(slow)) for words, mean, slow in explanation.delays.rows()
    )
    return Table(("part of a block's delay", "mean ms", "slowest 5 % ms"), rows)


def as_json(found: Sequence[Explanation], what_if: WhatIf | None = None) -> dict[str, Any]:
    """Explanations of a run as plain values."""
    run = found[0].run
    return {
        "scenario": run.settings["name"],
        "seed": run.seed,
        "digest": run.digest,
        "seconds": run.virtual_ns / 1e9,
        "connections": [each.json() for each in found],
        "what_if": None if what_if is None else what_if.json(),
    }


def save(found: Sequence[Explanation], folder: Path, what_if: WhatIf | None = None) -> None:
    """Write ``report.html``, a figure for each connection, ``explanation.json`` and the tables.

    Raises:
        InputError: if the folder cannot be written.
    """
    contents: dict[str, bytes] = {}
    drawings = []
    for index, each in enumerate(found):
        figure = drawing.draw(drawing.of_run(each))
        contents |= _figures(figure, index)
        svg = contents[f"states-{index}.svg"]
        drawings.append(page.drawing(f"States of {each.name}", drawing.CAPTION, figure, svg))
    contents["activities.parquet"] = _parquet(pl.concat([each.intervals() for each in found]))
    accounts = [each.account.with_columns(connection=pl.lit(each.name)) for each in found]
    contents["capacity.parquet"] = _parquet(pl.concat(accounts))
    blocks = [each.delays.blocks for each in found if each.delays is not None]
    if blocks:
        contents["block_parts.parquet"] = _parquet(pl.concat(blocks))
    if what_if is not None:
        contents["what_if.parquet"] = _parquet(what_if.frame())
    text = json.dumps(as_json(found, what_if), indent=2, ensure_ascii=False)
    contents["explanation.json"] = f"{text}\n".encode()
    run = found[0].run
    html = page.template("explain.html").render(
        name=run.settings["name"],
        version=__version__,
        description=run.settings["description"],
        explanations=[
            {
                "name": each.name,
                "finding": each.finding(),
                "causes": causes(each),
                "buffers": each.buffers(),
                "delays": delays(each),
                "delay_finding": None if each.delays is None else each.delays.finding(),
            }
            for each in found
        ],
        drawings=drawings,
        what_if=None if what_if is None else what_if.table(),
        what_if_about=None if what_if is None else what_if.about(),
        run=run,
        playground=_playground(run),
    )
    write_whole(folder, contents | {"report.html": html.encode()})


def captures_json(
    found: Sequence[CaptureExplanation], analysis: Analysis, what_if: WhatIf | None = None
) -> dict[str, Any]:
    """Explanations of captures as plain values."""
    return {
        "files": analysis.files["file"].to_list(),
        "connections": [each.json() for each in found],
        "notes": capture_notes(analysis),
        "what_if": None if what_if is None else what_if.json(),
    }


def capture_notes(analysis: Analysis) -> list[str]:
    """Limits of the explanation of captures: damage, and remarks of the analyser."""
    damaged = analysis.files.filter(pl.col("damage").is_not_null())
    damages = [
        f"{name}: {what}; the packets before are explained"
        for name, what in damaged["file", "damage"].rows()
    ]
    return [*damages, *analysis.notes]


def _playground(run: Run) -> list[tuple[str, str]]:
    """The run and its address in the playground, if that can make it."""
    name = run.settings["name"]
    place = None if run.custom_policies else address(run.toml, f"{name}.toml", run.seed)
    return [] if place is None else [(name, place)]


def save_captures(
    found: Sequence[CaptureExplanation],
    analysis: Analysis,
    folder: Path,
    what_if: WhatIf | None = None,
) -> None:
    """Write ``report.html``, figures, ``explanation.json`` and tables of captures.

    Raises:
        InputError: if the folder cannot be written.
    """
    text = json.dumps(captures_json(found, analysis, what_if), indent=2, ensure_ascii=False)
    contents = {"explanation.json": f"{text}\n".encode()}
    name = ", ".join(Path(name).name for name in analysis.files["file"])
    drawings = []
    for index, each in enumerate(found):
        figure = drawing.draw(drawing.of_capture(each, f"{name} · connection {each.connection}"))
        contents |= _figures(figure, index)
        title = f"States of connection {each.connection}"
        svg = contents[f"states-{index}.svg"]
        drawings.append(page.drawing(title, drawing.CAPTION, figure, svg))
    tables = [each.intervals.with_columns(connection=each.connection) for each in found]
    contents["activities.parquet"] = _parquet(pl.concat(tables))
    html = page.template("explain_capture.html").render(
        name=name,
        version=__version__,
        explanations=[
            {"finding": each.finding(), "states": capture_states(each), "subflows": each.subflows}
            for each in found
        ],
        drawings=drawings,
        notes=capture_notes(analysis),
        what_if=None if what_if is None else what_if.table(),
        what_if_about=None if what_if is None else what_if.about(),
    )
    if what_if is not None:
        contents["what_if.parquet"] = _parquet(what_if.frame())
    write_whole(folder, contents | {"report.html": html.encode()})


def _figures(figure: Figure, index: int) -> dict[str, bytes]:
    return pictures.files_of(f"states-{index}", figure)


def _parquet(table: pl.DataFrame) -> bytes:
    data = io.BytesIO()
    table.write_parquet(data, compression="zstd")
    return data.getvalue()
