"""Change values in a scenario by dotted keys.

Examples of keys are ``"warm_up"``, ``"path[1].rate"``, ``"path.wifi.rate"`` and
``"connection.download.workload.block_size"``. Tables in arrays are addressed by index or by name.
"""

from __future__ import annotations

import re
from typing import Any

from anabranch.errors import InputError, unknown
from anabranch.scenarios.classes import TomlTable
from anabranch.words import listed

ARRAYS = ("path", "connection", "cross_traffic")
"""Arrays of tables in a scenario; each table has a name."""

_STEP = re.compile(r"([^.\[\]]+)(?:\[(\d+)\])?")
_INDEXED = re.compile(rf"(?P<array>{'|'.join(ARRAYS)})\[(?P<index>\d+)\]")


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


def is_scenario(table: TomlTable) -> bool:
    """Whether a file that should be a plan is a scenario."""
    return "path" in table and "scenario" not in table


def is_plan(table: TomlTable) -> bool:
    """Whether a file that should be a scenario is a plan."""
    return isinstance(table.get("scenario"), str) and "path" not in table


def by_name(table: TomlTable, key: str) -> str:
    """A key with the name of its path, connection or cross-traffic in place of the index."""
    matched = _INDEXED.match(key)
    if matched is None or int(matched["index"]) >= len(table.get(matched["array"], ())):
        return key
    name = table[matched["array"]][int(matched["index"])].get("name")
    return key if name is None else f"{matched['array']}.{name}{key[matched.end() :]}"


def put(table: TomlTable, key: str, value: Any, where: str) -> TomlTable:
    """A copy of a scenario with `key` set to the value.

    Raises:
        InputError: if the key names no table of the scenario. The message suggests a similar name.
    """
    steps = key.split(".")
    for array in ARRAYS:
        if any(each.get("name") == steps[0] for each in table.get(array, ())) and steps[1:]:
            raise InputError(f"{where}: unknown key; write {array}.{key}")
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
        raise InputError(f'{where}: "{key}" is not an array; the arrays are {listed(ARRAYS)}')
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
        place = f"{key}.{names[index]}" if names[index] else f"{key}[{index}]"
        raise InputError(f"{where}: name a key of that {key}, such as {place}.name")
    changed = _put(array[index], rest, value, where)
    return [*array[:index], changed, *array[index + 1 :]]
