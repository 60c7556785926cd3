"""The list of all entries, by name, and how long they take."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from anabranch.errors import InputError, unknown
from anabranch.forms import form, is_number
from anabranch.gallery import registry
from anabranch.gallery.data import rows_of
from anabranch.gallery.entry import Entry, Experiment


def _are_times(given: Any) -> bool:
    return isinstance(given, list) and len(given) == 2 and all(map(is_number, given))


TIMES = form("two times in s, [quick, full]", _are_times)
SECONDS: Mapping[str, tuple[float, float]] = rows_of("catalogue.toml", TIMES)
"""The entries that `list` and `gallery` show, with the time of the quick and the full tier in s."""

_LIVE = ("nsdi12-fig7", "failing-paths")
"""Entries in virtual time that have a form in real time."""

CALIBRATION = "calibration"
_MORE = (CALIBRATION, *(f"{name}-live" for name in _LIVE))
"""Entries that `list` and `gallery` leave out."""


def names() -> list[str]:
    """Names of the entries that `list` and `gallery` show."""
    return list(SECONDS)


def all_names() -> list[str]:
    """Names of all entries, including those that `list` and `gallery` leave out."""
    return [*SECONDS, *_MORE]


def entry(name: str) -> Entry:
    """The entry with a name.

    Raises:
        InputError: if there is none; the message suggests the nearest name.
    """
    if name not in all_names():
        if name in registry.registered().entries:
            raise InputError(f"the entry {name} has no line in gallery/catalogue.toml")
        raise unknown("unknown entry", name, names(), listed_by="anabranch list")
    module = f"gallery.entries.{name.replace('-', '_')}"
    if name == CALIBRATION:
        module = "calibration.entry"
    found = import_module(f"anabranch.{module}").EXPERIMENT
    assert isinstance(found, Experiment)
    return found.with_row(name, registry.entry(name))


def live(name: str) -> Entry:
    """The real-time form of a named entry, or the entry itself if it runs in real time.

    Raises:
        InputError: if there is none; the message lists the entries that have one.
    """
    found = entry(name)
    if name in _LIVE:
        return entry(f"{name}-live")
    if not found.is_live:
        available = ", ".join(_LIVE)
        raise InputError(f"--live: {name} runs in virtual time only; available: {available}")
    return found


def duration(seconds: float) -> str:
    """A time of a tier in words, such as ``"40 s"``, ``"12 min"`` or ``"1.5 h"``."""
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
