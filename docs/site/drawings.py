"""Pictures of the pages that are drawn when the site is built, and that git ignores.

    python docs/site/drawings.py

MkDocs calls `on_pre_build`. The pictures of the policies come from runs (a few minutes), and
docs/img/growth.svg comes from docs/results/performance.json. They are drawn again only if the code
that draws or runs them has changed: the stamp has a digest of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from anabranch import _core
from anabranch.reports import pictures

DOCS = Path(__file__).resolve().parents[1]
POLICIES = DOCS / "policies"
GROWTH = DOCS / "img/growth.svg"
STAMP = POLICIES / "img/.stamp"

CURVES = {
    "connections": "connections",
    "subflows": "subflows",
    "windows": "one-way delay (ms)",
    "lengths": "seconds before",
}
"""Results of docs/results/performance.json that the picture of growth shows, with their units."""

PLACEHOLDER = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>\n'
"""Content of a picture that is missing, if ANABRANCH_DRAWINGS is "no", as in CI."""

_REGISTERED = re.compile(r"^@picture\(.*\)\ndef (\w+)\(", re.MULTILINE)


def drawn() -> frozenset[Path]:
    """The pictures that this module draws."""
    modules = (POLICIES / "pictures").glob("*.py")
    names = {name for file in modules for name in _REGISTERED.findall(file.read_text("utf-8"))}
    return frozenset({POLICIES / f"img/{name}.svg" for name in names} | {GROWTH})


def on_pre_build(**_: object) -> None:
    """Draw what is missing or out of date. Called by MkDocs before it looks for files."""
    draw_growth()
    stamp = _digest()
    if STAMP.exists() and STAMP.read_text("utf-8") == stamp and all(map(Path.exists, drawn())):
        return
    if os.environ.get("ANABRANCH_DRAWINGS") == "no":
        for file in drawn():
            if not file.exists():
                file.parent.mkdir(exist_ok=True)
                file.write_text(PLACEHOLDER, encoding="utf-8")
        return
    print("drawing the pictures of the policies: a few minutes ...", flush=True)
    command = [sys.executable, str(POLICIES / "draw.py")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    STAMP.write_text(stamp, encoding="utf-8")


def _digest() -> str:
    """Digest of the files that decide how the pictures look."""
    found = hashlib.sha256()
    for file in _sources():
        found.update(file.read_bytes())
    return found.hexdigest()


def _sources() -> Iterator[Path]:
    yield Path(_core.__file__)
    yield Path(pictures.__file__)
    yield POLICIES / "draw.py"
    yield from sorted((POLICIES / "pictures").glob("*.py"))


def draw_growth() -> None:
    """Draw the cost of a data segment relative to the first value of each curve."""
    area = json.loads((DOCS / "results/performance.json").read_text("utf-8"))
    tables: dict[str, Any] = {each["id"]: each.get("rows") for each in area["results"]}
    with rc_context({"svg.hashsalt": "growth"}):  # the same file each time
        figure = Figure(figsize=(10, 3), layout="constrained")
        panels = figure.subplots(1, len(CURVES), squeeze=False).flat
        for axes, (name, unit) in zip(panels, CURVES.items(), strict=True):
            points = [[float(cell.replace(",", "")) for cell in row[:2]] for row in tables[name]]
            values = [value for value, _ in points]
            axes.semilogx(values, [cost / points[0][1] for _, cost in points], "o-")
            axes.set(xlabel=unit, ylim=(0, 2), xticks=values)
            axes.set_xticklabels([f"{value:g}" for value in values])
            axes.minorticks_off()
            axes.grid(axis="y", alpha=0.3)
        figure.axes[0].set_ylabel("relative cost of a data segment")
        figure.savefig(GROWTH, metadata={"Date": None})


if __name__ == "__main__":
    on_pre_build()
