"""Terminal output: tables that fit the width, progress bars, and cautions before a run."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from anabranch.cli.messages import complain
from anabranch.cli.tables import Grid
from anabranch.runs.executors import Progress as Step
from anabranch.words import counted

if TYPE_CHECKING:
    from anabranch import _core
    from anabranch.runs.run import Capture

_PIPE_WIDTH = 100_000


def stdout() -> Console:
    """A console on standard output, as wide as the terminal or as ``COLUMNS``; else unbounded."""
    return Console(highlight=False, width=_width())


def _width() -> int | None:
    """The width of output into a pipe or file; `None` for a terminal, which has its own width.

    Tables are whole there, because programs read them. ``COLUMNS`` gives another width.
    """
    if sys.stdout.isatty():
        return None
    return shutil.get_terminal_size((_PIPE_WIDTH, 24)).columns


def show(grid: Grid) -> None:
    """Print a table in a layout that fits, without cutting anything."""
    screen = stdout()
    for part in grid.fitted(screen):
        screen.print(part)


def say(text: str) -> None:
    """Print a message: wrapped between words on a terminal, else one line."""
    screen = stdout()
    screen.print(text, markup=False, highlight=False, soft_wrap=not screen.is_terminal)


def caution(scenario: _core.Scenario, capture: Capture | None) -> None:
    """Print probable mistakes in a scenario, and the expected size of a capture, on stderr."""
    from anabranch.runs.run import capture_estimate
    from anabranch.scenarios import cautions

    for line in cautions.of(scenario.settings):
        complain(f"note: {line}")
    if capture is not None:
        expected = capture_estimate(scenario, capture)
        end = f"; it stops at {_size(capture.limit)}" if expected > capture.limit else ""
        complain(f"capture: up to about {_size(expected)}{end}")


def _size(count: float) -> str:
    """A number of bytes in a readable unit."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} GB" if count < 1000 else f"{count:,.0f} GB"


@contextmanager
def _bar(label: str, *columns: ProgressColumn, **fields: Any) -> Iterator[tuple[Progress, TaskID]]:
    """A progress bar on standard error that disappears when done.

    Shows nothing if standard error is not a terminal.
    """
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        yield bar, bar.add_task(label, total=None, **fields)


@contextmanager
def progress(label: str) -> Iterator[Callable[[Step], None]]:
    """A progress bar for many runs, with speed and remaining time."""
    words = TextColumn("runs · {task.fields[rate]} · {task.fields[remaining]}")
    with _bar(label, MofNCompleteColumn(), words, rate="–", remaining="–") as (bar, task):

        def advance(step: Step) -> None:
            if step.found == step.done > 0:
                runs = counted(step.total, "run")
                bar.console.print(f"{step.found} of {runs} already finished", highlight=False)
            elapsed = bar.tasks[task].elapsed or 0.0
            rate = f"{step.virtual_s / elapsed:,.0f}× real time" if elapsed else "–"
            remaining = "–" if step.remaining_s is None else f"{_clock(step.remaining_s)} left"
            bar.update(task, completed=step.done, total=step.total, rate=rate, remaining=remaining)

        yield advance


@contextmanager
def simulating(label: str, duration: float) -> Iterator[Callable[[int], None]]:
    """A progress bar for one run of `duration` seconds in virtual time.

    The function that it yields takes the simulated time in nanoseconds.
    """
    words = TextColumn("{task.fields[at]} · {task.fields[rate]} · {task.fields[remaining]}")
    started = time.perf_counter()
    with _bar(label, words, at="–", rate="–", remaining="–") as (bar, task):

        def advance(now_ns: int) -> None:
            now, elapsed = now_ns / 1e9, time.perf_counter() - started
            rate = now / elapsed
            bar.update(
                task,
                completed=now,
                total=duration,
                at=f"{now:.1f} of {duration:g} s",
                rate=f"{rate:,.0f}× real time",
                remaining=f"{_clock((duration - now) / rate)} left" if rate else "–",
            )

        yield advance


@contextmanager
def elapsing(label: str, duration: float) -> Iterator[None]:
    """A progress bar for one run of `duration` seconds in real time."""
    ended, started = threading.Event(), time.perf_counter()
    with _bar(label, TextColumn("{task.fields[at]}"), at="–") as (bar, task):

        def advance() -> None:
            while not ended.wait(0.2):
                now = min(time.perf_counter() - started, duration)
                bar.update(task, completed=now, total=duration, at=f"{now:.0f} of {duration:g} s")

        thread = threading.Thread(target=advance, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@contextmanager
def reading(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar. The function that it yields takes the finished and the total amount."""
    with _bar(label, TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn()) as (bar, task):
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def working(label: str) -> Iterator[None]:
    """A spinner on standard error during work that takes seconds."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(label):
        yield


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
