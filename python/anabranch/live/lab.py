"""The environment of live runs: network namespaces, and one thread with raised priority."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, TypeVar

from anabranch import _core
from anabranch.errors import InputError
from anabranch.runs import interruption

T = TypeVar("T")

OF_SHELLS = ("namespaces", "iproute2", "TUN")
"""The capabilities that `anabranch shell` needs."""


def is_inside() -> bool:
    """Whether this process runs where live runs are possible."""
    return _core.live_is_inside()


def enter(arguments: Sequence[str]) -> int:
    """Run `anabranch` with these arguments where live runs are possible; return its exit status.

    Raises:
        InputError: if this host does not support live runs.
    """
    if sys.platform != "linux":
        raise InputError(f"live runs need Linux; this is {sys.platform}")
    # Ctrl-C reaches both processes: the child ends, and this process waits for it.
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return _core.live_enter([sys.executable, "-m", "anabranch", *arguments])
    except OSError as error:
        raise InputError(
            f"live runs need network namespaces: {reason(error)}; see: anabranch doctor"
        ) from error
    finally:
        signal.signal(signal.SIGINT, before)


class _Laboratory:
    """A daemon thread that calls functions one after another."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def call(self, function: Callable[[], T]) -> T:
        future: Future[T] = Future()
        self._calls.put((future, function))
        while not wait([future], timeout=0.05).done:
            interruption.check()
        return future.result()

    def _work(self) -> None:
        while True:
            future, function = self._calls.get()
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)


_laboratory: list[_Laboratory] = []
"""The thread that makes live runs, once it exists."""


def settle_in() -> None:
    """Restrict the raised priority of live runs to one thread. Call this inside, early.

    From then on only that thread makes live runs. Threads that draw or simulate start later, with
    normal priority. Threads that libraries (jemalloc, polars) started earlier keep the priority,
    but they sleep.
    """
    laboratory = _Laboratory()
    laboratory.call(int)  # the new thread inherits the priority of this one
    _core.live_stop_preferring()
    _laboratory.append(laboratory)


def at_priority(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in the thread for live runs, or in this thread if there is none."""
    if not _laboratory:
        return function(*arguments)
    return _laboratory[0].call(functools.partial(function, *arguments))


def doctor() -> list[dict[str, Any]]:
    """Check the capabilities that live runs need. Call this inside."""
    return _core.live_probe()


def reason(error: OSError) -> str:
    """The system's reason for an error, in lower case."""
    return (os.strerror(error.errno) if error.errno else str(error)).lower()
