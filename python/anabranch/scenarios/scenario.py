"""Scenarios as typed objects.

The classes hold values, and this module writes them as TOML. The compiled core alone reads
scenarios: it fills in defaults, checks values, and explains errors. A field that is `None` is
left out of the TOML, so that the core's default holds; `anabranch schema` prints all keys with
their defaults.

Quantities are strings with a unit, as in the file: ``"8Mbit/s"``, ``"20ms"``, ``"54packets"``,
``"200KiB"`` (1024 bytes each; ``kB`` is 1000), ``"1%"``.

A scheduler, congestion control or path manager can be a class of your own (see
`anabranch.policy`). ``anabranch policies`` lists the names and parameters of those that come with
the engine.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from anabranch.scenarios import classes, own
from anabranch.scenarios.classes import *  # noqa: F403  (its __all__ lists them)
from anabranch.scenarios.classes import TomlTable, Workload


class Scenario(classes.Scenario):  # noqa: D101
    __doc__ = classes.Scenario.__doc__

    def to_toml(self) -> str:
        """The scenario as the text of a TOML file."""
        return to_toml(_table(self))

    def starting_at(self, start: str) -> Scenario:
        """The same scenario with every connection opened at the time `start`."""
        connections = (dataclasses.replace(each, start=start) for each in self.connections)
        return dataclasses.replace(self, connections=tuple(connections))

    def made_by(self) -> own.MadeBy | None:
        """What makes the policies of each connection; `None` if none is the user's own."""
        made_by: own.MadeBy = [
            {kind: _factory(getattr(connection, kind)) for kind in own.KINDS}
            for connection in self.connections
        ]
        has_own = any(factory is not None for each in made_by for factory in each.values())
        return made_by if has_own else None


def _factory(chosen: object) -> own.Factory | None:
    return chosen if callable(chosen) else None


def to_toml(table: TomlTable) -> str:
    """A scenario that is given as plain values, as the text of a TOML file."""
    return "\n".join(_lines(table)).strip() + "\n"


_WRITTEN = (str, dict)
"""What a policy is in a scenario unless it is the user's own."""


def _table(value: Any) -> TomlTable:
    """The dataclass instance `value` as a TOML table, without fields that were left out."""
    table: TomlTable = {"kind": value.kind} if isinstance(value, Workload) else {}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if item != field.default:
            key = field.metadata.get("key", field.name)
            is_own = field.name in own.KINDS and not isinstance(item, _WRITTEN)
            table[key] = own.value_of(key, item) if is_own else _plain(item)
    return table


def _plain(item: Any) -> Any:
    if dataclasses.is_dataclass(item):
        return _table(item)
    if isinstance(item, (tuple, list)):
        return [_plain(each) for each in item]
    return item


def _lines(table: TomlTable, name: str = "") -> Iterator[str]:
    """The lines of a TOML table: plain values first, or they would belong to the last table."""
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
    """A plain value in TOML, whose strings, integers and booleans are nearly those of JSON."""
    if isinstance(value, list):
        return f"[{', '.join(_literal(each) for each in value)}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
