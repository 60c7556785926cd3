"""Views of results in notebooks: a line, a table and a figure."""

from __future__ import annotations

import base64
import html
from typing import TYPE_CHECKING

from anabranch.reports import pictures

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


def page(head: str, table: pl.DataFrame, figure: Figure | None = None) -> str:
    """The HTML that a notebook shows."""
    parts = [f"<p>{html.escape(head)}</p>", table._repr_html_()]
    if figure is not None:
        image = base64.b64encode(pictures.rendered(figure, "svg")).decode()
        parts.append(f'<img src="data:image/svg+xml;base64,{image}" style="max-width: 100%">')
    return "".join(parts)
