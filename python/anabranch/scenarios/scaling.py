"""Scale quantities of a scenario, to find out how much its results depend on them."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

from anabranch import _core
from anabranch.scenarios import loading
from anabranch.scenarios.keys import ARRAYS
from anabranch.scenarios.quantities import bits_per_second, byte_count, nanoseconds, packets
from anabranch.scenarios.scenario import TomlTable

_READERS: tuple[tuple[Callable[[str], int], str], ...] = (
    (nanoseconds, "ns"),
    (bits_per_second, "bit/s"),
    (byte_count, "B"),
    (packets, "packets"),
)


def scaled(scenario: _core.Scenario, pattern: str, factor: float) -> _core.Scenario:
    """The scenario with the quantities that match a pattern multiplied by a factor.

    A pattern is a key in which ``*`` stands for any text: ``"path.wifi*.delay"`` is the delay of
    the path ``wifi`` in both directions, and ``"connection.*_buffer"`` are all buffers. Values
    without a unit, such as ``"infinite"``, do not change.
    """
    table = dict(scenario.settings)
    for array in ARRAYS:
        table[array] = [
            _scaled(each, f"{array}.{each['name']}", pattern, factor)
            for each in table.get(array, ())
        ]
    return loading.of_table(table, pattern, policies=scenario.policies)


def _scaled(table: TomlTable, name: str, pattern: str, factor: float) -> TomlTable:
    return {
        key: _scaled(value, f"{name}.{key}", pattern, factor)
        if isinstance(value, dict)
        else _multiplied(value, factor)
        if fnmatchcase(f"{name}.{key}", pattern)
        else value
        for key, value in table.items()
    }


def _multiplied(value: Any, factor: float) -> Any:
    """A quantity times a factor, at least one of its smallest unit if it is not 0."""
    if not isinstance(value, str):
        return value
    for read, unit in _READERS:
        try:
            amount = read(value)
        except ValueError:
            continue
        return f"{max(min(amount, 1), round(amount * factor))}{unit}"
    return value
