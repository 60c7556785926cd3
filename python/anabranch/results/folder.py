"""Saving results to a folder, and loading them.

========================  ====================================================================
``scenarios/CELL.toml``   the normalised scenario of each cell, as the first seed ran it
``provenance.json``       version, commit, command, host, seeds, and the digest of every run
``runs.parquet``          one row for each connection of each run: factors and metrics
``subflows.parquet``      one row for each subflow of each run
``links.parquet``         one row for each direction of each path of each run
``counters.parquet``      the counters of each host of each run (docs/counters.md)
``blocks.parquet``        delays of blocks, for the cells whose distribution is drawn
``samples.parquet``       time series of each cell's first seed, or of all seeds of some cells
``runs.journal``          the finished runs, to continue after an interruption (`journal.py`)
========================  ====================================================================

All drawings and verdicts are computed from these files alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anabranch.errors import AnabranchError, InputError, unknown
from anabranch.files import prepare_folder, reading, require_other, write_whole, writing_to
from anabranch.results.estimates import Sample
from anabranch.scenarios.quantities import nanoseconds

TABLES = ("runs", "subflows", "links", "counters", "blocks", "samples")
PROVENANCE = "provenance.json"
FILES = (PROVENANCE, *(f"{table}.parquet" for table in TABLES))
"""The files without which a folder has no complete results."""

_PROVENANCE_KEYS: dict[str, Any] = {
    "version": str,
    "duration": str,
    "warm_up": str,
    "seeds": list,
    "runs": list,
    "entry": (str, type(None)),
}

_UNREADABLE = (
    OSError, ValueError, RecursionError, pl.exceptions.PolarsError, pl.exceptions.PanicException
)  # fmt: skip
"""Exceptions of reading a damaged table or provenance."""

_MOST_CELL_BYTES = 100
"""Longest name of a cell, which also names a file."""

Factor = str | int | float | bool
"""Value of a factor of a sweep."""


class NothingMeasured(AnabranchError):
    """The results contain no value of a metric, for example because no data arrived."""


@dataclass(frozen=True)
class Results:
    """The tables of a sweep and their provenance."""

    provenance: dict[str, Any]
    scenarios: dict[str, str]
    """TOML text of the scenarios, by name of the cell."""
    runs: pl.DataFrame
    subflows: pl.DataFrame
    links: pl.DataFrame
    counters: pl.DataFrame
    """Text is an enumeration, and becomes plain text in the file."""
    blocks: pl.DataFrame
    samples: pl.DataFrame

    @property
    def is_live(self) -> bool:
        """Whether the runs were live: nobody can repeat them packet by packet."""
        about = self.provenance
        return "live" in about or any(run["digest"] is None for run in about["runs"])

    @property
    def warm_up_ns(self) -> int:
        """Time that metrics exclude, in ns."""
        return nanoseconds(self.provenance["warm_up"])

    @property
    def duration_ns(self) -> int:
        """Duration of a run, in ns."""
        return nanoseconds(self.provenance["duration"])

    def rows(self, table: str, **factors: Factor) -> pl.DataFrame:
        """The rows of a table that belong to the runs with these factors."""
        rows: pl.DataFrame = getattr(self, table)
        return rows.filter(*(pl.col(name) == value for name, value in factors.items()))

    def values(self, metric: str, **factors: Factor) -> Sample:
        """A metric of the runs with these factors: one value for each seed, in the seeds' order.

        Raises:
            NothingMeasured: if no such run has a value of the metric.
            InputError: if runs have no such metric.
        """
        if metric not in self.runs.columns:
            raise unknown("the runs have no metric", metric, self.runs.columns)
        rows = self.rows("runs", **factors).sort("seed")
        sample = rows[metric].drop_nulls().to_numpy().astype(np.float64)
        if sample.size == 0:
            raise NothingMeasured(f"no {metric} was measured for {_words(factors)}")
        return sample

    def delays(self, **factors: Factor) -> Sample:
        """Delays in ms of the blocks of all seeds with these factors.

        Raises:
            NothingMeasured: if no block was delivered.
        """
        sample = self.rows("blocks", **factors)["delay_ms"].to_numpy().astype(np.float64)
        if sample.size == 0:
            raise NothingMeasured(f"no block was delivered for {_words(factors)}")
        return sample

    def save(self, folder: Path) -> None:
        """Write all tables, the scenarios and the provenance.

        Raises:
            InputError: if the folder cannot be written.
        """
        files = {f"scenarios/{cell}.toml": toml.encode() for cell, toml in self.scenarios.items()}
        for name in TABLES:
            files[f"{name}.parquet"] = _parquet(getattr(self, name))
        text = json.dumps(self.provenance, indent=2, ensure_ascii=False)
        files[PROVENANCE] = f"{text}\n".encode()
        earlier = _cells_of(folder)
        write_whole(folder, files)
        with writing_to(folder, "folder"):
            for cell in earlier - self.scenarios.keys():
                (folder / "scenarios" / f"{cell}.toml").unlink(missing_ok=True)


def _cells_of(folder: Path) -> set[str]:
    """The cells of earlier results in the folder, whose files may be removed."""
    try:
        runs = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))["runs"]
        return {run["cell"] for run in runs if "/" not in run["cell"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()


def require_outside(folder: Path, scenarios: Iterable[Path]) -> None:
    """Check that results in the folder would replace none of the scenarios to run.

    Raises:
        UnwritableError: if they would.
    """
    for file in scenarios:
        require_other(folder / "scenarios" / file.name, [file])


def _parquet(table: pl.DataFrame) -> bytes:
    """The table as a file. Parts of it are converted at a time, which bounds the memory."""
    data = io.BytesIO()
    plain = table.lazy().with_columns(pl.col(pl.Enum).cast(pl.String))
    plain.sink_parquet(data, compression="zstd")
    return data.getvalue()


def load(folder: Path) -> Results:
    """Load the results in a folder.

    Raises:
        InputError: if the folder contains no complete results.
    """
    hint = (
        "name a folder with complete results of `anabranch reproduce`, `anabranch sweep` or "
        "`anabranch run --out`"
    )
    with reading(folder, hint):
        missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise InputError(f"{folder}: {missing[0]} is missing; {hint}")
    try:
        provenance = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
        tables = {name: pl.read_parquet(folder / f"{name}.parquet") for name in TABLES}
    except _UNREADABLE as error:
        first_line = (str(error).splitlines() or ["cannot be read"])[0]
        raise InputError(f"{folder}: {first_line}; make the results again") from error
    _check_provenance(folder / PROVENANCE, provenance)
    for name, table in tables.items():
        _check_columns(folder / f"{name}.parquet", table)
    cells = {run["cell"] for run in provenance["runs"]}
    scenarios = {}
    for file in sorted((folder / "scenarios").glob("*.toml")):
        if file.stem in cells:
            with reading(file, "make the results again"):
                scenarios[file.stem] = file.read_text(encoding="utf-8")
    return Results(provenance=provenance, scenarios=scenarios, **tables)


def _check_provenance(file: Path, provenance: object) -> None:
    if not isinstance(provenance, dict):
        raise InputError(f"{file}: not an object; make the results again")
    for key, kind in _PROVENANCE_KEYS.items():
        if not isinstance(provenance.get(key), kind):
            raise InputError(f'{file}: "{key}" is missing or damaged; make the results again')
    if not all(map(_is_run, provenance["runs"])):
        raise InputError(f'{file}: "runs" is damaged; make the results again')


def _is_run(run: object) -> bool:
    """Whether this names a run, and when its connections started, if it says so."""
    if not isinstance(run, dict):
        return False
    starts = run.get("starts") or []
    return (
        isinstance(run.get("cell"), str)
        and isinstance(run.get("seed"), int)
        and isinstance(run.get("digest", 0), (str, type(None)))
        and isinstance(starts, list)
        and all(isinstance(each, str) for each in starts)
    )


def _check_columns(file: Path, table: pl.DataFrame) -> None:
    for old in table.columns:
        new = old.replace("octets", "bytes")
        if new != old:
            raise InputError(
                f"{file}: version 0.1.0 renamed the column {old} to {new}; repeat the command that "
                "wrote this folder, with an empty folder"
            )
    for column in ("cell", "seed"):
        if column not in table.columns:
            raise InputError(f"{file}: the column {column} is missing; make the results again")


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Create the folder, and lock it against other processes that write results.

    Raises:
        InputError: if the folder cannot be written, or another process writes to it.
    """
    prepare_folder(folder)
    with writing_to(folder, "folder"):
        handle = os.open(folder, os.O_RDONLY)
    try:
        _lock(handle, folder)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(
            f"{folder}: another process is writing results to this folder; wait for it or name "
            "another folder"
        ) from error


def shortened(cell: str) -> str:
    """The name of a cell; a digest replaces the end of a long one, so that names still differ."""
    name = cell.encode()
    if len(name) <= _MOST_CELL_BYTES:
        return cell
    digest = hashlib.sha256(name).hexdigest()[:8]
    return f"{name[: _MOST_CELL_BYTES - 9].decode(errors='ignore')}-{digest}"


def _words(factors: dict[str, Factor]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in factors.items()) or "any run"
