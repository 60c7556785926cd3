"""Deviation of a modelled stack from recorded runs of its kernel.

The original kernel of Multipath TCP ran as User-Mode Linux, with a clock that stands still while
anything computes, over emulated links like those of scenarios. The CSV file next to this module has
the settings and the results of these runs.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anabranch import _core
from anabranch.reports.table import Table
from anabranch.results import metrics
from anabranch.runs import executors
from anabranch.runs.run import Run, run_scenario
from anabranch.scenarios import loading

STACKS = ("mptcp.org-0.89",)
"""The stacks with recorded runs."""

DRAWN = "drawn"
"""The group of scenarios that were drawn at random. The targets apply to it."""

TARGETS = {"goodput": (3, 8), "mean delay": (5, 12)}
"""Largest deviations in %, in the median and at the 90th percentile of the drawn scenarios."""

_WARM_UP_S = 5
_BLOCK = "8192B"
_CONGESTION_CONTROLS = {
    "reno": "new_reno",
    "cubic": "cubic_linux",
    "lia": "lia_linux",
    "olia": "olia",
}
_SCHEDULERS = {"default": "mptcp_org", "roundrobin": "mptcp_org_round_robin"}
_REMEDIES: dict[str, dict[str, Any]] = {
    "m1": {"opportunistic_retransmission": True},
    "m2": {"penalisation": "conext13"},
}


@dataclass(frozen=True)
class RecordedQuantity:
    """A quantity of a recorded run, and of the run of its scenario."""

    kernel: float
    model: float

    @property
    def off_by(self) -> float:
        """Deviation of the model from the kernel, in %."""
        return (self.model / self.kernel - 1) * 100


@dataclass(frozen=True)
class ComparedRun:
    """A recorded run and the run of its scenario."""

    group: str
    name: str
    goodput: RecordedQuantity | None
    """In Mbit/s; `None` if it was not recorded."""
    delay: RecordedQuantity | None
    """The mean from the write of a block to its delivery, in ms."""

    def of(self, what: str) -> RecordedQuantity | None:
        """A quantity by its name in `TARGETS`."""
        return self.goodput if what == "goodput" else self.delay


def compare(
    stack: str, on_progress: Callable[[executors.Progress], None] | None = None
) -> list[ComparedRun]:
    """Run the scenarios of all recorded runs of a stack, on all cores."""
    rows = _rows(stack)
    scenarios = [_scenario(stack, row) for row in rows]
    costs = [scenario.cost for scenario in scenarios]
    meter = executors.Meter(on_progress, costs)
    made: dict[int, tuple[float, float]] = {}
    with executors.opened() as executor:

        def work(index: int) -> tuple[float, float]:
            job = (scenarios[index], int(rows[index]["seed"]))
            return _measure(executor.call(_run, job))

        def done(index: int, result: tuple[float, float]) -> None:
            made[index] = result
            meter.made(index, scenarios[index].duration_ns)

        executors.call_all(executor, work, range(len(rows)), costs, done)
    return [_compared(row, *made[index]) for index, row in enumerate(rows)]


def _rows(stack: str) -> list[dict[str, str]]:
    with Path(__file__).with_name(f"{stack}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _run(job: tuple[_core.Scenario, int]) -> Run:
    return run_scenario(*job)


def _measure(run: Run) -> tuple[float, float]:
    delays = metrics.delays_since_write_ms(run.blocks, run.warm_up_ns)
    mean = float(delays.mean()) if delays.size else np.nan
    return float(metrics.connection_rows(run)[0]["goodput_mbps"]), mean


def _compared(row: Mapping[str, str], goodput: float, delay: float) -> ComparedRun:
    def quantity(name: str, model: float) -> RecordedQuantity | None:
        return RecordedQuantity(float(row[name]), model) if row[name] else None

    return ComparedRun(
        row["group"],
        row["name"],
        quantity("goodput_mbps", goodput),
        quantity("delay_mean_ms", delay),
    )


def _scenario(stack: str, row: Mapping[str, str]) -> _core.Scenario:
    """The scenario of a recorded run."""
    table = {
        "name": f"{row['group']}, {row['name']}",
        "duration": f"{row['duration_s']}s",
        "warm_up": f"{_WARM_UP_S}s",
        "path": [_path(row, number) for number in (1, 2) if row[f"rate{number}_mbps"]],
        "connection": [_connection(stack, row)],
    }
    return loading.of_table(table, f"{stack}.csv")


def _path(row: Mapping[str, str], number: int) -> dict[str, Any]:
    path = {
        "name": f"path {number}",
        "rate": f"{row[f'rate{number}_mbps']}Mbit/s",
        "delay": f"{float(row[f'rtt{number}_ms']) / 2:g}ms",
        "limit": f"{row[f'queue{number}_pkts']}packets",
    }
    impaired: dict[str, str] = {}
    if number == 2:
        jitter, loss = float(row["jitter2_ms"]), float(row["loss2_percent"])
        impaired |= {"jitter": f"{jitter:g}ms"} if jitter else {}
        impaired |= {"loss": f"{loss:g}%"} if loss else {}
    if row["shaper"] == "plain":
        # In the direction of the data.
        return path | ({"reverse": impaired} if impaired else {})
    return path | {"shaper": row["shaper"], **impaired}


def _connection(stack: str, row: Mapping[str, str]) -> dict[str, Any]:
    host = {
        "kind": stack,
        "data_ack": row["data_ack"],
        "own_window": row["own_window"],
        "charges_delayed_segments": row["segment_memory"] == "kept",
    }
    connection: dict[str, Any] = {
        "name": "upload",
        "stack": stack,
        "protocol": row["stack"],
        "direction": "upload",
        "host": host,
        "send_buffer": f"{row['so_sndbuf']}B",
        "receive_buffer": f"{row['so_rcvbuf']}B",
        "congestion_control": _CONGESTION_CONTROLS[row["congestion_control"]],
        "workload": {"kind": "blocks", "block_size": _BLOCK},
    }
    if row["stack"] == "tcp":
        return connection
    remedies: dict[str, Any] = {}
    # With round robin, the kernel has neither mechanism, whatever its switches say.
    for switch in row["remedies"].split() if row["scheduler"] == "default" else ():
        remedies |= _REMEDIES[switch]
    return connection | {"scheduler": _SCHEDULERS[row["scheduler"]], "remedies": remedies}


def tables(compared: Sequence[ComparedRun]) -> dict[str, Table]:
    """A table for each group of runs, with its title."""
    headings = ("run", "Mbit/s", "kernel", "off by", "mean ms", "kernel", "off by")
    groups = dict.fromkeys(each.group for each in compared)
    return {
        group: Table(
            headings,
            tuple(
                (each.name, *_cells(each.goodput, 2), *_cells(each.delay, 0))
                for each in compared
                if each.group == group
            ),
        )
        for group in groups
    }


def _cells(quantity: RecordedQuantity | None, digits: int) -> tuple[str, str, str]:
    if quantity is None:
        return "–", "–", "–"
    model, kernel = (f"{value:.{digits}f}" for value in (quantity.model, quantity.kernel))
    return model, kernel, f"{quantity.off_by:+.1f} %"


def finding(compared: Sequence[ComparedRun]) -> list[str]:
    """The distribution of the deviations over the drawn scenarios, a sentence for each quantity."""
    return [_sentence(compared, what) for what in TARGETS]


def _sentence(compared: Sequence[ComparedRun], what: str) -> str:
    drawn = [each for each in compared if each.group == DRAWN]
    found = [(abs(pair.off_by), each.name) for each in drawn if (pair := each.of(what))]
    median, p90 = np.percentile([off for off, _ in found], (50, 90))
    worst, name = max(found)
    targets = TARGETS[what]
    verdict = "within" if median <= targets[0] and p90 <= targets[1] else "not within"
    return (
        f"Over {len(found)} drawn runs, {what} is off by {median:.1f} % in the median, by "
        f"{p90:.1f} % at the 90th percentile, and by {worst:.0f} % at worst ({name}): {verdict} "
        f"the targets of {targets[0]} and {targets[1]} %."
    )


def frame(compared: Sequence[ComparedRun]) -> pl.DataFrame:
    """All runs as a data frame, for a file."""
    columns = {
        f"{name}_{side}": [
            getattr(pair, side) if (pair := getattr(each, name)) else None for each in compared
        ]
        for name in ("goodput", "delay")
        for side in ("model", "kernel", "off_by")
    }
    about = {"group": [e.group for e in compared], "run": [e.name for e in compared]}
    return pl.DataFrame(about | columns)
