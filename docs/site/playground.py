"""The playground on the site, if it was built: its files, and a lesson on the front page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "python" / "anabranch" / "playground" / "site"
"""Where `make playground` builds it."""

_FRAME = """<iframe class="playground" src="playground/index.html?embed#lesson=slow-3g"
title="Lesson 1 of the playground: why adding 3G slows WiFi"></iframe>

[Open the playground](playground.md): seven lessons, and your own scenarios.

"""
_BEFORE = "![Goodput and delay"
"""The first picture of the front page; the lesson stands above it."""


def files() -> Iterator[tuple[str, bytes]]:
    """The files of the playground, by their place on the site; none if it was not built."""
    for file in sorted(SITE.rglob("*")):
        if file.is_file():
            yield f"playground/{file.relative_to(SITE).as_posix()}", file.read_bytes()


def with_lesson(front_page: str) -> str:
    """The front page with the first lesson, if the playground was built."""
    if not (SITE / "index.html").is_file():
        return front_page
    before, mark, after = front_page.partition(_BEFORE)
    assert mark, "the front page has its picture"
    return before + _FRAME + mark + after
