"""Cautions about valid scenario settings that are probably mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anabranch.scenarios.quantities import nanoseconds


def of(table: Mapping[str, Any]) -> list[str]:
    """One line for each probable mistake in a normalised scenario."""
    return [line for path in table["path"] for line in _of_path(path, table["duration"])]


def _of_path(path: dict[str, Any], duration: str) -> Iterator[str]:
    for index, change in enumerate(path.get("change", [])):
        if nanoseconds(change["at"]) > nanoseconds(duration):
            yield (
                f"path.{path['name']}.change[{index}]: {change['at']} is after the end of the run "
                f"(duration {duration}); the change has no effect"
            )
    for where, link in (
        (f"path.{path['name']}", path),
        (f"path.{path['name']}.reverse", path.get("reverse", {})),
    ):
        delay, jitter = link.get("delay"), link.get("jitter")
        if delay is not None and jitter is not None and nanoseconds(jitter) > nanoseconds(delay):
            yield (
                f"{where}: the jitter ({jitter}) exceeds the delay ({delay}); negative delays "
                "count as zero"
            )
