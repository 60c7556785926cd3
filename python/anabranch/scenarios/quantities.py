"""Quantities with units, which the core reads."""

from __future__ import annotations

from anabranch import _core
from anabranch.errors import InputError


def nanoseconds(text: str) -> int:
    """A duration, such as ``"5s"`` or ``"0.5ms"``."""
    return _core.nanoseconds(text)


def bits_per_second(text: str) -> int:
    """A rate, such as ``"8Mbit/s"``."""
    return _core.bits_per_second(text)


def packets(text: str) -> int:
    """A number of packets, such as ``"54packets"``."""
    return _core.packets(text)


def byte_count(text: str) -> int:
    """A size, such as ``"200KiB"``."""
    return _core.byte_count(text)


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
