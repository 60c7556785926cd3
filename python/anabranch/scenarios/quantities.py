"""Quantities with units, as the core writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from anabranch.errors import InputError

_NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_BITS_PER_SECOND = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
_BYTES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z/]+)")


def nanoseconds(text: str) -> int:
    """A duration, such as ``"5s"`` or ``"0.5ms"``."""
    return _quantity(text, _NANOSECONDS)


def bits_per_second(text: str) -> int:
    """A rate, such as ``"8Mbit/s"``."""
    return _quantity(text, _BITS_PER_SECOND)


def packets(text: str) -> int:
    """A number of packets, such as ``"54packets"``."""
    return _quantity(text, {"packets": 1})


def byte_count(text: str) -> int:
    """A size, such as ``"200KiB"``."""
    return _quantity(text, _BYTES)


def size(text: str, option: str) -> int:
    """The size in bytes, such as ``"200KiB"``, that is the value of a command-line option.

    Raises:
        InputError: if the text is not a size.
    """
    try:
        return byte_count(text)
    except ValueError as error:
        raise InputError(
            f'{option}: "{text}" is not a size; write a number and a unit, such as 500MB'
        ) from error


def _quantity(text: str, units: Mapping[str, int]) -> int:
    written = _WRITTEN.fullmatch(text.strip())
    if written is None or written[2] not in units:
        raise ValueError(text)
    return round(float(written[1]) * units[written[2]])
