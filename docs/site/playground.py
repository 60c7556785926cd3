"""The playground on the site: its colours, and if it was built, its files, lessons and links to it.

A line `<!-- lesson: NAME -->` of a page becomes the lesson, live. Without the playground, it stays
a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "python" / "anabranch" / "playground" / "site"
"""Where `make playground` builds it."""

_SOURCES = ROOT / "playground" / "src"
_LESSON = re.compile(r"^<!-- lesson: (.*) -->$", re.MULTILINE)
_NAME_AND_TITLE = re.compile(r'^  id: "(.+)",\n  title: "(.+)",$', re.MULTILINE)
_FIRST_COMMAND = re.compile(r"^```sh\n.*?^```\n", re.MULTILINE | re.DOTALL)


def files() -> Iterator[tuple[str, bytes]]:
    """The files of the playground, by their place on the site; none if it was not built."""
    for file in sorted(SITE.rglob("*")):
        if file.is_file():
            yield f"playground/{file.relative_to(SITE).as_posix()}", file.read_bytes()


def palette() -> str:
    """The colours of the playground's two themes, as a style sheet for those of the site."""
    style = (_SOURCES / "style.css").read_text(encoding="utf-8")
    themes = dict(
        re.findall(r'^:root\[data-theme="(\w+)"\] (\{.*?^\})', style, re.MULTILINE | re.DOTALL)
    )
    schemes = {"default": themes["light"], "slate": themes["dark"]}
    return "\n".join(f'[data-md-color-scheme="{name}"] {rules}' for name, rules in schemes.items())


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Called by MkDocs for each page."""
    return with_playground(markdown, page.file.src_uri)


def with_playground(markdown: str, page: str) -> str:
    """The text of a page with its lessons. A page of the gallery has a link to its scenario."""
    if not (SITE / "index.html").is_file():
        return markdown
    address = "../" * page.count("/") + "playground/index.html"
    folder, _, name = page.removesuffix(".md").rpartition("/")
    if folder == "gallery" and (_SOURCES / "gallery" / f"{name}.toml").is_file():
        link = f"\nWatch one of its scenarios [in the playground]({address}#scenario={name}).\n"
        markdown = _FIRST_COMMAND.sub(lambda found: found[0] + link, markdown, count=1)
    return _LESSON.sub(lambda found: _frame(found[1], address), markdown)


def _frame(lesson: str, address: str) -> str:
    title = _titles()[lesson]
    return (
        f'<iframe class="playground" loading="lazy" src="{address}?embed#lesson={lesson}" '
        f'title="Lesson of the playground: {title}"></iframe>\n\n'
        f"*Live: [{title}]({address}#lesson={lesson}), a lesson of the playground.*\n"
    )


def _titles() -> dict[str, str]:
    """The titles of the lessons by their names."""
    texts = [file.read_text(encoding="utf-8") for file in (_SOURCES / "lessons").glob("*.ts")]
    return dict(_NAME_AND_TITLE.findall("\n".join(texts)))
