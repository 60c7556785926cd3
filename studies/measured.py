"""Results of studies in the files of docs/results.

`update` replaces the rows of one result, with the date and the build of the new measurement.
`make results` then writes the pages.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
_LIST = re.compile(r"\[\n\s+(\"(?:[^\"\\]|\\.)*\"(?:,\n\s+\"(?:[^\"\\]|\\.)*\")*)\n\s+\]")
_TEXT = re.compile(r"\"(?:[^\"\\]|\\.)*\"")


def update(file: Path, name: str, rows: Sequence[Sequence[str]], command: str) -> None:
    """Replace the rows of a result, which was measured now with this build.

    The sentence in `shows` and the notes stay: check them against the new rows.

    Raises:
        ValueError: if the file has no such result, or a row has another length than its columns.
    """
    area = json.loads(file.read_text(encoding="utf-8"))
    found = [each for each in area["results"] if each["id"] == name]
    if not found or any(len(row) != len(found[0]["columns"]) for row in rows):
        raise ValueError(f"{file} has no result {name} with such rows")
    found[0] |= {"rows": [list(row) for row in rows], "command": command}
    found[0] |= {"date": date.today().isoformat(), "build": _build()}
    for key in ("recorded", "superseded"):
        found[0].pop(key, None)
    file.write_text(dumped(area), encoding="utf-8")


def _build() -> str:
    """The commit that is checked out."""
    command = ["git", "-C", str(_ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def dumped(area: dict[str, Any]) -> str:
    """The text of a file, with each row on one line."""
    text = json.dumps(area, indent=1, ensure_ascii=False)
    return _LIST.sub(lambda found: f"[{', '.join(_TEXT.findall(found[1]))}]", text) + "\n"
