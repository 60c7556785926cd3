"""Pages of the site that are made when it is built: reference, notebooks, files of the repository.

MkDocs runs this script (the plugin gen-files); nothing that it writes is kept in docs/.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import mkdocs_gen_files
from links import COPIES, ROOT, shown_files
from notebooks import notebooks
from playground import files, palette
from reference import commands, plans, python, rust, scenarios

from anabranch import _core
from anabranch.sweeps.schema import PLAN

NOT_FOUND = "---\nsearch: { exclude: true }\n---\n\n"
"""The head of a page that the search leaves out."""

WIDE = "---\nhide: [navigation, toc]\n---\n\n"
"""The head of the front page, which has the whole width."""

LANGUAGES = {".py": "python", ".pyi": "python", ".rs": "rust", ".toml": "toml"}


def write(page: str, text: str) -> None:
    """Write a page of the site."""
    with mkdocs_gen_files.open(page, "w") as file:
        file.write(text)


def write_bytes(page: str, data: bytes) -> None:
    """Write a page or an image of the site."""
    with mkdocs_gen_files.open(page, "wb") as file:
        file.write(data)


for page, origin in COPIES.items():
    head = WIDE if page == "index.md" else ""
    write(page, head + (ROOT / origin).read_text(encoding="utf-8"))
for shown in shown_files():
    name = shown.relative_to(ROOT).as_posix()
    code = shown.read_text(encoding="utf-8")
    write(
        f"source/{name}.md",
        f"{NOT_FOUND}# {name}\n\n````{LANGUAGES.get(shown.suffix, 'text')}\n{code}\n````\n",
    )
write("reference/commands.md", commands())
write("reference/scenario.md", scenarios())
write("reference/plan.md", plans())
write("reference/python.md", python())
write("reference/rust.md", rust(ROOT))
write("reference/scenario.schema.json", _core.json_schema())
write("reference/plan.schema.json", json.dumps(PLAN, indent=2, ensure_ascii=False))
write("assets/palette.css", palette())
for name, data in files():
    write_bytes(name, data)
for name, data in notebooks().items():
    write_bytes(f"tutorial/{name}", data)
