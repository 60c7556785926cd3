"""Messages on standard error, and the width of its terminal."""

from __future__ import annotations

import os
import sys
import textwrap

from anabranch.errors import visible


def complain(text: str) -> None:
    """Print a message on standard error: wrapped between words on a terminal, else one line."""
    line = f"anabranch: {visible(' '.join(text.split()))}"
    print(wrapped(line) if sys.stderr.isatty() else line, file=sys.stderr)


def wrapped(line: str) -> str:
    """The line, broken between words to fit the terminal. Words stay whole, to be copied."""
    return textwrap.fill(line, _terminal_width(), break_long_words=False, break_on_hyphens=False)


def _terminal_width() -> int:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    return os.get_terminal_size(sys.stderr.fileno()).columns or 80
