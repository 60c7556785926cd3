"""Run scenarios and experiments from a notebook or script: the interface of ``import anabranch``.

Tables are polars frames. ``frame.to_pandas()`` converts one to a pandas frame if pandas is
installed (the extra ``pandas``).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from anabranch.batches.single import single
from anabranch.exchange import export as exporting
from anabranch.exchange import importing
from anabranch.exchange.export import Exported, Target
from anabranch.exchange.importing import Imported
from anabranch.gallery import catalogue
from anabranch.gallery import reproduce as gallery
from anabranch.reports import notebook, pictures, single_run
from anabranch.reports.figures import Panel
from anabranch.results import folder, frames, metrics
from anabranch.results.claims import Judgement
from anabranch.runs import run as core
from anabranch.runs.executors import Progress
from anabranch.runs.limits import PCAP_LIMIT
from anabranch.runs.run import CaptureAt, Job
from anabranch.scenarios import loading
from anabranch.scenarios.scenario import Scenario
from anabranch.sweeps import compare as comparing
from anabranch.sweeps import panels as sweep_panels
from anabranch.sweeps import sweep as sweeps
from anabranch.sweeps.plan import Plan
from anabranch.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")


class Run(core.Run):
    """One execution of a scenario, with readable tables and drawings.

    The attributes are those of `anabranch.runs.run.Run`. The frames ``connections``, ``subflows``,
    ``links``, ``blocks``, ``connection_samples``, ``subflow_samples``, ``changes`` and ``counters``
    contain the core's raw records: integers, times in nanoseconds, sizes in bytes. Further
    attributes are ``toml``, ``seed``, ``digest``, ``virtual_ns``, ``segments``, ``wall_s`` and
    ``cpu_s``.
    """

    @classmethod
    def of(cls, made: core.Run) -> Run:
        """Convert a run of the core module to one with tables and drawings."""
        return cls(**{each.name: getattr(made, each.name) for each in dataclasses.fields(made)})

    def summary(self) -> pl.DataFrame:
        """Goodput, delays of blocks in ms and shares of the paths, with a row per connection."""
        rows = metrics.connection_rows(self)
        shares = [f"share_{name}" for name in self.path_names]
        return pl.DataFrame(rows, infer_schema_length=None).select(*_SUMMARY, *shares)

    def timeseries(self) -> pl.DataFrame:
        """Time series with a row for each sample and subflow; see `frames.timeseries`."""
        return frames.timeseries(metrics.tables(self)["samples"])

    def plot(self) -> Figure:
        """Draw goodput, throughput by path, windows, round-trip times, queues and block delays."""
        return _figure(single_run.panels(self.results()), self.results(), self.settings["name"])

    def results(self) -> folder.Results:
        """The run as results. Once they are saved, `anabranch report` can draw them."""
        return single(self, self.settings["name"], self.wall_s)

    def __repr__(self) -> str:
        goodputs = ", ".join(
            f"{row['connection']} {row['goodput_mbps']:.2f} Mbit/s"
            for row in self.summary().iter_rows(named=True)
        )
        name = self.settings["name"]
        return f"<Run {name!r}, seed {self.seed}, {self.virtual_ns / 1e9:g} s: {goodputs}>"

    def _repr_html_(self) -> str:
        return notebook.page(repr(self), self.summary(), self.plot())


_SUMMARY = (
    "connection", "goodput_mbps", "block_count", "delay_mean_ms", "delay_p50_ms", "delay_p95_ms",
    "delay_p99_ms", "delay_max_ms", "stall_ms", "window_limited_share",
    "send_buffer_limited_share", "reinjections", "completed", "aborted", "failed",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, repr=False)
class Sweep:
    """The results of many runs of a scenario.

    Attributes:
        results: All tables. ``results.runs`` has a row for each connection of each run. Its columns
            are factors and metrics.
    """

    results: folder.Results

    def summary(self) -> pl.DataFrame:
        """Medians over seeds of goodput, delays and shares, with a row per cell and connection."""
        keys = ("cell", *self.results.provenance["factors"], "connection")
        measured = pl.col(
            "goodput_mbps", "delay_mean_ms", "delay_p95_ms", "reinjections", "^share_.*$"
        )
        groups = self.results.runs.group_by(keys, maintain_order=True)
        return groups.agg(pl.col("seed").n_unique().alias("seeds"), measured.median())

    def timeseries(self) -> pl.DataFrame:
        """Time series of the runs whose samples the plan keeps (``keep = ["samples"]``)."""
        labels = ("cell", *self.results.provenance["factors"], "seed")
        return frames.timeseries(self.results.samples, labels)

    def plot(self) -> Figure:
        """Draw goodput and delay over the factors."""
        name = str(self.results.provenance["sweep"])
        return _figure(sweep_panels.panels(self.results), self.results, name)

    def __repr__(self) -> str:
        about = self.results.provenance
        cells = counted(self.results.runs["cell"].n_unique(), "cell")
        return f"<Sweep {about['sweep']!r}: {cells}, {counted(len(about['seeds']), 'seed')}>"

    def _repr_html_(self) -> str:
        return notebook.page(repr(self), self.summary(), self.plot())


@dataclasses.dataclass(frozen=True, repr=False)
class Reproduction:
    """A published experiment that was run and judged.

    Attributes:
        id: Name of the experiment in the gallery.
        results: All tables, as in a sweep.
        judgements: The claims with their measurements and verdicts.
    """

    id: str
    results: folder.Results
    judgements: tuple[Judgement, ...]

    def claims(self) -> pl.DataFrame:
        """A row for each claim: statement, source, check, measurement and verdict."""
        keys = ("id", "statement", "source", "check", "measured", "verdict")
        rows = [judgement.as_json() for judgement in self.judgements]
        return pl.DataFrame([{key: row[key] for key in keys} for row in rows])

    def plot(self) -> Figure:
        """Draw the figure of the report."""
        entry = catalogue.entry(self.id)
        return _figure(entry.panels, self.results, entry.row.title)

    def __repr__(self) -> str:
        verdicts = [judgement.verdict for judgement in self.judgements]
        counts = (
            f"{verdicts.count(verdict)} {verdict.words}" for verdict in dict.fromkeys(verdicts)
        )
        return f"<Reproduction {self.id!r}: {', '.join(counts)}>"

    def _repr_html_(self) -> str:
        return notebook.page(repr(self), self.claims(), self.plot())


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

    `settings` changes keys of the scenario, as ``--set`` does on the command line:
    ``run("wifi_3g.toml", settings={"path.wifi.rate": "20Mbit/s"})``.

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
    return Run.of(
        core.run(
            scenario,
            seed,
            pcap,
            pcap_limit=pcap_limit,
            pcap_at=pcap_at,
            snap=snap,
            settings=settings,
        )
    )


def run_many(
    jobs: Sequence[Job],
    reduce: Callable[[Job, Run], T],
    *,
    on_progress: Callable[[Progress], None] | None = None,
    workers: int | None = None,
) -> list[T]:
    """Run `jobs` on all cores, and return the result of `reduce` for each run, in job order.

    Only the results of `reduce` are kept, which bounds the memory. `reduce` runs in this process,
    in one of several threads.

    Raises:
        ScenarioError: if a scenario is wrong. The other runs are abandoned.
        InputError: if the user's own policy cannot be sent to another process.
        PolicyError: if the user's own policy raised an exception.
    """
    return core.run_many(
        jobs, lambda job, made: reduce(job, Run.of(made)), on_progress=on_progress, workers=workers
    )


def sweep(
    plan: str | os.PathLike[str] | Plan,
    out: str | os.PathLike[str],
    *,
    on: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Sweep:
    """Run a sweep, given as a plan or as the name of its TOML file, into the folder `out`.

    A second call with the same folder makes only the missing runs. `on` is the address of a Dask
    scheduler (``dask://HOST:PORT``); by default the sweep runs on all local cores.

    Raises:
        ScenarioError: if the scenario of a cell is wrong.
        InputError: if the plan is wrong or the folder cannot be written.
        IntegrityError: if a run delivered wrong bytes.
    """
    return Sweep(sweeps.sweep(plan, out, on=on, on_progress=on_progress))


def reproduce(
    entry: str,
    out: str | os.PathLike[str],
    *,
    seeds: int | None = None,
    full: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Reproduction:
    """Run a published experiment into the folder `out`, judge its claims and write its report.

    A second call with the same folder makes only the missing runs. `seeds` is the number of seeds.
    With ``full=True``, the experiment runs at the paper's scale.

    Raises:
        InputError: if there is no such entry, or the folder cannot be written.
    """
    chosen = catalogue.entry(entry)
    tier = chosen.full if full else chosen.quick
    tier = dataclasses.replace(tier, seeds=seeds or tier.seeds)
    results = gallery.execute(chosen, tier, Path(out), on_progress=on_progress)
    return Reproduction(entry, results, tuple(gallery.save_entry(chosen, results, Path(out))))


def compare(
    a: str | os.PathLike[str] | folder.Results | Run | Sweep,
    b: str | os.PathLike[str] | folder.Results | Run | Sweep,
) -> pl.DataFrame:
    """Compare two runs or sweeps, or their folders, in pairs with equal seeds.

    The frame has a row for each cell, connection and metric: the medians of both, and the median of
    the paired differences (second minus first) with its 95 % interval. A missing name of the cell
    stands for all cells.

    Raises:
        InputError: if a folder cannot be read, or no run of one has a partner in the other.
    """
    return comparing.folders(_results(a), _results(b), ("a", "b")).frame()


def export(scenario: Scenario | str | os.PathLike[str], to: Target) -> Exported:
    """Write a script that repeats a scenario on a real kernel: for ``"tc"`` or ``"mininet"``.

    The scenario is an object or the name of a TOML file. `Exported.text` is the script.

    Raises:
        ScenarioError: if the scenario is wrong.
        InputError: if the file cannot be read, or the scenario is too large for a script.
    """
    if isinstance(scenario, Scenario):
        return exporting.export(loading.of(scenario), to)
    return exporting.export(loading.of_file(scenario), to)


def from_mininet(file: str | os.PathLike[str]) -> Imported:
    """Turn a script for Mininet into a scenario, without running it.

    `Imported.toml` is the scenario.

    Raises:
        InputError: if the file cannot be read, is not Python, or has no two hosts joined by a path.
    """
    return importing.read(file)


def _results(of: str | os.PathLike[str] | folder.Results | Run | Sweep) -> folder.Results:
    if isinstance(of, folder.Results):
        return of
    if isinstance(of, Run):
        return of.results()
    return of.results if isinstance(of, Sweep) else folder.load(Path(of))


def _figure(panels: Sequence[Panel], results: folder.Results, title: str) -> Figure:
    return pictures.compose(panels, results, title, pictures.COLUMNS)
