"""The report of a twin: one HTML file, its figure, the scenario, and the numbers as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from anabranch._core import __version__
from anabranch.files import write_whole
from anabranch.reports import page, pictures
from anabranch.twins import comparison, drawing
from anabranch.twins.fit import Fitted


def save(fitted: Fitted, files: Sequence[str], folder: Path) -> None:
    """Write ``report.html``, ``twin.toml``, ``twin.json`` and the figure.

    Raises:
        InputError: if the folder cannot be written.
    """
    figure = drawing.draw(fitted)
    contents = pictures.files_of("twin", figure)
    about = comparison.as_json(fitted, files)
    shown = page.drawing(
        "The twin compared with the capture", drawing.CAPTION, figure, contents["twin.svg"]
    )
    html = page.template("twin.html").render(
        name=", ".join(Path(each).name for each in files),
        version=__version__,
        finding=comparison.finding(fitted),
        notes=fitted.twin.seen.notes,
        paths=comparison.paths(fitted),
        compared=comparison.table(fitted),
        scenario=fitted.toml,
        drawings=[shown],
    )
    contents["twin.toml"] = fitted.toml.encode()
    contents["twin.json"] = f"{json.dumps(about, indent=2, ensure_ascii=False)}\n".encode()
    write_whole(folder, contents | {"report.html": html.encode()})
