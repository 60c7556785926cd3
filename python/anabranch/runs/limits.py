"""Limits of runs, which command lines and plans check before the first run."""

from __future__ import annotations

from anabranch.errors import InputError

MAX_SEED = 2**64 - 1
PCAP_LIMIT = 2_000_000_000
"""Default size limit of a capture in bytes."""


def seeds(first: int, count: int) -> range:
    """A number of successive seeds.

    Raises:
        InputError: if the first or the last one is no seed.
    """
    last = first + count - 1
    if first < 0 or last > MAX_SEED:
        raise InputError(
            f"seed {first if first < 0 else last}: seeds are from 0 to 2**64 - 1; choose another "
            "first seed"
        )
    return range(first, first + count)
