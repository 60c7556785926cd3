"""Pages of reports: templates, embedded assets, and links in text.

A page is a single file that contains its style, its scripts and its drawings.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup, escape

from anabranch.reports import charts, pictures
from anabranch.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_UPLOT = "uPlot 1.6.32, https://github.com/leeoniya/uPlot"

_LINKED = re.compile(
    r"(?P<url>https?://[^\s,;)]+)"
    r"|(?P<bare>github\.com/[\w./-]*[\w/-])"
    r"|(?:doi:\s?)(?P<doi>10\.\d{4,}/[^\s,;)]+)"
    r"|(?P<claim>[A-Z]+\d*[a-z]*\.?\w*-[\w-]+)"
    r"|RFC (?P<rfc>\d{3,5})(?: §(?P<section>\d+(?:\.\d+)*))?"
    r"|(?P<venue>[A-Z][A-Za-z0-9]+)'(?P<year>\d\d)"
)


@dataclass(frozen=True)
class Drawing:
    """A picture in a page, and the charts that replace it where JavaScript runs."""

    title: str
    caption: str
    picture: str
    """The SVG as a data URL."""
    charts: Markup
    """The charts for ``charts.js`` as JSON; an empty list if there is only the picture."""


def drawing(title: str, caption: str, figure: Figure, svg: bytes | None = None) -> Drawing:
    """A figure for a page. If part of the figure cannot be translated, it has no charts.

    `svg` is the figure as an SVG, if it was rendered before, which takes long.
    """
    picture = base64.b64encode(svg or pictures.rendered(figure, "svg")).decode()
    try:
        translated = [chart for axes in figure.axes if (chart := charts.translate(axes))]
    except charts.NotTranslated:
        translated = []
    return Drawing(
        title,
        caption,
        f"data:image/svg+xml;base64,{picture}",
        Markup(charts.as_json(translated)),
    )


@cache
def template(name: str) -> jinja2.Template:
    """The template of a page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("anabranch.reports"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals["asset"] = asset
    environment.globals["uplot"] = f"{_UPLOT}\n\n{asset('uplot/LICENSE')}"
    environment.filters["linked"] = linked
    environment.filters["counted"] = counted
    return environment.get_template(name)


@cache
def asset(name: str) -> Markup:
    """The text of a file in the folder ``assets``, which pages embed."""
    file = files("anabranch.reports").joinpath("assets", name)
    return Markup(file.read_text(encoding="utf-8"))


def linked(
    text: str, references: Sequence[str] = (), claims: Sequence[str] = (), page: str = ""
) -> Markup:
    """Text with links for RFCs, DOIs, web addresses, and the names of these claims.

    `page` is the address of the page with the claims, by default the page that contains the text.

    A short form like ``NSDI'12`` links to the list of references (``#reference-1``) if one of the
    references has this venue and year.
    """
    done, parts = 0, []
    for found in _LINKED.finditer(text):
        claim = found["claim"]
        address = f"{page}#{claim}" if claim in claims else _address(found, references)
        if address:
            parts.append(escape(text[done : found.start()]))
            parts.append(Markup('<a href="{}">{}</a>').format(address, found.group()))
            done = found.end()
    return Markup("").join([*parts, escape(text[done:])])


def _address(found: re.Match[str], references: Sequence[str]) -> str | None:
    parts = found.groupdict()
    if parts["url"]:
        return str(parts["url"])
    if parts["bare"]:
        return f"https://{parts['bare']}"
    if parts["doi"]:
        return f"https://doi.org/{parts['doi']}"
    if parts["rfc"]:
        section = f"#section-{parts['section']}" if parts["section"] else ""
        return f"https://www.rfc-editor.org/rfc/rfc{parts['rfc']}{section}"
    for number, reference in enumerate(references if parts["venue"] else (), start=1):
        # Words may stand between venue and year: "CS244, Stanford, 2015".
        if re.search(rf"\b{parts['venue']}\b.*\b(?:19|20){parts['year']}\b", reference):
            return f"#reference-{number}"
    return None
