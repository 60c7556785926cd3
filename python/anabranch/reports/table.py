"""Tables of reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table of a report: headings, and cells as text."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0
    """The number of rows that the table omits. The data files contain them."""
