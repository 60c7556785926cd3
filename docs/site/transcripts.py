"""The outputs on pages of the documentation: made by running the commands.

    python docs/site/transcripts.py [--check]

In a block ```console, each line that begins with `$ ` is a command, and what follows is its output.
A block ```toml title="FILE" is a file that the commands find. With --check the pages stay as they
are, and the script fails if an output is another one. Wall times do not count.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
PAGES = [DOCS / "tutorial/index.md"]

_FILE = re.compile(r'^```toml title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WALL_TIMES = re.compile(r"\d[\d,.]* (?:s\b|CPU s\b|M per CPU s)|in [\d.]+ s")


def main() -> int:
    """Write the outputs, or compare them."""
    failed = 0
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        new = with_outputs(old)
        if "--check" not in sys.argv:
            page.write_text(new, encoding="utf-8")
        elif (difference := first_difference(old, new)) is not None:
            print(f"{page}: {difference}; run `make transcripts`", file=sys.stderr)
            failed = 1
    return failed


def with_outputs(text: str) -> str:
    """The page with the outputs of its commands."""
    with tempfile.TemporaryDirectory() as folder:
        for file in _FILE.finditer(text):
            (Path(folder) / file[1]).write_text(file[2], encoding="utf-8")
        return _CONSOLE.sub(lambda block: _made(block[1], folder), text)


def _made(block: str, folder: str) -> str:
    commands = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    outputs = [f"$ {command}\n{_output(command, folder)}" for command in commands]
    return f"```console\n{''.join(outputs)}```"


def _output(command: str, folder: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=os.environ | {"COLUMNS": "80", "PATH": path},
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.rstrip().splitlines())


def first_difference(old: str, new: str) -> str | None:
    """The first line that differs, wall times aside."""
    for line, other in zip(old.splitlines(), new.splitlines(), strict=False):
        if _WALL_TIMES.sub("TIME", line) != _WALL_TIMES.sub("TIME", other):
            return f'"{line}" is now "{other}"'
    return (
        None if len(old.splitlines()) == len(new.splitlines()) else "an output has another length"
    )


if __name__ == "__main__":
    sys.exit(main())
