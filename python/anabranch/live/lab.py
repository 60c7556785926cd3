"""Where live runs are possible: network namespaces, and one thread that runs before others."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from anabranch import _core
from anabranch.errors import InputError

T = TypeVar("T")


def is_inside() -> bool:
    """Does this process run where live runs are possible?"""
    return _core.live_is_inside()


def enter(arguments: Sequence[str]) -> int:
    """Run `anabranch` with these arguments where live runs are possible; returns its exit status.

    Raises:
        InputError: if this host does not allow it.
    """
    try:
        return _core.live_enter([sys.executable, "-m", "anabranch", *arguments])
    except OSError as error:
        raise InputError(
            f"live runs need network namespaces: {reason(error)}; see: anabranch doctor"
        ) from error


_laboratory: list[ThreadPoolExecutor] = []
"""The thread that makes live runs, once there is one."""


def settle_in() -> None:
    """Leave what runs before other processes to one thread; to be called inside, early.

    Only that thread makes live runs then. Those that draw or simulate are started later and run
    as usual; what libraries started before, which sleeps (jemalloc, polars), keeps the priority.
    """
    executor = ThreadPoolExecutor(max_workers=1)
    executor.submit(int).result()  # the thread inherits the priority that this one has
    _core.live_stop_preferring()
    _laboratory.append(executor)


def at_priority(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in the thread for live runs if there is one, else here."""
    if not _laboratory:
        return function(*arguments)
    return _laboratory[0].submit(function, *arguments).result()


def doctor() -> list[dict[str, Any]]:
    """What this host allows; to be called inside."""
    return _core.live_probe()


def reason(error: OSError) -> str:
    """Why the system refused something."""
    return (os.strerror(error.errno) if error.errno else str(error)).lower()
