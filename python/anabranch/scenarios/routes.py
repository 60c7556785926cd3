"""Routes: the links that the packets of a path cross."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Crossing:
    """A path whose link is part of a route."""

    path: str
    is_reversed: bool = False
    """Whether packets to the server cross the path's link to the client, and vice versa."""


def route(name: str, paths: Mapping[str, Mapping[str, Any]]) -> list[Crossing]:
    """The path itself and the paths that it goes via, from the client to the server.

    `paths` are the paths of a normalised scenario, by name.
    """
    via = paths[name].get("via", [])
    crossings = [Crossing(name)]
    for hop in [via] if isinstance(via, str) else via:
        if hop in paths:
            crossings += route(hop, paths)
            continue
        # A minus before the name of a path means the opposite direction.
        back = reversed(route(hop.removeprefix("-"), paths))
        crossings += [Crossing(each.path, not each.is_reversed) for each in back]
    return crossings
