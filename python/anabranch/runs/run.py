"""Run one scenario, or many in parallel.

A run is a pure function of version, scenario and seed: equal inputs give equal digests and equal
numbers on every machine.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np

from anabranch import _core, files
from anabranch.errors import IntegrityError
from anabranch.runs import executors, interruption, limits
from anabranch.runs.columns import Column, Columns, Words, frame
from anabranch.runs.executors import Meter, Progress
from anabranch.runs.limits import PCAP_LIMIT
from anabranch.scenarios import custom, loading
from anabranch.scenarios.custom import CustomPolicy
from anabranch.scenarios.flows import flows
from anabranch.scenarios.scenario import Scenario

if TYPE_CHECKING:
    import polars as pl

_T = TypeVar("_T")

CaptureAt = Literal["client", "server", "both"]
"""The hosts at which packets are captured."""

_DATA_BYTES, _ACK_BYTES, _FRAMING_BYTES = 1500, 72, 60
"""Bytes of a data packet and of an acknowledgement, and bytes that a capture adds to each."""

Pcap = tuple[str, int | None, str | None, int | None]
"""A capture, as the core takes it: file, largest size, hosts, and bytes kept of a packet."""


@dataclass(frozen=True)
class Run:
    """One execution of a scenario.

    The tables are polars frames. Times are integers in nanoseconds of virtual time, and sizes are
    bytes.

    * `subflows` counts at the sender, except `bytes_received`.
    * `links` has two rows for each path; direction 0 is from server to client.
    * `blocks` contains only delivered blocks. Bursts and rounds of requests and responses are
      blocks too.
    * The two tables of samples have a row for each subflow or connection in every sample interval.
    * `counters` has the counters of each host.

    Attributes:
        digest: Digest of the trace of all segments. Equal digests mean equal runs.
        virtual_ns: Simulated time.
        segments: Number of segments that entered a link.
        data_segments: Number of segments with payload that arrived; 0 in live runs.
        cpu_s: CPU time of the thread that made the run.
        tables: The tables as plain columns, by name. Each frame is made when it is first used.
        pcap_full_ns: Time at which the capture reached its limit.
        custom_policies: The user's own policies in this run. With any, the scenario's text
            alone cannot repeat the run.
    """

    scenario: _core.Scenario
    seed: int
    digest: str
    virtual_ns: int
    segments: int
    data_segments: int
    wall_s: float
    cpu_s: float
    tables: Mapping[str, Columns]
    pcap_full_ns: int | None = None
    custom_policies: tuple[CustomPolicy, ...] = ()

    @property
    def toml(self) -> str:
        """The normalised scenario, with every default spelled out."""
        return self.scenario.to_toml()

    @property
    def settings(self) -> dict[str, Any]:
        """The normalised scenario as plain values, which must not be changed."""
        return self.scenario.settings

    @cached_property
    def connections(self) -> pl.DataFrame:
        """The table of connections."""
        return frame(self.tables["connections"])

    @cached_property
    def subflows(self) -> pl.DataFrame:
        """The table of subflows."""
        return frame(self.tables["subflows"])

    @cached_property
    def links(self) -> pl.DataFrame:
        """The table of links."""
        return frame(self.tables["links"])

    @cached_property
    def blocks(self) -> pl.DataFrame:
        """The table of delivered blocks."""
        return frame(self.tables["blocks"])

    @cached_property
    def subflow_samples(self) -> pl.DataFrame:
        """The time series of subflows."""
        return frame(self.tables["subflow_samples"])

    @cached_property
    def connection_samples(self) -> pl.DataFrame:
        """The time series of connections."""
        return frame(self.tables["connection_samples"])

    @cached_property
    def changes(self) -> pl.DataFrame:
        """The changes of paths, and the first byte that each flow's application got after each."""
        return frame(self.tables["changes"])

    @cached_property
    def counters(self) -> pl.DataFrame:
        """The counters of both hosts."""
        return frame(self.tables["counters"])

    @property
    def path_names(self) -> list[str]:
        """Names of the paths in the scenario's order."""
        return [path["name"] for path in self.settings["path"]]

    @cached_property
    def flows(self) -> list[dict[str, Any]]:
        """Settings of the connections in the order of the tables.

        A connection that sends both ways has two entries and two rows.
        """
        return flows(self.settings)

    @property
    def connection_names(self) -> list[str]:
        """Names of the connections in the order of the tables."""
        return [flow["name"] for flow in self.flows]

    @property
    def warm_up_ns(self) -> int:
        """Time at the beginning of the run that metrics exclude."""
        return self.scenario.warm_up_ns


