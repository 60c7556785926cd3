"""Play all packet scripts against the engine and this host's kernel; write the table of results.

The table stands between two markers in docs/conformance.md.
"""

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conformance.md"
SCRIPTS = "conformance"
BEGIN, END = "<!-- results: make conformance -->", "<!-- end of results -->"
WORDS = {"ok": "yes", "failed": "**no**", "skipped": "–"}


def play(*options: str) -> dict[str, dict[str, Any]]:
    """Play all scripts; results by file."""
    command = [sys.executable, "-m", "anabranch", "conform", "--json", *options, SCRIPTS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return {result["file"]: result for result in json.loads(done.stdout)}


def cell(result: dict[str, Any]) -> str:
    """The verdict, with the reason of a difference."""
    if result["verdict"] == "differs":
        return f"no: {result['reason']}"
    if result["verdict"] == "skipped":
        return f"–: {result['reason']}"
    return WORDS[result["verdict"]]


def table(engine: dict[str, dict[str, Any]], kernel: dict[str, dict[str, Any]]) -> str:
    """One row for each script."""
    release = platform.release().split("-")[0]
    lines = [f"| script | subject | engine | Linux {release} |", "|---|---|---|---|"]
    for file, result in engine.items():
        name = file.removeprefix(f"{SCRIPTS}/").removesuffix(".pkt")
        link = f"[{name}](../{file})"
        lines.append(f"| {link} | {result['shows']} | {cell(result)} | {cell(kernel[file])} |")
    passed = sum(result["verdict"] == "ok" for result in engine.values())
    others = sum(result["verdict"] == "ok" for result in kernel.values())
    lines.append("")
    lines.append(f"The engine passes {passed} of {len(engine)} scripts, Linux {release} {others}.")
    return "\n".join(lines)


def main() -> None:
    """Rewrite the table."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    results = table(play(), play("--live"))
    PAGE.write_text(f"{before}{BEGIN}\n\n{results}\n\n{END}{after}", encoding="utf-8")
    print(results.splitlines()[-1])


if __name__ == "__main__":
    main()
