"""Results as a folder of files, and back.

========================  ====================================================================
``scenarios/CELL.toml``   the scenario of each cell, normalised, as the first seed ran it
``provenance.json``       version, commit, command, host, seeds, and the digest of every run
``runs.parquet``          one row for each connection of each run: factors and metrics
``subflows.parquet``      one row for each subflow of each run
``links.parquet``         one row for each direction of each path of each run
``counters.parquet``      what each host of each run counted (docs/counters.md)
``blocks.parquet``        delays of the blocks of the cells whose distribution is drawn
``samples.parquet``       time series of the first seed of each cell, of some cells of all
``runs.journal``          the finished runs, for going on after an interruption (`journal.py`)
========================  ====================================================================

Everything that is drawn or judged is computed from these files alone.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anabranch.errors import AnabranchError, InputError
from anabranch.results.estimates import Sample

TABLES = ("runs", "subflows", "links", "counters", "blocks", "samples")
PROVENANCE = "provenance.json"

Factor = str | int | float | bool
"""Value of something that differs between the cells of a sweep."""


class NothingMeasured(AnabranchError):
    """The results hold no number for what was asked, for example because nothing arrived."""


@dataclass(frozen=True)
class Results:
    """The tables of a sweep, and where they come from."""

    provenance: dict[str, Any]
    scenarios: dict[str, str]
    """TOML text by name of the cell."""
    runs: pl.DataFrame
    subflows: pl.DataFrame
    links: pl.DataFrame
    counters: pl.DataFrame
    blocks: pl.DataFrame
    samples: pl.DataFrame

    def values(self, metric: str, **factors: Factor) -> Sample:
        """A metric of the runs with these factors, one number for each seed, in their order.

        Raises:
            NothingMeasured: if no such run has that number.
        """
        rows = _where(self.runs, factors).sort("seed")
        sample = rows[metric].drop_nulls().to_numpy().astype(np.float64)
        if sample.size == 0:
            raise NothingMeasured(f"no {metric} was measured for {_words(factors)}")
        return sample

    def delays(self, **factors: Factor) -> Sample:
        """Delays in ms of the blocks of all seeds with these factors.

        Raises:
            NothingMeasured: if there are none.
        """
        sample = _where(self.blocks, factors)["delay_ms"].to_numpy().astype(np.float64)
        if sample.size == 0:
            raise NothingMeasured(f"no block was delivered for {_words(factors)}")
        return sample

    def save(self, folder: Path) -> None:
        """Write all tables, scenarios and the provenance.

        Raises:
            InputError: if the folder cannot be written.
        """
        prepare_folder(folder)
        scenarios = folder / "scenarios"
        try:
            scenarios.mkdir(exist_ok=True)
            for stale in scenarios.glob("*.toml"):
                stale.unlink()
            for cell, toml in self.scenarios.items():
                (scenarios / f"{cell}.toml").write_text(toml, encoding="utf-8")
            for name in TABLES:
                getattr(self, name).write_parquet(folder / f"{name}.parquet", compression="zstd")
            text = json.dumps(self.provenance, indent=2, ensure_ascii=False)
            (folder / PROVENANCE).write_text(text + "\n", encoding="utf-8")
        except (OSError, pl.exceptions.PolarsError) as error:
            raise _unwritable(folder, error) from error


def load(folder: Path) -> Results:
    """The results in a folder.

    Raises:
        InputError: if it holds none.
    """
    missing = [
        name
        for name in (PROVENANCE, *(f"{table}.parquet" for table in TABLES))
        if not (folder / name).is_file()
    ]
    if missing:
        raise InputError(
            f"{folder}: no {missing[0]} in it; name a folder that `anabranch reproduce`, "
            "`anabranch sweep` or `anabranch run --out` has written to its end"
        )
    try:
        provenance = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
        tables = {name: pl.read_parquet(folder / f"{name}.parquet") for name in TABLES}
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        first_line = (str(error).splitlines() or ["cannot be read"])[0]
        raise InputError(f"{folder}: {first_line}; make the results again") from error
    for name, table in tables.items():
        _refuse_old_columns(folder / f"{name}.parquet", table.columns)
    files = sorted((folder / "scenarios").glob("*.toml"))
    scenarios = {file.stem: file.read_text(encoding="utf-8") for file in files}
    return Results(provenance=provenance, scenarios=scenarios, **tables)


def _refuse_old_columns(file: Path, columns: Sequence[str]) -> None:
    for old in columns:
        new = old.replace("octets", "bytes")
        if new != old:
            raise InputError(
                f"{file}: the column {old} is called {new} since version 0.1.0; run the command "
                "that wrote this folder again, with an empty folder"
            )


def prepare_folder(folder: Path) -> None:
    """Make the folder, and make sure that files can be created in it.

    Raises:
        InputError: if not.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: Exception) -> InputError:
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    return InputError(f"--out {folder}: {reason}; name a folder that can be written")


def _where(table: pl.DataFrame, factors: dict[str, Factor]) -> pl.DataFrame:
    return table.filter(*(pl.col(name) == value for name, value in factors.items()))


def _words(factors: dict[str, Factor]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in factors.items()) or "any run"
