"""Scenarios as typed objects.

The classes hold values, and this module writes them as TOML. Only the compiled core parses
scenarios: it fills in defaults, checks values, and explains errors. The TOML omits a field that is
`None`, so that the core's default applies. `anabranch schema` prints all keys with their defaults.

Quantities are strings with a unit, as in scenario files: ``"8Mbit/s"``, ``"20ms"``,
``"54packets"``, ``"200KiB"`` (1024 bytes each; ``kB`` is 1000), ``"1%"``.

A scheduler, congestion control or path manager can be your own class (see `anabranch.policy`).
``anabranch policies`` lists the names and parameters of the built-in policies.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from anabranch.scenarios import classes, custom
from anabranch.scenarios.classes import *  # noqa: F403  (its __all__ lists them)
from anabranch.scenarios.classes import TomlTable, Workload


class Scenario(classes.Scenario):  # noqa: D101
    __doc__ = classes.Scenario.__doc__

    def to_toml(self) -> str:
        """The scenario as TOML text."""
        return to_toml(table_of(self))

    def starting_at(self, start: str) -> Scenario:
        """A copy of the scenario in which every connection opens at the time `start`."""
        connections = (dataclasses.replace(each, start=start) for each in self.connections)
        return dataclasses.replace(self, connections=tuple(connections))


def to_toml(table: TomlTable) -> str:
    """A scenario of plain values as TOML text."""
    return "\n".join(_lines(table)).strip() + "\n"


def in_line(value: Any) -> str:
    """A value of a scenario as TOML on one line: tables as inline tables, with their kind first."""
    if isinstance(value, dict):
        items = sorted(value.items(), key=lambda item: item[0] != "kind")
        return f"{{ {', '.join(f'{key} = {in_line(each)}' for key, each in items)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_line, value))}]"
    return _literal(value)


_WRITTEN = (str, dict)
"""Types of a field that names a built-in policy."""


def table_of(value: Any) -> TomlTable:
    """The dataclass instance `value` as a TOML table, without fields that have their default.

    The user's own policies stay classes in it.
    """
    table: TomlTable = {"kind": value.kind} if isinstance(value, Workload) else {}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if item != field.default:
            key = field.metadata.get("key", field.name)
            if field.name in custom.KINDS and not isinstance(item, _WRITTEN):
                custom.require_factory(key, item)
            table[key] = _plain(item)
    return table


def _plain(item: Any) -> Any:
    if dataclasses.is_dataclass(item):
        return table_of(item)
    if isinstance(item, (tuple, list)):
        return [_plain(each) for each in item]
    return item


def _lines(table: TomlTable, name: str = "") -> Iterator[str]:
    """The lines of a TOML table. Plain values come first, or they would belong to a subtable."""
    tables = {key: value for key, value in table.items() if _is_table(value)}
    for key, value in table.items():
        if key not in tables:
            yield f"{key} = {_literal(value)}"
    for key, value in tables.items():
        full = f"{name}.{key}" if name else key
        is_array = isinstance(value, list)
        for each in value if is_array else [value]:
            yield ""
            yield f"[[{full}]]" if is_array else f"[{full}]"
            yield from _lines(each, full)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(each, dict) for each in value)
    )


def _literal(value: Any) -> str:
    """A plain value in TOML. Strings, integers and booleans are written almost as in JSON."""
    if isinstance(value, list):
        return f"[{', '.join(_literal(each) for each in value)}]"
    if callable(value):
        value = custom.value_of(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
