"""Where runs are made: in threads of this process, in other processes, or on a Dask cluster.

An executor calls a function somewhere and waits for what it returns; `call_all` keeps as many
calls under way as the executor has slots.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

from anabranch.errors import InputError
from anabranch.runs import interruption

_A = TypeVar("_A")
_T = TypeVar("_T")

_DASK = "dask://"
_DASK_SLOTS = 32
"""Calls under way on a cluster at least, so that workers which join later have work."""
_CONNECT_S = 10
_FIRST_WORKER_S = 30


@dataclass(frozen=True)
class Progress:
    """How far many runs have come; handed to whoever displays it.

    Attributes:
        virtual_s: Simulated time of all runs that were made.
        found: Runs, of those done, that an earlier attempt had finished.
        remaining_s: Wall time that the rest takes, judged by the runs made so far; `None` before
            the first.
    """

    done: int
    total: int
    virtual_s: float
    found: int = 0
    remaining_s: float | None = None


class Executor(Protocol):
    """Calls functions somewhere."""

    @property
    def slots(self) -> int:
        """Calls that may be under way at once."""

    def call(self, function: Callable[[_A], _T], argument: _A, /) -> _T:
        """Call the function and return what it returns, or raise what it raises."""

    def abandon(self) -> None:
        """End the calls that are under way."""


def check_address(on: str | None) -> None:
    """Find out early whether `opened` can understand an address.

    Raises:
        InputError: if not.
    """
    if on is not None and not (on.startswith(_DASK) and ":" in on.removeprefix(_DASK)):
        raise InputError(f'--on {on}: write dask://HOST:PORT, such as "dask://localhost:8786"')


@contextlib.contextmanager
def opened(
    on: str | None = None, *, own_policies: bool = False, workers: int | None = None
) -> Iterator[Executor]:
    """The executor for runs, as long as the context lasts.

    `on` is the address of a Dask scheduler, ``dask://HOST:PORT``; without one, runs are spread
    over `workers` threads (all cores unless given), as the compiled core runs without Python's
    interpreter lock, but over processes if policies written in Python take part.

    Raises:
        InputError: if Dask is not installed, or nothing answers at the address.
    """
    workers = workers or available_cores()
    if on is not None:
        with _dask(on) as executor:
            yield executor
    elif own_policies:
        # Fresh interpreters: a fork would copy the locks of other threads. Ctrl-C reaches them too;
        # it is this process that ends them.
        pool = ProcessPoolExecutor(
            max_workers=workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=signal.signal,
            initargs=(signal.SIGINT, signal.SIG_IGN),
        )
        others = frozenset(multiprocessing.active_children())
        with pool:
            yield _Processes(pool, workers, others)
    else:
        yield _Threads(workers)


def call_all(
    executor: Executor,
    work: Callable[[_A], _T],
    items: Sequence[_A],
    costs: Sequence[float],
    on_done: Callable[[int, _T], None],
) -> None:
    """Let a thread for each slot do `work` on the items, the most expensive first.

    Hands index and result of each to `on_done`, in this thread. What `work` raises is raised here,
    after the calls under way have ended by themselves. `KeyboardInterrupt` ends them, and nobody
    waits for that. Items not yet begun are dropped in both cases.
    """
    order = sorted(range(len(items)), key=lambda index: -costs[index])
    pool = ThreadPoolExecutor(max_workers=executor.slots)
    try:
        indices = {pool.submit(work, items[index]): index for index in order}
        for future in _as_completed(indices):
            on_done(indices[future], future.result())
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        executor.abandon()
        raise
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


class Meter:
    """Counts runs that are done and tells whoever displays them."""

    def __init__(
        self,
        on_progress: Callable[[Progress], None] | None,
        costs: Sequence[float],
        found: int = 0,
    ) -> None:
        self._tell = on_progress or (lambda _: None)
        self._costs = costs
        self._cost = sum(costs)
        self._found = found
        self._made = 0
        self._cost_made = 0.0
        self._virtual_ns = 0
        self._started = time.perf_counter()
        if found:
            self._tell(self._now())

    def made(self, index: int, virtual_ns: int) -> None:
        """The run with this index in `costs` was made."""
        self._made += 1
        self._cost_made += self._costs[index]
        self._virtual_ns += virtual_ns
        self._tell(self._now())

    def _now(self) -> Progress:
        remaining = None
        if self._cost_made > 0:
            elapsed = time.perf_counter() - self._started
            remaining = elapsed * max(0.0, self._cost / self._cost_made - 1)
        total = self._found + len(self._costs)
        done = self._found + self._made
        return Progress(done, total, self._virtual_ns / 1e9, self._found, remaining)


def available_cores() -> int:
    """How many processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class _Threads:
    slots: int
    stop: threading.Event = field(default_factory=threading.Event)

    def call(self, function: Callable[[_A], _T], argument: _A, /) -> _T:
        with interruption.stopped_by(self.stop):
            return function(argument)

    def abandon(self) -> None:
        self.stop.set()


@dataclass(frozen=True)
class _Processes:
    pool: ProcessPoolExecutor
    slots: int
    others: frozenset[BaseProcess]
    """Children of this process that are none of the pool's."""

    def call(self, function: Callable[[_A], _T], argument: _A, /) -> _T:
        try:
            return self.pool.submit(function, argument).result()
        except BrokenProcessPool as error:
            raise InputError(
                "a worker process ended early; every worker imports the script that was started, "
                'so keep what that does under `if __name__ == "__main__":`'
            ) from error

    def abandon(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - self.others:
            child.terminate()


@dataclass(frozen=True)
class _Dask:
    client: Any
    slots: int

    def call(self, function: Callable[[_A], _T], argument: _A, /) -> _T:
        from distributed.scheduler import KilledWorker

        try:
            result: _T = self.client.submit(function, argument, pure=False).result()
            return result
        except KilledWorker as error:
            raise InputError(
                "the Dask workers that tried one run all died; see their logs (out of memory?)"
            ) from error
        except CancelledError as error:
            raise InputError("the connection to the Dask scheduler was lost") from error
        except ModuleNotFoundError as error:
            raise InputError(f"a Dask worker cannot import what a run needs: {error}") from error

    def abandon(self) -> None:
        self.client.close(timeout=1)


@contextlib.contextmanager
def _dask(on: str) -> Iterator[Executor]:
    check_address(on)
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError(
            f"--on {on}: Dask is not installed; install it with: pip install distributed"
        ) from error
    # What Dask logs as an error is raised here too, in one line.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client("tcp://" + on.removeprefix(_DASK), timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"--on {on}: no Dask scheduler answers; start one with: dask scheduler"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_FIRST_WORKER_S)
        except TimeoutError as error:
            raise InputError(
                f"--on {on}: the scheduler has no worker; start some with: dask worker HOST:PORT"
            ) from error
        yield _Dask(client, max(_DASK_SLOTS, 2 * sum(client.nthreads().values())))


def _as_completed(futures: Iterable[Future[_T]]) -> Iterator[Future[_T]]:
    """The futures as they complete; unlike the library's, looks for interruptions meanwhile."""
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
        interruption.check()
        yield from done
