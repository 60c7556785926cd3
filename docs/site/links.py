"""Links to files of the repository that are no pages of the site.

Such a file becomes a page that shows it, and a notebook the page with its outputs. A link to a
folder becomes plain text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NOTEBOOKS = ROOT / "examples/notebooks"
"""Each notebook is a page of the tutorial; see `notebooks`."""

COPIES = {
    "index.md": "README.md",
    "explanation/architecture.md": "ARCHITECTURE.md",
    "explanation/contributing.md": "CONTRIBUTING.md",
    "explanation/changelog.md": "CHANGELOG.md",
}
"""Pages that show a file from outside of docs/, and that file."""

_LINK = re.compile(
    r"\[(?P<text>[^\]]*)\]"
    r"(?:\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)|: (?P<named>\S+)$)",
    re.MULTILINE,
)
"""A link with its target, or the definition of a named target on a line of its own."""
_PAGES = {origin: page for page, origin in COPIES.items()}


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Called by MkDocs for each page."""
    return rewritten(markdown, page.file.src_uri)


def rewritten(markdown: str, page: str) -> str:
    """The text of a page with links that lead to pages of the site."""
    return _LINK.sub(lambda link: _replaced(link, page), markdown)


def _replaced(link: re.Match[str], page: str) -> str:
    target = _file(link["target"] or link["named"], page)
    if target is None:
        return link[0]
    if target.is_dir() and not (target / "README.md").exists():
        return link["text"]
    place = os.path.relpath(_page_of(target), Path(page).parent)
    if link["named"]:
        return f"[{link['text']}]: {place}"
    return f"[{link['text']}]({place}{link['anchor'] or ''})"


def _file(target: str, page: str) -> Path | None:
    """The file or folder that a relative link leads to, unless it is a page already."""
    if "://" in target or target.startswith(("mailto:", "/")):
        return None
    origin = COPIES.get(page)
    folder = ROOT if origin else (DOCS / page).parent
    file = Path(os.path.normpath(folder / target))
    if not file.exists() or not file.is_relative_to(ROOT):
        return None
    return file


def _page_of(file: Path) -> str:
    """The page of the site that shows a file."""
    name = file.relative_to(ROOT).as_posix()
    if name in _PAGES:
        return _PAGES[name]
    if file.parent == NOTEBOOKS:
        return f"tutorial/{file.stem}.md"
    if file.is_dir():
        file = file / "README.md"
    if file.is_relative_to(DOCS) and (file.suffix == ".md" or file.suffix in (".png", ".svg")):
        return file.relative_to(DOCS).as_posix()
    return f"source/{name}.md"


def shown_files() -> Iterator[Path]:
    """The files of the repository that pages link to and that are no pages."""
    pages = {page: ROOT / origin for page, origin in COPIES.items()}
    pages |= {file.relative_to(DOCS).as_posix(): file for file in DOCS.rglob("*.md")}
    found = {
        target
        for page, file in pages.items()
        for link in _LINK.finditer(file.read_text(encoding="utf-8"))
        if (target := _file(link["target"] or link["named"], page)) and target.is_file()
    }
    yield from sorted(file for file in found if _page_of(file).startswith("source/"))
