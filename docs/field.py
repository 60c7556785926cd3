"""Write the table of docs/field.md: what `anabranch explain` says of reported problems.

python docs/field.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.explain import what_if
from anabranch.explain.explanation import Explanation
from anabranch.results import metrics
from anabranch.runs.run import run_normalised
from anabranch.scenarios import overrides
from anabranch.scenarios.quantities import bits_per_second

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "examples" / "field"
PAGE = ROOT / "docs" / "field.md"
_SEEDS = (1, 2, 3)


def row(file: Path) -> str:
    """The line of the table for a scenario."""
    toml = _core.validate(file.read_text(encoding="utf-8"), str(file))
    explained = Explanation(run_normalised(toml, str(file), 1, ledger=True), 0)
    alone = _tcp(toml, str(file), explained.run.settings)
    together = metrics.goodput_mbps(explained.run.connections, 0)
    predicted = what_if.predict(toml, str(file), _SEEDS)
    best = predicted.best(linux=True)
    gain = "–" if best is None else f"{best.change.words} (+{_percent(best, predicted):.0f} %)"
    finding = explained.finding()[1]
    return (
        f"| [{file.stem}](../examples/field/{file.name}) | {together / alone * 100:.0f} % of "
        f"{alone:.0f} | {finding} | {gain} |"
    )


def _percent(best: what_if.Prediction, predicted: what_if.WhatIf) -> float:
    return best.goodput.value / predicted.base_mbps * 100


def _tcp(toml: str, file: str, settings: dict[str, Any]) -> float:
    """Goodput in Mbit/s of TCP over the path with the highest rate."""
    fastest = max(settings["path"], key=lambda path: bits_per_second(path["rate"]))
    new = {"protocol": "tcp", "paths": [fastest["name"]]}
    keys = {f"connection[0].{key}": value for key, value in new.items()}
    table = re.sub(r"^(scheduler|path_manager) = .*\n", "", toml, flags=re.MULTILINE)
    run = run_normalised(_core.validate(overrides.changed(table, file, keys), file), file, 1)
    return metrics.goodput_mbps(run.connections, 0)


def main() -> None:
    """Run all scenarios, and write the table."""
    lines = [row(file) for file in sorted(SCENARIOS.glob("*.toml"))]
    head = (
        "| scenario | of TCP's Mbit/s | `explain` says | best change that Linux can make |\n"
        "|---|---|---|---|"
    )
    text = PAGE.read_text(encoding="utf-8")
    table = "\n".join(["<!-- field -->", head, *lines, "<!-- /field -->"])
    new = re.sub(r"<!-- field -->.*<!-- /field -->", lambda _: table, text, flags=re.DOTALL)
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
