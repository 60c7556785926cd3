"""Write addresses of the playground as the command line makes them, for the playground's tests.

python tools/generate/playground_addresses.py
"""

import json
from pathlib import Path

from anabranch.scenarios.addresses import fragment

PLAYGROUND = Path(__file__).resolve().parents[2] / "playground"
FILE = PLAYGROUND / "tests" / "unit" / "addresses.json"


def text() -> str:
    toml = (PLAYGROUND / "src" / "scenarios" / "wifi_3g.toml").read_text(encoding="utf-8")
    sessions = [(toml, "wifi_3g.toml", 2**64 - 1), ('name = "é"', "é.toml", 0)]
    sources = [{"toml": toml, "file": file, "seed": str(seed)} for toml, file, seed in sessions]
    about = {"fragment": fragment(sessions), "sources": sources}
    return json.dumps(about, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
