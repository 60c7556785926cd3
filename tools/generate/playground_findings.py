"""Write the sentences of `anabranch explain` about lost capacity, for the playground's tests.

python tools/generate/playground_findings.py
"""

import json
from pathlib import Path
from typing import Any

from anabranch.explanations.explanation import explanations
from anabranch.runs.run import run_scenario
from anabranch.scenarios import loading

PLAYGROUND = Path(__file__).resolve().parents[2] / "playground"
FILE = PLAYGROUND / "tests" / "unit" / "findings.json"

CHANGED: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "path_dies",
        {
            "path.wifi.change": [
                {"at": "5s", "rate": "8Mbit/s"},
                {"at": "10s", "state": "down"},
                {"at": "20s", "state": "up"},
            ]
        },
    ),
    ("wifi_3g", {"path.wifi.change": [{"at": "20s", "rate": "4Mbit/s"}]}),
    ("wifi_3g", {"connection.download.direction": "both"}),
)
"""Further cases: rates that change, and a connection that sends both ways."""


def text() -> str:
    names = sorted(file.stem for file in (PLAYGROUND / "src" / "scenarios").glob("*.toml"))
    found = []
    for name, settings in (*((name, {}) for name in names), *CHANGED):
        file = PLAYGROUND / "src" / "scenarios" / f"{name}.toml"
        outcome = run_scenario(loading.of_file(file, settings=settings), 1, ledger=True)
        sentences = [each.lost_capacity() for each in explanations(outcome)]
        found.append({"scenario": name, "settings": [*settings.items()], "sentences": sentences})
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
