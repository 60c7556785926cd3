"""Write the gallery's scenarios for the playground: `playground/src/gallery/NAME.toml`.

    python tools/generate/playground_gallery.py

Of each entry in virtual time, it takes the first cell with Multipath TCP over two to six paths.
"""

import json
from pathlib import Path

from anabranch.gallery import catalogue
from anabranch.gallery.entry import Entry

FOLDER = Path(__file__).resolve().parents[2] / "playground" / "src" / "gallery"
LARGEST = 30_000
"""Largest scenario in bytes: traces make some scenarios large."""


def scenario(entry: Entry) -> str | None:
    """The scenario of the first fitting cell in TOML; `None` if no cell fits."""
    for cell in entry.cells(entry.quick):
        read = cell.task(1).scenario
        settings = read.settings
        main = settings["connection"][0]
        fits = main["protocol"] == "mptcp" and len(main["paths"]) > 1
        text = read.to_toml()
        if fits and len(settings["path"]) <= 6 and len(text) < LARGEST:
            return text
    return None


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.toml"):
        old.unlink()
    titles = {}
    for name in catalogue.names():
        entry = catalogue.entry(name)
        if not entry.is_live and (text := scenario(entry)) is not None:
            (FOLDER / f"{name}.toml").write_text(text, encoding="utf-8")
            titles[name] = entry.row.title
    (FOLDER / "titles.json").write_text(json.dumps(titles, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
