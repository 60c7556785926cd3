"""The list of all entries, by name."""

from __future__ import annotations

from importlib import import_module

from anabranch.errors import InputError, unknown
from anabranch.gallery.entry import Entry

_NAMES = (
    "nsdi12-fig7",
    "cs244-bandwidth-ratio",
    "cs244-jitter",
    "nsdi12-fig4",
    "nsdi12-scenarios",
    "nsdi11-lia",
    "conext12-olia",
    "balia",
    "sigcomm11-fattree",
    "conext13-design",
    "conext17-ecf",
    "csws14-schedulers-bulk",
    "csws14-schedulers-applimited",
    "csws14-nornet",
    "ferlin14-bufferbloat",
    "ferlin14-drepas",
    "grinnemo15-cloud-latency",
    "networking16-blest",
    "rfc8382-sbd",
    "veerman12-lan",
    "veerman12-wan",
    "veerman12-fairness",
    "veerman12-unscaled",
    "veerman12-parallel",
    "ipv4-ipv6",
    "cellnet12-handover",
    "icc16-redundant",
    "imc13-wireless",
    "icnp12-wvegas",
    "field-reports",
    "linux-today",
    "linux-small-path",
)

_LIVE = ("nsdi12-fig7",)
"""Entries in virtual time that have a form in real time."""

CALIBRATION = "calibration"
_MORE = (CALIBRATION, *(f"{name}-live" for name in _LIVE))
"""Entries that `list` and `gallery` leave out."""


def names() -> list[str]:
    """Names of the entries that `list` and `gallery` show."""
    return list(_NAMES)


def all_names() -> list[str]:
    """Names of all entries, including those that `list` and `gallery` leave out."""
    return [*_NAMES, *_MORE]


def entry(name: str) -> Entry:
    """The entry with a name.

    Raises:
        InputError: if there is none; the message suggests the nearest name.
    """
    if name not in all_names():
        raise unknown("unknown entry", name, _NAMES, listed_by="anabranch list")
    module = f"gallery.entries.{name.replace('-', '_')}"
    if name == CALIBRATION:
        module = "calibration.entry"
    found = import_module(f"anabranch.{module}").ENTRY
    assert isinstance(found, Entry)
    return found


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
