"""Write the pages of measured results, docs/results/*.md, from the JSON files next to them.

    python tools/generate/results.py [--check]

Each file has the results of one area: tables, with the date, build, machine and command of the
measurement. A result whose model or rule has changed since says so under `superseded`, and the page
marks it. With --check, the script changes no page, and fails if a page is out of date.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS = DOCS / "results"

Area = dict[str, Any]
"""The content of a JSON file: `title`, `about`, and `results`."""
Result = Mapping[str, Any]
"""One measurement: the keys of `REQUIRED`, some of `OPTIONAL`, and no others."""

REQUIRED = ("id", "title", "date", "build", "machine", "command", "shows")
"""Keys of each result. Unknown facts are `null`, which the page shows as "not recorded"."""
OPTIONAL = ("recorded", "superseded", "columns", "align", "rows", "notes", "picture")

_ALIGNMENTS = {"l": "---", "r": "--:"}
_NOT_RECORDED = "not recorded"
_UNKNOWN_BUILD = (
    "> **Unknown build.** The build of this measurement was not recorded. "
    "The present build may give other numbers."
)


def areas() -> list[Path]:
    """The JSON files, in the order of their names."""
    return sorted(RESULTS.glob("*.json"))


def page(area: Area, source: str) -> str:
    """The page of an area."""
    parts = [
        f"<!-- Written by tools/generate/results.py from {source}: change that file. -->",
        f"# {area['title']}",
        area["about"],
    ]
    for result in area["results"]:
        parts += _section(result)
    return "\n\n".join(parts) + "\n"


def _section(result: Result) -> list[str]:
    """The Markdown blocks of a result."""
    check(result)
    parts = [f"## {result['title']}"]
    if reason := result.get("superseded"):
        parts.append(f"> **Superseded.** {reason}")
    elif not result["build"]:
        parts.append(_UNKNOWN_BUILD)
    parts += [result["shows"], _provenance(result)]
    if picture := result.get("picture"):
        parts.append(picture)
    if "rows" in result:
        parts.append(table(result))
    parts += result.get("notes", ())
    return parts


def check(result: Result) -> None:
    """Check the keys of a result, and the number of cells in its rows.

    Raises:
        ValueError: if a key is missing or unknown, or a row has another length than the columns.
    """
    keys = set(result)
    if wrong := (set(REQUIRED) - keys) | (keys - {*REQUIRED, *OPTIONAL}):
        raise ValueError(f"{result.get('id')}: keys {', '.join(sorted(wrong))}")
    width = len(result.get("columns", ()))
    rows = [*result.get("rows", ()), result.get("align", "l" * width)]
    if any(len(row) != width for row in rows):
        raise ValueError(f"{result['id']}: a row or `align` does not have {width} cells")


def table(result: Result) -> str:
    """The table of a result, in Markdown."""
    columns = result["columns"]
    align = result.get("align", "l" * len(columns))
    lines = [_row(columns), "|" + "|".join(_ALIGNMENTS[each] for each in align) + "|"]
    lines += map(_row, result["rows"])
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _provenance(result: Result) -> str:
    """Date, build, machine and command, in one paragraph."""
    words = [
        f"Measured: {result['date'] or _NOT_RECORDED}",
        f"build: {result['build'] or _NOT_RECORDED}",
    ]
    if recorded := result.get("recorded"):
        words.append(f"added to the repository: {recorded}")
    words.append(f"machine: {result['machine'] or _NOT_RECORDED}")
    command = result["command"]
    words.append(f"command: {f'`{command}`' if command else _NOT_RECORDED}")
    return f"*{'; '.join(words)}.*"


def main(arguments: Sequence[str]) -> int:
    """Write or check all pages, and return the exit status."""
    stale = []
    for source in areas():
        file = source.with_suffix(".md")
        area = json.loads(source.read_text(encoding="utf-8"))
        new = page(area, source.relative_to(DOCS.parent).as_posix())
        if not file.exists() or file.read_text(encoding="utf-8") != new:
            stale.append(file)
            if "--check" not in arguments:
                file.write_text(new, encoding="utf-8")
    for file in stale:
        print(file.relative_to(DOCS.parent))
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
