"""Interruption of runs before their end.

The thread of a run calls `check` about twenty times a second. An exception that it raises ends the
run.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar

_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)

_requested = threading.Event()


class Abandoned(Exception):
    """The result of this run is no longer needed."""


def request(*, wanted: bool = True) -> None:
    """Ask all runs of this process to end, or with ``wanted=False`` withdraw the request.

    A program's signal handler calls this before it raises `KeyboardInterrupt`. Destructors and
    callbacks swallow exceptions, but the request remains.
    """
    if wanted:
        _requested.set()
    else:
        _requested.clear()


def requested() -> bool:
    """Whether all runs were asked to end."""
    return _requested.is_set()


@contextlib.contextmanager
def stopped_by(stop: threading.Event) -> Iterator[None]:
    """Make `check` raise `Abandoned` in this thread once `stop` is set."""
    before = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(before)


def check() -> None:
    """Raise an exception if the run must end.

    Raises:
        KeyboardInterrupt: after `request`.
        Abandoned: once the event of `stopped_by` is set.
    """
    if requested():
        raise KeyboardInterrupt
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise Abandoned
