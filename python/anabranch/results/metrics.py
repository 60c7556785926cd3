"""Metrics of single runs. The compiled core defines them, for single runs and for batches.

Goodput is the data that arrived at the receiver in the measured time, divided by that time. The
delay of a block starts when the stack has accepted its last byte, and ends when its last byte has
been delivered in order. Delays exclude the warm-up. The module `metrics` of the crate
``anabranch-sim`` explains all metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from anabranch import _core
from anabranch.results.collected import Collected
from anabranch.results.folder import TABLES
from anabranch.runs.columns import Columns, Words, column
from anabranch.runs.run import Run

if TYPE_CHECKING:
    import polars as pl

Numbers = npt.NDArray[np.float64]

MODE_BIN_MS: float = _core.MODE_BIN_MS
"""Width of the histogram bins for `delay_mode_ms` and the density plots."""

LIMITS = {
    "window-limited": "window_limited_share",
    "send-buffer-limited": "send_buffer_limited_share",
}
"""The metrics of the buffers that can stop a sender, by their names in tables."""

_TABLES = (
    "connections", "subflows", "links", "blocks", "subflow_samples", "connection_samples",
    "changes",
)  # fmt: skip
"""Tables that the core reduces a run from."""

_HOSTS = ("client", "server")


def reduced(
    run: Run,
    *,
    keep_blocks: bool = False,
    keep_samples: bool = False,
    may_fail: bool = True,
    name: str | None = None,
    note: str = "",
) -> _core.Record:
    """Reduce a run to the results that batches keep.

    `name` identifies the run in errors; without it, there are none. `note` is kept with the run.

    Raises:
        IntegrityError: if a connection failed that must not fail, or delivered wrong bytes.
    """
    return _core.reduce(
        run.scenario,
        _plain(run),
        _counters(run.tables["counters"]),
        digest=run.digest,
        virtual_ns=run.virtual_ns,
        data_segments=run.data_segments,
        cpu_s=run.cpu_s,
        note=note,
        keep_blocks=keep_blocks,
        keep_samples=keep_samples,
        may_fail=may_fail,
        name=name,
    )


def tables(run: Run) -> dict[str, pl.DataFrame]:
    """The tables of a run as those of a results folder, but without labels."""
    return _frames(run.scenario, reduced(run, keep_blocks=True, keep_samples=True))


def column_names(scenario: _core.Scenario) -> set[str]:
    """The columns of all tables that runs of the scenario have."""
    return Collected(_core.collect([scenario], [])).names()


def connection_rows(run: Run) -> list[dict[str, Any]]:
    """All metrics of each connection of a run, as rows of a results table."""
    return _frames(run.scenario, reduced(run))["runs"].to_dicts()


def connection_row(run: Run, connection: int = 0) -> dict[str, Any]:
    """All metrics of one connection of a run."""
    return connection_rows(run)[connection]


def changes(run: Run) -> list[dict[str, Any]]:
    """Changes of a connection's paths, and the time in ms until its application's next byte.

    It is `None` if the application got nothing after the change.
    """
    rows = run.changes.iter_rows(named=True)
    return [
        {
            "connection": run.connection_names[row["connection"]],
            "path": run.path_names[row["path"]],
            "changed_s": row["changed_ns"] / 1e9,
            "first_byte_ms": (row["first_byte_ns"] - row["changed_ns"]) / 1e6
            if row["first_byte_ns"]
            else None,
        }
        for row in rows
    ]


def delays_ms(run: Run, connection: int = 0) -> Numbers:
    """Delays in ms of the delivered blocks that a connection accepted after the warm-up."""
    return np.array(_core.block_delays_ms(run.scenario, _plain(run), connection), np.float64)


def delays_since_write_ms(blocks: Columns | pl.DataFrame, warm_up_ns: int = 0) -> Numbers:
    """Delays in ms from the write of each block to its delivery, of a run with one connection.

    They include the wait for the send buffer: a program that writes as fast as it can begins to
    write a block when the send buffer has accepted the previous block. Only blocks whose write
    began after the warm-up count.
    """
    accepted, delivered = (column(blocks, name) for name in ("accepted_ns", "delivered_ns"))
    written, accepted, delivered = accepted[:-1], accepted[1:], delivered[1:]
    measured = (written >= warm_up_ns) & (delivered >= accepted)
    delays: Numbers = (delivered[measured] - written[measured]).astype(np.float64) / 1e6
    return delays


def expected_delay_ms(send_buffer: int, goodput: float, reverse_delay_ms: float) -> float:
    """Expected delay of a block in ms when the send buffer is the limit, by Little's law.

    The stack has accepted a block when its last byte fits into the buffer of `send_buffer` bytes.
    The bytes before it leave the buffer at `goodput` Mbit/s. A byte leaves when its acknowledgement
    arrives, one reverse one-way delay after its delivery.
    """
    return send_buffer * 8 / (goodput * 1e3) - reverse_delay_ms


def _frames(scenario: _core.Scenario, *records: _core.Record) -> dict[str, pl.DataFrame]:
    found = Collected(_core.collect([scenario], [(0, record) for record in records]))
    return {name: found.frame(name) for name in TABLES}


def _plain(run: Run) -> dict[str, dict[str, bytes]]:
    """The tables as the core takes them: columns as little-endian bytes."""
    return {
        name: {
            key: (each.index.astype(np.uint8) if isinstance(each, Words) else each).tobytes()
            for key, each in run.tables[name].items()
        }
        for name in _TABLES
    }


def _counters(table: Mapping[str, Any]) -> tuple[list[tuple[str, int]], ...]:
    """Names and counts of each host's events."""
    hosts, names, counts = (column(table, name).tolist() for name in ("host", "counter", "count"))
    rows = list(zip(hosts, names, counts, strict=True))
    return tuple([(name, count) for host, name, count in rows if host == each] for each in _HOSTS)
