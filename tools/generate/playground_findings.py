"""Write the sentences of `anabranch explain` about the playground's scenarios, for its tests.

python tools/generate/playground_findings.py
"""

import json
from pathlib import Path

from anabranch.explanations.explanation import explanations
from anabranch.runs.run import run_scenario
from anabranch.scenarios import loading

PLAYGROUND = Path(__file__).resolve().parents[2] / "playground"
FILE = PLAYGROUND / "tests" / "unit" / "findings.json"


def text() -> str:
    found = {}
    for file in sorted((PLAYGROUND / "src" / "scenarios").glob("*.toml")):
        outcome = run_scenario(loading.of_file(file), 1, ledger=True)
        found[file.stem] = [each.finding() for each in explanations(outcome)]
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
