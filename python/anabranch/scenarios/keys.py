"""Change values in a scenario by dotted keys.

Examples of keys are ``"warm_up"``, ``"path[1].rate"``, ``"path.wifi.rate"`` and
``"connection.download.workload.block_size"``. Tables in arrays are addressed by index or by name.
"""

from __future__ import annotations

import re
from typing import Any

from anabranch.errors import InputError, unknown
from anabranch.scenarios.classes import TomlTable

ARRAYS = ("path", "connection", "cross_traffic")
"""Arrays of tables in a scenario; each table has a name."""

_STEP = re.compile(r"([^.\[\]]+)(?:\[(\d+)\])?")


def with_names(table: TomlTable, normalised: TomlTable) -> TomlTable:
    """The scenario as written, with default names filled in."""
    named = {
        key: [
            {"name": full["name"], **each} if "name" in full else each
            for each, full in zip(table[key], normalised[key], strict=True)
        ]
        for key in ARRAYS
        if key in table
    }
    return {**table, **named}


def put(table: TomlTable, key: str, value: Any, where: str) -> TomlTable:
    """A copy of a scenario with `key` set to the value.

    Raises:
        InputError: if the key names no table of the scenario. The message suggests a similar name.
    """
    steps = key.split(".")
    if not all(_STEP.fullmatch(step) for step in steps):
        raise InputError(f'{where}: "{key}" is not a key; write a key such as path.wifi.rate')
    return _put(table, steps, value, where)


def _put(table: TomlTable, steps: list[str], value: Any, where: str) -> TomlTable:
    matched = _STEP.fullmatch(steps[0])
    assert matched is not None  # `put` has checked every step
    key, number = matched.groups()
    rest = steps[1:]
    if key in ARRAYS:
        return {**table, key: _put_in_array(table.get(key, []), key, number, rest, value, where)}
    if number is not None:
        raise InputError(f'{where}: "{key}" is not an array; the arrays are {", ".join(ARRAYS)}')
    if not rest:
        return {**table, key: value}
    inner = table.get(key, {})
    if not isinstance(inner, dict):
        inner = {"kind": inner}  # scheduler = "ecf" abbreviates { kind = "ecf" }
    return {**table, key: _put(inner, rest, value, where)}


def _put_in_array(
    array: list[TomlTable], key: str, number: str | None, rest: list[str], value: Any, where: str
) -> list[TomlTable]:
    names = [each.get("name") for each in array]
    if number is not None:
        index = int(number)
        if index >= len(array):
            raise InputError(
                f"{where}: there is no {key}[{number}]; the scenario has {len(array)}, counted "
                "from 0"
            )
    else:
        name, rest = (rest[0], rest[1:]) if rest else ("", [])
        if name not in names:
            raise unknown(f"{where}: the scenario has no {key}", name, map(str, names))
        index = names.index(name)
    if not rest:
        raise InputError(f'{where}: name a key of that {key}, such as "{key}[{index}].name"')
    changed = _put(array[index], rest, value, where)
    return [*array[:index], changed, *array[index + 1 :]]
