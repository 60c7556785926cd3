"""The list of all entries, by name, and how long they take."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from anabranch.errors import InputError, unknown
from anabranch.gallery import registry
from anabranch.gallery.entry import Entry

SECONDS: dict[str, tuple[float, float]] = {
    "nsdi12-fig7": (24, 82),
    "cs244-bandwidth-ratio": (38, 264),
    "cs244-jitter": (24, 123),
    "mininet-truesize": (40, 63),
    "nsdi12-fig4": (20, 116),
    "nsdi12-scenarios": (40, 845),
    "nsdi11-lia": (39, 204),
    "conext12-olia": (14, 190),
    "balia": (34, 325),
    "sigcomm11-fattree": (30, 306),
    "conext13-design": (70, 2800),
    "conext17-ecf": (22, 179),
    "csws14-schedulers-bulk": (39, 2300),
    "csws14-schedulers-applimited": (1.9, 38),
    "csws14-nornet": (1.3, 10),
    "ferlin14-bufferbloat": (0.83, 6),
    "ferlin14-drepas": (6, 59),
    "grinnemo15-cloud-latency": (21, 98),
    "networking16-blest": (36, 90),
    "rfc8382-sbd": (12, 81),
    "veerman12-lan": (58, 1131),
    "veerman12-wan": (89, 945),
    "veerman12-fairness": (74, 628),
    "veerman12-unscaled": (71, 945),
    "veerman12-parallel": (9.2, 118),
    "ipv4-ipv6": (10, 34),
    "cellnet12-handover": (3.4, 28),
    "icc16-redundant": (3, 50),
    "imc13-wireless": (10, 32),
    "icnp12-wvegas": (10, 37),
    "queue16-bbr": (60, 145),
    "field-reports": (53, 432),
    "failing-paths": (4, 4),
    "restored-paths": (3, 20),
    "linux-today": (360, 7800),
    "linux-small-path": (180, 3200),
}
"""The entries that `list` and `gallery` show, with the time of the quick and the full tier in s.

The full tier is half of the processor time of its runs (docs/gallery/verdicts.json), or was
measured on two cores, without the runs on other systems. The quick tier is in proportion to the
simulated time. Live entries take the time of their runs.
"""

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
        raise unknown("unknown entry", name, names(), listed_by="anabranch list")
    module = f"gallery.entries.{name.replace('-', '_')}"
    if name == CALIBRATION:
        module = "calibration.entry"
    found = import_module(f"anabranch.{module}").ENTRY
    assert isinstance(found, Entry)
    words = registry.entry(name)
    if words.headline and words.headline not in (claim.id for claim in found.claims):
        raise InputError(
            f'the entry {name}: headline = "{words.headline}" is not one of its claims'
        )
    return replace(found, id=name, words=words)


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
