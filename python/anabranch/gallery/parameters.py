"""The table of an entry's parameters, which quotes the scenarios of the entry's cells.

A row has the form ``name | value | source``. Without a source, this project chose the value. A line
such as ``<wifi_3g_stack>`` stands for the rows of this name in ``parameters.toml``, which several
entries have. Values quote settings of the scenarios, so the table cannot disagree with the runs:

* ``<path.wifi>`` is the path `wifi` in words, such as ``8 Mbit/s, 20 ms RTT ± 1 ms, 54 packets``;
* ``<path.wifi.rtt>`` is twice its delay;
* ``<connection.*.send_buffer>`` are the send buffers of all connections, such as ``1, 2 MB``;
* ``<path.wifi in *_slow>`` is the path in cells whose key ends in ``_slow``;
* ``<duration in *_slow>`` are the durations of the runs;
* ``<congestion control>`` is the congestion control of TCP and of Multipath TCP.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any

from anabranch.errors import InputError, unknown
from anabranch.gallery.data import rows_of, template
from anabranch.scenarios.quantities import nanoseconds
from anabranch.scenarios.scenario import TomlTable

THIS_PROJECT = "this project"

SHARED: Mapping[str, str] = rows_of("parameters.toml", template)
"""Rows that several entries have, by name."""

_NAMES = {
    "new_reno": "NewReno",
    "wvegas": "wVegas",
    "cubic_linux": "CUBIC of Linux",
    "lia_linux": "LIA of Linux",
} | {name: name.upper() for name in ("cubic", "lia", "olia", "balia")}
_PROTOCOLS = {"tcp": "TCP", "mptcp": "MPTCP"}


@dataclass(frozen=True)
class Parameter:
    """A number that an experiment depends on, and its source."""

    name: str
    value: str
    source: str = THIS_PROJECT
    """A citation, or ``"this project"`` if the project chose the number."""


def with_shared_rows(table: str) -> str:
    """The text of a table, with the shared rows that it names.

    Raises:
        InputError: if ``parameters.toml`` lacks them.
    """

    def rows(found: re.Match[str]) -> str:
        if found[1] not in SHARED:
            raise unknown("parameters: unknown shared rows", found[1], SHARED, "parameters.toml")
        return SHARED[found[1]].strip()

    return re.sub("^<(.+)>$", rows, table, flags=re.MULTILINE)


def parameters(table: str) -> tuple[Parameter, ...]:
    """Parameters from the rows of a table. An indented line continues the row above it.

    Raises:
        InputError: if a row has another form.
    """
    rows = re.sub(r"\n +", " ", table.strip()).splitlines()
    return tuple(map(_parameter, rows))


def _parameter(row: str) -> Parameter:
    name, *rest = row.split(" | ")
    if len(rest) not in (1, 2):
        raise InputError(f'parameters: "{row}" needs the form: name | value | source')
    return Parameter(name, *rest)


def quoted(table: Iterable[Parameter], scenarios: Mapping[str, TomlTable]) -> tuple[Parameter, ...]:
    """The parameters with their quotations of scenarios, which are named by the keys of cells.

    Raises:
        InputError: if no scenario has a setting that a value quotes.
    """

    def quotation(found: re.Match[str]) -> str:
        key, _, cells = found[1].partition(" in ")
        chosen = [each for name, each in scenarios.items() if fnmatchcase(name, cells or "*")]
        words = _quotation(key, chosen)
        if not words:
            raise InputError(f"<{found[1]}>: no scenario of this entry has this setting")
        return words

    return tuple(replace(row, value=re.sub("<(.+?)>", quotation, row.value)) for row in table)


def _quotation(key: str, scenarios: Sequence[TomlTable]) -> str:
    if key == "congestion control":
        return _congestion_control(scenarios)
    if key == "duration":
        return _listed(each["duration"] for each in scenarios)
    array, _, pattern = key.partition(".")
    tables = [each for scenario in scenarios for each in scenario.get(array, ())]
    if array == "path":
        tables = [each | {"rtt": _rtt(each)} for each in tables]
    if array == "path" and "." not in pattern:
        return _path([each for each in tables if fnmatchcase(each["name"], pattern)])
    leaves = (leaf for each in tables for leaf in _leaves(each["name"], each))
    return _listed(value for name, value in leaves if fnmatchcase(name, pattern))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        yield name, value
        return
    for key, each in value.items():
        yield from _leaves(f"{name}.{key}", each)


def _congestion_control(scenarios: Sequence[TomlTable]) -> str:
    connections = [each for scenario in scenarios for each in scenario["connection"]]
    found = {
        words: _listed(
            each["congestion_control"] for each in connections if each["protocol"] == protocol
        )
        for protocol, words in _PROTOCOLS.items()
    }
    return "; ".join(f"{words}: {controls}" for words, controls in found.items() if controls)


def _path(paths: Sequence[TomlTable]) -> str:
    """Paths with the same name in words: rate, round-trip time, jitter, queue and loss."""
    if not paths:
        return ""
    rate, rtt, jitter, queue, loss = (
        _listed(path[key] for path in paths if key in path)
        for key in ("rate", "rtt", "jitter", "limit", "loss")
    )
    parts = (
        rate,
        f"{rtt} RTT" if jitter == "0 s" else f"{rtt} RTT ± {jitter}",
        queue if queue.endswith("packets") else f"{queue} of queue",
        "" if loss == "0 %" else f"loss {loss}" if "," in loss else f"{loss} loss",
    )
    return ", ".join(part for part in parts if part)


def _rtt(path: TomlTable) -> str:
    return f"{2 * nanoseconds(path['delay']) / 1e6:g}ms"


def _listed(values: Iterable[Any]) -> str:
    """Different values as a list in which a unit follows its numbers, such as ``1, 2 MB``."""
    pairs = [_split(value) for value in dict.fromkeys(map(str, values))]
    return ", ".join(
        ", ".join(number for number, _ in group) + unit
        for unit, group in groupby(pairs, lambda pair: pair[1])
    )


def _split(value: str) -> tuple[str, str]:
    """The number of a quantity and its unit after a space; or a name without a unit."""
    quantity = re.fullmatch(r"([\d.]+)([A-Za-z%/]+)", value)
    if quantity is None:
        return _NAMES.get(value, value), ""
    unit = "µs" if quantity[2] == "us" else quantity[2]
    return quantity[1], f" {unit}"
