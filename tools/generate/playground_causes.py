"""Write the words of causes for the playground: `playground/src/model/causes.json`.

python tools/generate/playground_causes.py
"""

import json
from pathlib import Path

from anabranch.explanations.causes import BY_NAME

FILE = Path(__file__).resolve().parents[2] / "playground" / "src" / "model" / "causes.json"


def text() -> str:
    causes = {
        cause.name: {
            "words": cause.words,
            "because": cause.because,
            "colour": cause.colour,
            "idle": cause.is_idle,
            "overhead": cause.is_overhead,
        }
        for cause in BY_NAME.values()
    }
    return json.dumps(causes, indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