@dataclass(frozen=True)
class Capture:
    """The file and size limit of a capture (pcapng).

    Attributes:
        limit: Largest size in bytes.
        at: Hosts at which packets are captured; by default those that send the workload's data.
        snap: Number of bytes that are kept of each packet; by default all.
    """

    file: Path
    limit: int = PCAP_LIMIT
    at: CaptureAt | None = None
    snap: int | None = None

    @property
    def _is_stream(self) -> bool:
        """Whether the file is a pipe or a device, which keeps its place."""
        file = self.file
        return os.path.exists(file) and not os.path.isfile(file) and not os.path.isdir(file)

    def require_writable(self) -> None:
        """Check before the run that the file can be written.

        Raises:
            InputError: if the file cannot be written.
        """
        if not self._is_stream:
            files.require_writable(self.file)

    @contextlib.contextmanager
    def opened(self) -> Iterator[Pcap]:
        """The capture to a temporary file, which gets its final name when the capture is complete.

        Raises:
            InputError: if the file cannot be written. No partial file remains.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(files.writing_to(self.file, "file"))
            part = self.file if self._is_stream else stack.enter_context(files.whole(self.file))
            yield os.fspath(part), self.limit, self.at, self.snap


@dataclass(frozen=True)
class Job:
    """A run to make.

    Attributes:
        cell: Name of the cell that the run belongs to, for the code that collects the results.
    """

    scenario: Scenario
    seed: int
    cell: str = ""


def run(
    scenario: Scenario | str | os.PathLike[str],
    seed: int = 1,
    pcap: str | os.PathLike[str] | None = None,
    *,
    pcap_limit: int = PCAP_LIMIT,
    pcap_at: CaptureAt | None = None,
    snap: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Run:
    """Run a scenario, given as an object or as the name of a TOML file.

    `settings` changes keys of the scenario, as ``--set`` does on the command line.

    If `pcap` is given, writes a capture to that file. It has the packets that pass the hosts
    `pcap_at`, by default those that send the workload's data, and `snap` bytes of each, by default
    all. The capture stops when it has `pcap_limit` bytes, and the run continues. Names of trace
    files are relative to the TOML file, or to the working directory if the scenario is an object.

    Raises:
        ScenarioError: if the scenario is wrong.
        InputError: if a file cannot be read or written.
        IntegrityError: if the run stopped early.
        PolicyError: if the user's own policy raised an exception.
    """
    if isinstance(scenario, Scenario):
        read = loading.of(scenario, settings)
    else:
        read = loading.of_file(scenario, settings=settings)
    capture = None if pcap is None else Capture(Path(pcap), pcap_limit, pcap_at, snap)
    return run_scenario(read, seed, capture)


def run_scenario(
    scenario: _core.Scenario,
    seed: int,
    capture: Capture | None = None,
    on_tick: Callable[[int], None] | None = None,
    *,
    ledger: bool = False,
) -> Run:
    """Run a scenario.

    `on_tick` is called about twenty times a second with the simulated time in nanoseconds.

    With `ledger`, the run has the tables ``activities`` and ``capacity``, which account for every
    instant of every subflow and every byte that a link could have carried. `anabranch.explanations`
    reads them.

    Raises:
        InputError: if the seed is out of range, or the capture cannot be written.
        IntegrityError: if the run stopped early.
        PolicyError: if the user's own policy raised an exception.
    """

    def tick(now_ns: int) -> None:
        interruption.check()
        if on_tick is not None:
            on_tick(now_ns)

    def execute(pcap: Pcap | None = None) -> dict[str, object]:
        return _core.run(scenario, seed, pcap=pcap, tick=tick, ledger=ledger)

    limits.seeds(seed, 1)
    started, cpu_before = time.perf_counter(), time.thread_time()
    try:
        if capture is None:
            result = execute()
        else:
            with capture.opened() as pcap:
                result = execute(pcap)
    except RuntimeError as error:
        raise IntegrityError(f"{scenario.file}: {error}") from error
    wall_s, cpu_s = time.perf_counter() - started, time.thread_time() - cpu_before
    return Run(
        scenario=scenario,
        seed=seed,
        digest=str(result["digest"]),
        virtual_ns=cast("int", result["virtual_ns"]),
        segments=cast("int", result["segments"]),
        data_segments=cast("int", result["data_segments"]),
        wall_s=wall_s,
        cpu_s=cpu_s,
        pcap_full_ns=cast("int | None", result["pcap_full_ns"]),
        custom_policies=custom.describe(scenario),
        tables=tables_of(result),
    )


def tables_of(result: Mapping[str, Any]) -> dict[str, Columns]:
    """The tables of a run, from the core's result."""
    tables: dict[str, Columns] = {
        name: {column: _column(*content) for column, content in columns.items()}
        for name, columns in result["tables"].items()
    }
    return tables | {"counters": _counters(result["counters"])}


