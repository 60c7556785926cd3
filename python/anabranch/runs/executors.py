"""Executors make runs in threads of this process, in other processes, or on a Dask cluster.

An executor calls a function and waits for its result. `call_all` keeps as many calls running as the
executor has slots.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
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
"""Least number of concurrent calls on a cluster, so that workers that join later have work."""
_CONNECT_S = 10
_FIRST_WORKER_S = 30


@dataclass(frozen=True)
class Progress:
    """The progress of many runs, passed to the code that displays it.

    Attributes:
        virtual_s: Simulated time of all runs made in this attempt.
        found: Number of runs that an earlier attempt had finished; `done` includes them.
        remaining_s: Estimated wall time of the remaining runs; `None` before the first run is done.
    """

    done: int
    total: int
    virtual_s: float
    found: int = 0
    remaining_s: float | None = None


class Executor(Protocol):
    """Calls functions, possibly in another process or on another machine."""

    @property
    def slots(self) -> int:
        """Number of calls that may run at once."""

    def call(self, function: Callable[[_A], _T], argument: _A, /) -> _T:
        """Call the function; return its result or raise its exception."""

    def abandon(self) -> None:
        """End the running calls."""


def check_address(on: str | None) -> None:
    """Check early whether `opened` understands an address.

    Raises:
        InputError: if it does not.
    """
    if on is not None and not (on.startswith(_DASK) and ":" in on.removeprefix(_DASK)):
        raise InputError(f'--on {on}: write dask://HOST:PORT, such as "dask://localhost:8786"')


@contextlib.contextmanager
def opened(
    on: str | None = None, *, custom_policies: bool = False, workers: int | None = None
) -> Iterator[Executor]:
    """An executor for runs, which lives as long as the context.

    `on` is the address of a Dask scheduler, ``dask://HOST:PORT``. Without it, runs are distributed
    over `workers` threads (default: one for each core), because the compiled core releases Python's
    interpreter lock. Runs with policies written in Python use processes instead.

    Raises:
        InputError: if Dask is not installed, or no scheduler answers at the address.
    """
    workers = workers or available_cores()
    if on is not None:
        with _dask(on) as executor:
            yield executor
    elif custom_policies:
        # Start fresh interpreters, because a fork would copy the locks of other threads. Ctrl-C
        # reaches the workers too, but they ignore it: this process ends them.
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
    """Process the items with `work` in one thread for each slot, the most expensive items first.

    `on_done` is called in this thread with index and result of each item. If `work` raises an
    exception, it is raised here after the running calls have finished. `KeyboardInterrupt` ends the
    running calls without waiting for them. Items not yet started are dropped in both cases.
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


def make_all(
    executor: Executor,
    make: Callable[[_A], tuple[_T, int]],
    items: Sequence[_A],
    costs: Sequence[float],
    on_made: Callable[[int, int], None],
) -> list[_T]:
    """The results of `make` for the items, in their order. Processes them as `call_all` does.

    `make` also returns the simulated time in nanoseconds, which `on_made` gets with the index.
    """
    results: dict[int, _T] = {}

    def done(index: int, made: tuple[_T, int]) -> None:
        results[index], virtual_ns = made
        on_made(index, virtual_ns)

    call_all(executor, make, items, costs, done)
    return [results[index] for index in range(len(items))]


class Meter:
    """Counts finished runs and reports the progress."""

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
        """Count the run with this index in `costs` as finished."""
        self.add(1, virtual_ns, self._costs[index])

    def add(self, runs: int, virtual_ns: int, cost: float) -> None:
        """Count a number of runs as finished, with the sum of their simulated times and costs."""
        self._made += runs
        self._cost_made += cost
        self._virtual_ns += virtual_ns
        self._tell(self._now())

    def _now(self) -> Progress:
        remaining = None
        if self._made == len(self._costs):
            remaining = 0.0
        elif self._cost_made > 0:
            elapsed = time.perf_counter() - self._started
            remaining = elapsed * max(0.0, self._cost / self._cost_made - 1)
        total = self._found + len(self._costs)
        done = self._found + self._made
        return Progress(done, total, self._virtual_ns / 1e9, self._found, remaining)


def available_cores() -> int:
    """Number of processor cores that this process may use."""
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
    """Children of this process that do not belong to the pool."""

    def call(self, function: Callable[[_A], _T], argument: _A, /) -> _T:
        try:
            return self.pool.submit(function, argument).result()
        except BrokenProcessPool as error:
            raise InputError(
                "a worker process ended early; workers import the main script, so put the "
                'script\'s own code under `if __name__ == "__main__":`'
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
                "all Dask workers that tried one of the runs died; see their logs (out of memory?)"
            ) from error
        except CancelledError as error:
            raise InputError("the connection to the Dask scheduler was lost") from error
        except ModuleNotFoundError as error:
            raise InputError(f"a Dask worker cannot import a module of a run: {error}") from error

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
    # Suppress Dask's logged errors: each is also raised here, in one line.
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
    """The futures as they complete. Checks for interruptions while it waits.

    Unlike the library's functions, it does not look at all futures each time.
    """
    completed: queue.SimpleQueue[Future[_T]] = queue.SimpleQueue()
    remaining = 0
    for future in futures:
        remaining += 1
        future.add_done_callback(completed.put)
    while remaining:
        interruption.check()
        with contextlib.suppress(queue.Empty):
            yield completed.get(timeout=0.1)
            remaining -= 1
