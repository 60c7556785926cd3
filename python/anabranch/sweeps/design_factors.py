"""The table ``[design]`` of a plan: ranges of quantities, and points that sample them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from anabranch.errors import InputError, unknown
from anabranch.forms import check_keys
from anabranch.sweeps import design
from anabranch.sweeps.design import Points, Range
from anabranch.sweeps.factors import Factor, Level
from anabranch.words import listed

KEYS = ("kind", "points", "seed", "ranges")
_KINDS = (*get_args(design.Kind), "grid")
_RANGE = re.compile(r"([0-9.eE+-]+)\s*([A-Za-z%/]*)")
_COUNTED = ("packets", "B", "kB", "MB", "GB", "KiB", "MiB", "GiB")
"""Units whose values are whole numbers."""
MOST_POINTS = 100_000
"""Largest number of points in a design."""
_MOST_WSP_POINTS = 1_000
"""Largest number of points in a WSP design. Time is quadratic: 1,000 points take seconds."""
_DIGITS = 4
"""Significant digits of a value, as a person would write it."""


def read(table: object, where: str) -> tuple[Factor, ...]:
    """The factors of a design. Equal positions in their levels belong to the same point.

    Raises:
        InputError: if the table is wrong.
    """
    where = f"{where}: design"
    if not isinstance(table, Mapping):
        raise InputError(f"{where}: write a table with {listed(KEYS)}")
    check_keys(where, table, KEYS)
    kind = table.get("kind", "wsp")
    if kind not in _KINDS:
        raise unknown(f"{where}: unknown kind", str(kind), _KINDS)
    count = _whole(table, "points", 1, where)
    seed = _whole(table, "seed", 0, where) if "seed" in table else 1
    ranges = table.get("ranges")
    if not isinstance(ranges, Mapping) or not ranges:
        raise InputError(
            f'{where}: ranges: missing; write ranges such as "path.wifi.rate" = {{ from = '
            '"1Mbit/s", to = "20Mbit/s" }'
        )
    _check_count(kind, count, len(ranges), where)
    unit = (
        _grid(count, len(ranges))
        if kind == "grid"
        else design.points(kind, count, len(ranges), seed)
    )
    return tuple(
        _factor(key, value, unit[:, [column]], f'{where}.ranges."{key}"')
        for column, (key, value) in enumerate(ranges.items())
    )


def _check_count(kind: str, count: int, dimensions: int, where: str) -> None:
    """Reject designs with more points than can be run, or found in reasonable time."""
    most = int(MOST_POINTS ** (1 / dimensions)) if kind == "grid" else MOST_POINTS
    if kind == "wsp" and count > _MOST_WSP_POINTS:
        raise InputError(
            f'{where}: points: {count} is too many for "wsp" (at most {_MOST_WSP_POINTS:,}); '
            'write kind = "lhs" or "sobol" for more'
        )
    if count > most:
        raise InputError(f"{where}: points: {count} is too many; write at most {most:,}")


def _grid(count: int, dimensions: int) -> Points:
    """All combinations of `count` equally spaced coordinates."""
    axis = np.linspace(0, 1, count)
    return np.array(list(itertools.product(axis, repeat=dimensions)), dtype=np.float64)


def _factor(key: str, value: object, coordinates: Points, where: str) -> Factor:
    if not isinstance(value, Mapping) or not {"from", "to"} <= set(value):
        raise InputError(f'{where}: write {{ from = "1Mbit/s", to = "20Mbit/s" }}')
    check_keys(where, value, ("from", "to", "scale", "keys"))
    low, unit = _quantity(value["from"], where)
    high, same = _quantity(value["to"], where)
    scale = value.get("scale", "linear")
    if unit != same:
        raise InputError(
            f"{where}: from and to have different units, {unit} and {same}; use one unit"
        )
    if not math.isfinite(high - low):
        raise InputError(
            f"{where}: from {value['from']} to {value['to']} is too wide; write smaller numbers"
        )
    if scale not in ("linear", "log"):
        raise InputError(f"{where}: scale: {scale!r} is unknown (valid: linear, log)")
    if not low < high or (scale == "log" and low <= 0):
        raise InputError(f"{where}: from must be smaller than to, and above 0 if the scale is log")
    keys = value.get("keys", [key])
    if not isinstance(keys, list) or not keys or not all(isinstance(each, str) for each in keys):
        raise InputError(f"{where}: keys: {keys!r} is not a list of keys of the scenario")
    exact = Range(low, high, scale).scaled(coordinates)[:, 0]
    numbers = [float(round(x)) if unit in _COUNTED else _rounded(float(x)) for x in exact]
    name = f"{key} ({unit})" if unit else key
    return Factor(name, tuple(keys), tuple(_level(number, unit) for number in numbers), where)


def _level(number: float, unit: str) -> Level:
    return Level(
        f"{np.format_float_positional(number, trim='-')}{unit}" if unit else number, number
    )


def _rounded(number: float) -> float:
    if number == 0:
        return 0.0
    return round(number, _DIGITS - 1 - math.floor(math.log10(abs(number))))


def _quantity(value: Any, where: str) -> tuple[float, str]:
    matched = _RANGE.fullmatch(str(value).strip())
    if matched is None or isinstance(value, bool):
        raise InputError(f'{where}: {value!r} is not a quantity; write one such as "8Mbit/s"')
    try:
        return float(matched[1]), matched[2]
    except ValueError as error:
        raise InputError(f"{where}: {matched[1]} is not a number") from error


def _whole(table: Mapping[str, Any], key: str, least: int, where: str) -> int:
    value = table.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{where}: {key}: {value!r} is not a whole number of at least {least}")
    return value
