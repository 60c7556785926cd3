"""How runs learn that they are to end before their end.

The thread of a run calls `check` about twenty times a second, and what it raises ends the run.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar

_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)

_requested = threading.Event()


class Abandoned(Exception):
    """Nobody waits for the result of this run any more."""


def request(*, wanted: bool = True) -> None:
    """End all runs of this process, or with ``wanted=False`` forget that this was asked for.

    A signal handler of a program calls it before it raises `KeyboardInterrupt`: an exception that
    is raised in a destructor or in a callback gets lost, the request does not.
    """
    if wanted:
        _requested.set()
    else:
        _requested.clear()


def requested() -> bool:
    """Has somebody asked to end all runs?"""
    return _requested.is_set()


@contextlib.contextmanager
def stopped_by(stop: threading.Event) -> Iterator[None]:
    """In this thread, `check` raises `Abandoned` once `stop` is set."""
    before = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(before)


def check() -> None:
    """Go on, or raise what ends the run.

    Raises:
        KeyboardInterrupt: after `request`.
        Abandoned: once the event of `stopped_by` is set.
    """
    if requested():
        raise KeyboardInterrupt
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise Abandoned
