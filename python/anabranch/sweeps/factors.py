"""Factors of a sweep: keys of a scenario, such as ``path.wifi.rate``, and their levels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.errors import InputError
from anabranch.results.folder import Factor as Label
from anabranch.scenarios import custom


@dataclass(frozen=True)
class Level:
    """A value of a factor."""

    value: Any
    """Value in the scenario."""
    label: Label
    """Value in the results."""


@dataclass(frozen=True)
class Factor:
    """A parameter that differs between cells."""

    name: str
    """Name of the factor's column in the results."""
    keys: tuple[str, ...]
    """Keys of the scenario that all get the factor's value."""
    levels: tuple[Level, ...]
    where: str
    """Name of the factor in messages."""


def read(table: object, where: str) -> tuple[Factor, ...]:
    """Read the table ``[factors]`` of a plan: a list of values for each key.

    ``{ keys = ["…", "…"], values = [...] }`` instead of a list sets several keys to the same value,
    under a name that the plan chooses.

    Raises:
        InputError: if the table is wrong.
    """
    if not isinstance(table, Mapping):
        raise InputError(f'{where}: factors: write a table, such as "path.wifi.rate" = ["8Mbit/s"]')
    return tuple(_factor(key, value, f"{where}: factors") for key, value in _flat(table))


def _flat(table: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Keys and values. TOML reads a dotted key without quotation marks as nested tables."""
    flat = []
    for key, value in table.items():
        if isinstance(value, Mapping) and "values" not in value and "keys" not in value:
            flat += _flat(value, f"{before}{key}.")
        else:
            flat.append((before + key, value))
    return flat


def _factor(name: str, value: object, where: str) -> Factor:
    where = f'{where}."{name}"'
    keys: object = [name]
    if isinstance(value, Mapping):
        if set(value) != {"keys", "values"}:
            raise InputError(f"{where}: write exactly {{ keys = [...], values = [...] }}")
        keys, value = value["keys"], value["values"]
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) for key in keys):
        raise InputError(f"{where}: keys: {keys!r} is not a list of keys of the scenario")
    if not isinstance(value, (list, tuple)) or not value:
        raise InputError(
            f'{where}: {value!r} is not a list of values; write one such as ["4Mbit/s", "8Mbit/s"]'
        )
    return Factor(name, tuple(keys), levels([*value], where), where)


def levels(values: list[Any], where: str) -> tuple[Level, ...]:
    """Values with their labels. Labels are text unless all values are numbers or all booleans.

    Raises:
        InputError: if a value is given twice.
    """
    kinds = {type(value) for value in values}
    plain = kinds <= {int, float} or kinds == {bool}
    labels = [value if plain else label(value) for value in values]
    if kinds == {int, float}:
        labels = [float(value) for value in values]
    for each in labels:
        if labels.count(each) > 1:
            raise InputError(f"{where}: {each} appears twice; list every value once")
    return tuple(Level(value, each) for value, each in zip(values, labels, strict=True))


def short_names(names: Sequence[str]) -> list[str]:
    """Keys of a scenario without the leading parts that do not distinguish them.

    ``"connection.download.scheduler"`` becomes ``"scheduler"`` unless another name ends like that.
    """
    return [_short(name, [other for other in names if other != name]) for name in names]


def _short(name: str, others: Sequence[str]) -> str:
    parts = name.split(".")
    endings = (".".join(parts[start:]) for start in range(len(parts) - 1, -1, -1))
    return next(
        ending
        for ending in endings
        if not any(f".{other}".endswith(f".{ending}") for other in others)
    )


def label(value: Any) -> str:
    """A short label for a value: text unchanged, a table as ``key=value, …``."""
    if isinstance(value, str):
        return value
    if callable(value):  # the user's own policy
        return custom.name_of(value)
    if isinstance(value, Mapping):
        words = (
            f"{key}=({label(each)})" if isinstance(each, Mapping) else f"{key}={label(each)}"
            for key, each in value.items()
        )
        return ", ".join(words) or "none"
    return json.dumps(value, ensure_ascii=False, default=str)