def _column(dtype: str | tuple[str, ...], data: bytes) -> Column:
    """A column of numbers of a NumPy type, or of one-byte indices of names."""
    if isinstance(dtype, tuple):
        return Words(dtype, np.frombuffer(data, np.uint8).astype(np.uint32))
    return np.frombuffer(data, dtype)


_HOSTS = ("client", "server")


def _counters(hosts: Sequence[Mapping[str, int]]) -> Columns:
    """The counters of client and server as a table."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys([*hosts[0], *hosts[1]]))}
    return {
        "host": Words(
            _HOSTS, np.repeat(np.arange(2, dtype=np.uint32), [len(each) for each in hosts])
        ),
        "counter": Words(
            tuple(numbers), np.array([numbers[each] for host in hosts for each in host], np.uint32)
        ),
        "count": np.array([count for host in hosts for count in host.values()], np.uint64),
    }


def run_many(
    jobs: Sequence[Job],
    reduce: Callable[[Job, Run], _T],
    *,
    on_progress: Callable[[Progress], None] | None = None,
    workers: int | None = None,
) -> list[_T]:
    """Run `jobs` on all cores, and return the result of `reduce` for each run, in job order.

    The runs that probably take longest start first.

    The compiled core releases Python's interpreter lock, so runs use threads. Runs with policies
    written in Python use processes. Only the results of `reduce` are kept, which bounds the memory
    of a large sweep. `reduce` itself runs in this process.

    Raises:
        ScenarioError: if a scenario is wrong. The other runs are abandoned.
        InputError: if the user's own policy cannot be sent to another process.
        PolicyError: if the user's own policy raised an exception.
    """
    scenarios = [loading.of(job.scenario) for job in jobs]
    for scenario in scenarios:
        custom.require_picklable(scenario)
    costs = [scenario.cost for scenario in scenarios]
    meter = Meter(on_progress, costs)

    def make(each: tuple[Job, _core.Scenario]) -> tuple[_T, int]:
        job, scenario = each
        made = executor.call(_run_job, (scenario, job.seed))
        return reduce(job, made), made.virtual_ns

    custom_policies = any(scenario.policies for scenario in scenarios)
    with executors.opened(custom_policies=custom_policies, workers=workers) as executor:
        pairs = list(zip(jobs, scenarios, strict=True))
        return executors.make_all(executor, make, pairs, costs, meter.made)


def _run_job(job: tuple[_core.Scenario, int]) -> Run:
    return run_scenario(*job)


def capture_estimate(scenario: _core.Scenario, capture: Capture) -> float:
    """Estimated size in bytes of a capture of a scenario whose links are busy."""
    senders = {flow["direction"] for flow in flows(scenario.settings)}
    hosts = 2 if capture.at == "both" or (capture.at is None and len(senders) > 1) else 1
    data, ack = (
        min(length, capture.snap or length) + _FRAMING_BYTES for length in (_DATA_BYTES, _ACK_BYTES)
    )
    return scenario.cost * hosts * (data + 0.5 * ack)
