"""Making the runs of a batch: in threads of the core, in processes, on a cluster, or in real time.

The compiled core makes runs in virtual time in its own threads. Python sees only their progress.
Runs with policies written in Python use processes, and live runs follow one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from anabranch import _core
from anabranch.batches.journal import Journal
from anabranch.batches.reduction import Task, make
from anabranch.runs import executors, interruption
from anabranch.runs.executors import Executor, Meter
from anabranch.scenarios import custom

_LIVE_COST = 2e6
"""Cost of a second of real time, in packets: about as many as virtual time simulates in 1 s."""

_POLL_S = 0.05
"""Time between two looks at the progress, short enough for a prompt reaction to Ctrl-C."""


@dataclass(frozen=True)
class Planned:
    """A run of a batch, and its key in the journal."""

    task: Task
    key: bytes

    @cached_property
    def cost(self) -> float:
        """Proportional to the bytes that the run carries, or in real time to its duration."""
        if self.task.hosts is None:
            return self.task.scenario.cost
        return _LIVE_COST * self.task.scenario.duration_ns / 1e9

    @property
    def needs_real_time(self) -> bool:
        """Whether the run must not share the processor."""
        return self.task.hosts is not None and self.task.hosts.need_real_time

    @property
    def needs_python(self) -> bool:
        """Whether only Python can make the run."""
        return self.task.hosts is not None or bool(self.task.scenario.policies)


def make_all(runs: Sequence[Planned], journal: Journal, meter: Meter, on: str | None) -> None:
    """Make the runs, and record each in the journal. Those that take longest start first.

    Raises:
        InputError: if the journal cannot be written, the address `on` is unusable, or the user's
            own policy cannot be sent to another process.
        IntegrityError: if a connection failed or delivered wrong bytes.
        PolicyError: if the user's own policy raised an exception.
    """
    live = [run for run in runs if run.needs_real_time]
    by_core = [run for run in runs if on is None and not run.needs_python]
    others = [
        run for run in runs if not run.needs_real_time and (on is not None or run.needs_python)
    ]
    if by_core:
        _make_by_core(by_core, journal, meter)
    if others:
        for run in others:
            custom.require_picklable(run.task.scenario)
        custom_policies = any(run.task.scenario.policies for run in others)
        with executors.opened(on, custom_policies=custom_policies) as executor:
            _make_by_executor(others, executor, journal, meter)
    if live:
        # Live runs must not share the processor, so they run one after another.
        with executors.opened(workers=1) as executor:
            _make_by_executor(live, executor, journal, meter)


def _make_by_core(runs: Sequence[Planned], journal: Journal, meter: Meter) -> None:
    """Make runs in threads of the core, which need no interpreter lock."""
    numbers: dict[tuple[int, str, bool], int] = {}
    cells: list[tuple[_core.Scenario, str, bool]] = []
    jobs = []
    for run in runs:
        task = run.task
        cell = (id(task.scenario), task.cell, task.may_fail)
        number = numbers.setdefault(cell, len(numbers))
        if number == len(cells):
            cells.append((task.scenario, task.cell, task.may_fail))
        jobs.append((number, task.seed, run.key, task.keep_blocks, task.keep_samples, run.cost))
    batch = _core.Batch(journal.core, cells, jobs, executors.available_cores())
    try:
        # Threads may have finished runs by now.
        ended, seen = False, (0, 0, 0.0)
        while not ended:
            ended = batch.wait(_POLL_S)
            interruption.check()
            now = batch.progress()
            if now != seen:
                meter.add(now[0] - seen[0], now[1] - seen[1], now[2] - seen[2])
            seen = now
        with journal.writable():
            batch.finish()
    finally:
        batch.stop()


def _make_by_executor(
    runs: Sequence[Planned], executor: Executor, journal: Journal, meter: Meter
) -> None:
    def work(run: Planned) -> int:
        record = executor.call(make, run.task)
        journal.add(run.key, record)  # in this thread, even if other runs have failed
        return record.virtual_ns

    def done(index: int, virtual_ns: int) -> None:
        meter.add(1, virtual_ns, runs[index].cost)

    executors.call_all(executor, work, runs, [run.cost for run in runs], done)
