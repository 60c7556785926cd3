"""Running scenarios: one, or many in parallel.

A run is a pure function of version, scenario and seed: the same three give the same digest and
the same numbers on every machine.
"""

from __future__ import annotations

import os
import re
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import polars as pl

from anabranch import _core
from anabranch.errors import InputError, IntegrityError
from anabranch.runs import executors
from anabranch.runs.executors import Meter, Progress
from anabranch.scenarios import own
from anabranch.scenarios.own import OwnPolicy
from anabranch.scenarios.scenario import Scenario

_T = TypeVar("_T")

_NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_BYTES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}

_BITS_PER_SECOND = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
_PACKET_BITS = 12_000
_TRACE_RATE = 20_000_000


@dataclass(frozen=True)
class Run:
    """One execution of a scenario.

    The tables are polars frames; times are integers in nanoseconds of virtual time, sizes are
    bytes. `subflows` counts at the sender but for `bytes_received`; `links` has two rows for
    each path, direction 0 from server to client; `blocks` holds delivered blocks only, and bursts
    and rounds of requests and responses are blocks too; the two tables of samples have a row for
    each subflow or connection in every sample interval; `counters` has what each host counted.
    """

    toml: str
    """The scenario, normalised: every default spelled out."""
    seed: int
    digest: str
    """Of the trace of all segments; equal digests mean equal runs."""
    virtual_ns: int
    """Simulated time."""
    segments: int
    """Segments that entered a link."""
    wall_s: float
    cpu_s: float
    """Of the thread that made it."""
    connections: pl.DataFrame
    subflows: pl.DataFrame
    links: pl.DataFrame
    blocks: pl.DataFrame
    subflow_samples: pl.DataFrame
    connection_samples: pl.DataFrame
    counters: pl.DataFrame
    own_policies: tuple[OwnPolicy, ...] = ()
    """The user's own policies that took part: with any, `toml` alone does not repeat the run."""

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The normalised scenario as plain values."""
        return tomllib.loads(self.toml)

    @property
    def path_names(self) -> list[str]:
        """Names of the paths, in the order of the scenario."""
        return [path["name"] for path in self.settings["path"]]

    @property
    def connection_names(self) -> list[str]:
        """Names of the connections, in the order of the scenario."""
        return [connection["name"] for connection in self.settings["connection"]]

    @property
    def warm_up_ns(self) -> int:
        """Time at the beginning that metrics leave out."""
        return nanoseconds(self.settings["warm_up"])


@dataclass(frozen=True)
class Job:
    """A run to be made."""

    scenario: Scenario
    seed: int
    cell: str = ""
    """Name of what the run belongs to, for whoever collects the results."""


def run(scenario: Scenario | str | os.PathLike[str], seed: int = 1, pcap: str | None = None) -> Run:
    """Run a scenario, given as an object or as the name of a TOML file.

    Writes a capture of all links to the file `pcap` when it is given. Trace files are looked for
    beside the TOML file, those of an object in the working directory.

    Raises:
        ScenarioError: if the scenario is wrong.
        InputError: if a file cannot be read or written.
        IntegrityError: if the run stopped before its end.
        PolicyError: if a policy of the user's own raised an exception.
    """
    if isinstance(scenario, Scenario):
        toml, made_by = scenario.to_toml(), scenario.made_by()
        return run_toml(toml, scenario.name, seed, pcap, made_by, os.curdir)
    return run_toml(read_scenario(scenario), os.fspath(scenario), seed, pcap)


def read_scenario(file: str | os.PathLike[str]) -> str:
    """The text of a scenario file.

    Raises:
        InputError: if it cannot be read.
    """
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{file}: {(error.strerror or str(error)).lower()}; name a readable TOML file"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 text; name a TOML file") from error


def run_toml(
    toml: str,
    file: str,
    seed: int,
    pcap: str | None = None,
    made_by: own.MadeBy | None = None,
    folder: str | None = None,
) -> Run:
    """Run the scenario with the text `toml`; messages call it `file`.

    `made_by` holds what makes the user's own policies, for each connection. Trace files are
    looked for in `folder`, or in that of `file`.
    """
    normalised = _core.validate(toml, file, folder)
    started, cpu_before = time.perf_counter(), time.thread_time()
    try:
        result = _core.run(normalised, file, seed, pcap, made_by)
    except OSError as error:
        reason = re.sub(r" \(os error \d+\)$", "", str(error)).lower()
        raise InputError(f"--pcap {reason}; name a file that can be written") from error
    except RuntimeError as error:
        raise IntegrityError(f"{file}: {error}") from error
    wall_s, cpu_s = time.perf_counter() - started, time.thread_time() - cpu_before
    tables = cast("Mapping[str, Mapping[str, tuple[str, bytes]]]", result["tables"])
    names = [connection["name"] for connection in tomllib.loads(normalised)["connection"]]
    return Run(
        toml=normalised,
        seed=seed,
        digest=str(result["digest"]),
        virtual_ns=cast("int", result["virtual_ns"]),
        segments=cast("int", result["segments"]),
        wall_s=wall_s,
        cpu_s=cpu_s,
        own_policies=own.describe(names, made_by) if made_by else (),
        counters=counters(cast("Sequence[Mapping[str, int]]", result["counters"])),
        **{name: frame(columns) for name, columns in tables.items()},
    )


def frame(columns: Mapping[str, tuple[str, bytes]]) -> pl.DataFrame:
    """A frame of columns that are given as numpy type and raw bytes."""
    return pl.DataFrame(
        {name: np.frombuffer(data, dtype=dtype) for name, (dtype, data) in columns.items()}
    )


def counters(hosts: Sequence[Mapping[str, int]]) -> pl.DataFrame:
    """What client and server counted, as a table."""
    rows = [
        (host, name, count)
        for host, counts in zip(("client", "server"), hosts, strict=True)
        for name, count in counts.items()
    ]
    schema = {"host": pl.String, "counter": pl.String, "count": pl.UInt64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def run_many(
    jobs: Sequence[Job],
    reduce: Callable[[Job, Run], _T],
    *,
    on_progress: Callable[[Progress], None] | None = None,
    workers: int | None = None,
) -> list[_T]:
    """Run `jobs` on all cores and return what `reduce` makes of each run, in the order of `jobs`.

    The runs that probably take longest are started first.

    The compiled core runs without Python's interpreter lock, so threads suffice, but for policies
    written in Python: those run in processes. Only what `reduce` returns is kept, which bounds the
    memory of a large sweep; `reduce` itself runs in this process.

    Raises:
        ScenarioError: if a scenario is wrong; the other runs are abandoned.
        InputError: if a policy of the user's own cannot be handed to a process.
        PolicyError: if one raised an exception.
    """
    own_policies = [made_by for job in jobs if (made_by := job.scenario.made_by())]
    for made_by in own_policies:
        own.require_picklable(made_by)
    costs = [cost(normalised(job.scenario)) for job in jobs]
    meter = Meter(on_progress, costs)
    results: list[_T | None] = [None] * len(jobs)

    with executors.opened(own_policies=bool(own_policies), workers=workers) as executor:

        def work(job: Job) -> tuple[_T, int]:
            made = executor.call(_run_job, job)
            return reduce(job, made), made.virtual_ns

        def done(index: int, result: tuple[_T, int]) -> None:
            results[index], virtual_ns = result
            meter.made(index, virtual_ns)

        executors.call_all(executor, work, jobs, costs, done)
    return cast("list[_T]", results)


def _run_job(job: Job) -> Run:
    return run(job.scenario, job.seed)


def normalised(scenario: Scenario) -> str:
    """The scenario as TOML with every default spelled out.

    Raises:
        ScenarioError: if it is wrong.
    """
    return _core.validate(scenario.to_toml(), scenario.name, os.curdir)


def cost(toml: str) -> float:
    """An estimate of how long a run takes, from a normalised scenario, in packets sent.

    That is its duration times the sum of its paths' rates.
    """
    settings = tomllib.loads(toml)
    rates = [_rate(path) for path in settings["path"]]
    return nanoseconds(settings["duration"]) / 1e9 * sum(rates) / _PACKET_BITS


def _rate(path: Mapping[str, Any]) -> float:
    """Rate of a path in bit/s; a usual one for a path that follows a trace."""
    return _quantity(path["rate"], _BITS_PER_SECOND) if "rate" in path else _TRACE_RATE


def nanoseconds(text: str) -> int:
    """A duration in the form in which the core writes it, such as ``"5s"`` or ``"0.5ms"``."""
    return _quantity(text, _NANOSECONDS)


def byte_count(text: str) -> int:
    """A size in the form in which the core writes it, such as ``"200KiB"``."""
    return _quantity(text, _BYTES)


def _quantity(text: str, units: Mapping[str, int]) -> int:
    number = text.rstrip("/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return round(float(number) * units[text[len(number) :].strip()])
