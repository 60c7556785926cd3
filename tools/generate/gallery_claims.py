"""Write the tables of claims and of parameters into the pages of the gallery.

    python tools/generate/gallery_claims.py [--check]

A page holds each table between two comments. With --check, the script changes no page, and fails if
a page is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from anabranch.gallery import catalogue
from anabranch.gallery.entry import Entry

DOCS = Path(__file__).resolve().parents[2] / "docs"


def page(name: str) -> Path:
    """The page of an entry."""
    return DOCS / ("calibration.md" if name == catalogue.CALIBRATION else f"gallery/{name}.md")


def claims(entry: Entry) -> str:
    """An entry's claims, as a table in Markdown."""
    lines = ["| claim | statement | check | source |", "|---|---|---|---|"]
    lines += [_row((each.id, each.statement, each.check, each.source)) for each in entry.claims]
    return "\n".join(lines)


def parameters(entry: Entry) -> str:
    """An entry's parameters, as a table in Markdown."""
    lines = ["| parameter | value | source |", "|---|---|---|"]
    lines += [_row((each.name, each.value, each.source)) for each in entry.parameter_table()]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def with_tables(text: str, entry: Entry) -> str:
    """A page's text with the current tables. The page of the calibration has no parameters.

    Raises:
        ValueError: if the page lacks the two comments of a table.
    """
    tables = {"claims": claims(entry)}
    if entry.id != catalogue.CALIBRATION:
        tables["parameters"] = parameters(entry)
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"{page(entry.id)} needs the lines {begin} and {end}")
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


def main(arguments: Sequence[str]) -> int:
    """Write or check all pages, and return the exit status."""
    stale = []
    for name in catalogue.all_names():
        file = page(name)
        old = file.read_text(encoding="utf-8")
        new = with_tables(old, catalogue.entry(name))
        if new != old:
            stale.append(file)
            if "--check" not in arguments:
                file.write_text(new, encoding="utf-8")
    for file in stale:
        print(file.relative_to(DOCS.parent))
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
