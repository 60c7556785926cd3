"""Flows: the directions of a scenario's connections in which its workloads' data goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def flows(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The flows of a normalised scenario, in the order in which the tables of a run number them.

    Each flow has the keys of its connection. A connection that sends both ways has two flows, whose
    names end with their directions.
    """
    return [flow for connection in settings["connection"] for flow in _of(connection)]


def _of(connection: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if connection["direction"] != "both":
        yield dict(connection)
        return
    for direction in ("download", "upload"):
        name = f"{connection['name']} {direction}"
        yield {**connection, "name": name, "direction": direction}
