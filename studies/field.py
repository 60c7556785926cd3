"""Write a table of docs/gallery/field-reports.md: what `anabranch explain` says of the reports.

python studies/field.py
"""

from __future__ import annotations

import re
from pathlib import Path

from anabranch.explanations import what_if
from anabranch.explanations.explanation import Explanation
from anabranch.gallery import catalogue
from anabranch.gallery.entries.field_reports import LINUX
from anabranch.gallery.entry import Cell
from anabranch.runs.run import run_scenario

PAGE = Path(__file__).resolve().parents[1] / "docs/gallery" / "field-reports.md"
_SEEDS = (1, 2, 3)


def row(cell: Cell) -> str:
    """The line of the table for a report."""
    task = cell.task(_SEEDS[0])
    explained = Explanation(run_scenario(task.scenario, task.seed, ledger=True), 0)
    predicted = what_if.predict(task.scenario, _SEEDS)
    best = predicted.best(linux=True)
    gain = "–" if best is None else f"{best.change.words} (+{_percent(best, predicted):.0f} %)"
    return f"| {cell.factors['report']} | {explained.finding()[1]} | {gain} |"


def _percent(best: what_if.Prediction, predicted: what_if.WhatIf) -> float:
    return best.goodput.value / predicted.base_mbps * 100


def main() -> None:
    """Explain the run of each report with Linux, and write the table."""
    entry = catalogue.entry("field-reports")
    cells = [cell for cell in entry.cells(entry.quick) if cell.factors["curve"] == LINUX]
    head = "| report | `explain` says | best change that Linux can make |\n|---|---|---|"
    lines = [row(cell) for cell in cells]
    text = PAGE.read_text(encoding="utf-8")
    table = "\n".join(["<!-- field -->", head, *lines, "<!-- /field -->"])
    new = re.sub(r"<!-- field -->.*<!-- /field -->", lambda _: table, text, flags=re.DOTALL)
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
