"""The list of all entries, by name."""

from __future__ import annotations

from importlib import import_module

from anabranch.errors import InputError, unknown
from anabranch.gallery.entry import Entry

_MODULES = {
    "nsdi12-fig7": "nsdi12_fig7",
    "cs244-bandwidth-ratio": "cs244_bandwidth_ratio",
    "cs244-jitter": "cs244_jitter",
    "nsdi12-fig4": "nsdi12_fig4",
    "nsdi12-scenarios": "nsdi12_scenarios",
    "nsdi11-lia": "nsdi11_lia",
    "conext12-olia": "conext12_olia",
    "balia": "balia",
    "sigcomm11-fattree": "sigcomm11_fattree",
    "conext13-design": "conext13_design",
    "conext17-ecf": "conext17_ecf",
    "csws14-schedulers-bulk": "csws14_schedulers_bulk",
    "csws14-schedulers-applimited": "csws14_schedulers_applimited",
    "csws14-nornet": "csws14_nornet",
    "ferlin14-bufferbloat": "ferlin14_bufferbloat",
    "ferlin14-drepas": "ferlin14_drepas",
    "grinnemo15-cloud-latency": "grinnemo15_cloud_latency",
    "networking16-blest": "networking16_blest",
    "rfc8382-sbd": "rfc8382_sbd",
    "veerman12-lan": "veerman12_lan",
    "veerman12-wan": "veerman12_wan",
    "veerman12-fairness": "veerman12_fairness",
    "veerman12-unscaled": "veerman12_unscaled",
    "veerman12-parallel": "veerman12_parallel",
    "ipv4-ipv6": "ipv4_ipv6",
    "cellnet12-handover": "cellnet12_handover",
    "icc16-redundant": "icc16_redundant",
    "imc13-wireless": "imc13_wireless",
    "icnp12-wvegas": "icnp12_wvegas",
    "field-reports": "field_reports",
    "linux-today": "linux_today",
    "linux-small-path": "linux_small_path",
}

_LIVE = {"nsdi12-fig7": "nsdi12_fig7_live"}
"""Modules of real-time entries, by the name of the entry in virtual time."""

CALIBRATION = "calibration"
_MORE = {CALIBRATION: "calibration"} | {f"{name}-live": module for name, module in _LIVE.items()}
"""Entries that `list` and `gallery` leave out."""


def names() -> list[str]:
    """Names of the entries that `list` and `gallery` show."""
    return list(_MODULES)


def all_names() -> list[str]:
    """Names of all entries, including those that `list` and `gallery` leave out."""
    return [*_MODULES, *_MORE]


def entry(name: str) -> Entry:
    """The entry with a name.

    Raises:
        InputError: if there is none; the message suggests the nearest name.
    """
    modules = _MODULES | _MORE
    if name not in modules:
        raise unknown("unknown entry", name, _MODULES, listed_by="anabranch list")
    found = import_module(f"anabranch.gallery.entries.{modules[name]}").ENTRY
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
