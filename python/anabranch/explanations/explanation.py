"""What became of the capacity of a connection's paths, from a run with a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from anabranch.explanations.causes import BY_NAME, CAUSES, NONE, Cause
from anabranch.explanations.delays import Delays
from anabranch.results.estimates import number
from anabranch.runs.columns import frame
from anabranch.runs.run import Run
from anabranch.scenarios.routes import route

_NAMED = 0.15
"""Share of a cause from which the first sentences name a path (ours)."""
_SMALL = 0.02
"""Share of the capacity below which a loss is not worth a remedy (ours)."""


@dataclass(frozen=True)
class Loss:
    """Capacity of a path that a connection did not use for new data.

    Attributes:
        behind: The path of the subflow that blocked.
    """

    path: str
    cause: Cause
    behind: str | None
    mbps: float
    share: float
    """Part of the path's capacity."""
    varies: bool = False
    """Whether the path's capacity changes during the run."""

    @property
    def words(self) -> str:
        """The cause in words."""
        return (
            self.cause.words if self.behind is None else f"{self.cause.words} behind {self.behind}"
        )


@dataclass(frozen=True)
class Explanation:
    """Why one direction of a connection was not faster.

    Attributes:
        number: Number of the flow in the tables of the run.
    """

    run: Run
    number: int

    @property
    def name(self) -> str:
        """Name of the connection."""
        return self.run.connection_names[self.number]

    @property
    def flow(self) -> Mapping[str, Any]:
        """Settings of the connection."""
        return self.run.flows[self.number]

    @cached_property
    def paths(self) -> dict[int, str]:
        """Names of the paths whose capacity bounds the connection, by number.

        They are the connection's own paths. If several of them cross another path and together are
        not slower than that path, it counts in their place.
        """
        names = self.run.path_names
        settings = {path["name"]: path for path in self.run.settings["path"]}
        behind: dict[int, set[str]] = {}
        for name in self.flow["paths"]:
            for each in route(name, settings):
                behind.setdefault(names.index(each.path), set()).add(name)
        kept = {names.index(name): {name} for name in self.flow["paths"]}
        for shared, users in behind.items():
            replaced = [path for path, covered in kept.items() if covered <= users]
            if replaced and sum(map(self._capacity, replaced)) >= self._capacity(shared):
                kept[shared] = set().union(*(kept.pop(path) for path in replaced))
        return {index: names[index] for index in sorted(kept)}

    def _capacity(self, path: int) -> int:
        return int(self._rows.filter(pl.col("path") == path)["bytes"].sum())

    @cached_property
    def _rows(self) -> pl.DataFrame:
        return frame(self.run.tables["capacity"]).filter(pl.col("connection") == self.number)

    @cached_property
    def activities(self) -> pl.DataFrame:
        """The states of this connection's subflows, as intervals in nanoseconds."""
        table = frame(self.run.tables["activities"])
        return table.filter(pl.col("connection") == self.number)

    @cached_property
    def path_of_subflow(self) -> dict[int, str]:
        """Name of the path of each subflow, by slot; of several in a slot, the last one."""
        rows = self.activities.filter(pl.col("subflow") != NONE).sort("generation")
        return {
            row["subflow"]: self.run.path_names[row["path"]] for row in rows.iter_rows(named=True)
        }

    @property
    def seconds(self) -> float:
        """Simulated time."""
        return self.run.virtual_ns / 1e9

    def _mbps(self, byte_count: float) -> float:
        return byte_count * 8e-6 / self.seconds

    @cached_property
    def capacity_mbps(self) -> float:
        """What the paths could have carried, in Mbit/s."""
        return self._mbps(sum(map(self._capacity, self.paths)))

    @cached_property
    def goodput_mbps(self) -> float:
        """New data that the application read, over the whole run, in Mbit/s."""
        delivered = self.run.connections["bytes_delivered"][self.number]
        return self._mbps(int(delivered))

    @cached_property
    def account(self) -> pl.DataFrame:
        """What became of each byte of capacity: path, cause, behind, bytes.

        The bytes of all causes but ``useful``, and those of ``held``, add up to the capacity of
        the paths without the data that was delivered.
        """
        names = self.run.path_names
        shown = self._rows.filter(pl.col("path").is_in([*self.paths, NONE]))
        rows = [
            {
                "path": None if row["path"] == NONE else names[row["path"]],
                "cause": CAUSES[row["cause"]].name,
                "behind": self.path_of_subflow.get(row["behind"]),
                "bytes": row["bytes"],
            }
            for row in shown.iter_rows(named=True)
        ]
        schema = {"path": pl.String, "cause": pl.String, "behind": pl.String, "bytes": pl.UInt64}
        merged = pl.DataFrame(rows, schema=schema)
        keys = ["path", "cause", "behind"]
        return merged.group_by(keys, maintain_order=True).agg(pl.col("bytes").sum())

    @cached_property
    def losses(self) -> list[Loss]:
        """The lost capacity by path and cause, the largest first."""
        found = []
        settings = self.run.settings["path"]
        varying = {path["name"] for path in settings if path["change"] or "rate" not in path}
        capacity = {name: self._mbps(self._capacity(index)) for index, name in self.paths.items()}
        for row in self.account.iter_rows(named=True):
            cause = BY_NAME[row["cause"]]
            if cause.name == "useful":
                continue
            mbps = self._mbps(row["bytes"])
            of = capacity.get(row["path"]) or self.capacity_mbps
            path, share = row["path"] or "all", mbps / of if of else 0.0
            found.append(Loss(path, cause, row["behind"], mbps, share, path in varying))
        return sorted(found, key=lambda loss: -loss.mbps)

    @cached_property
    def main(self) -> Loss | None:
        """The largest loss that a transfer could do without, over all paths that have it.

        `None` if all such losses are small.
        """
        by_cause: dict[str, list[Loss]] = {}
        for loss in self.losses:
            if not loss.cause.is_overhead:
                by_cause.setdefault(loss.cause.words, []).append(loss)
        sums = {words: sum(loss.mbps for loss in each) for words, each in by_cause.items()}
        words = max(sums, key=lambda words: sums[words], default=None)
        if words is None or sums[words] < _SMALL * self.capacity_mbps:
            return None
        return self._over_paths(by_cause[words])

    def _over_paths(self, losses: list[Loss]) -> Loss:
        """The losses of one cause as one; paths with little of it are not named."""
        first, total = losses[0], sum(loss.mbps for loss in losses)
        by_path: dict[str, float] = {}
        for loss in losses:
            by_path[loss.path] = by_path.get(loss.path, 0.0) + loss.mbps
        named = [path for path, mbps in by_path.items() if mbps >= _NAMED * total]
        numbers = {name: index for index, name in self.paths.items()}
        capacity = sum(self._mbps(self._capacity(numbers[path])) for path in named if path != "all")
        share = sum(by_path[path] for path in named) / (capacity or self.capacity_mbps or 1.0)
        varies = any(loss.varies for loss in losses if loss.path in named)
        return replace(first, path=" and ".join(named), mbps=total, share=share, varies=varies)

    def finding(self) -> list[str]:
        """Two sentences: what was lost, and the largest cause."""
        missing = self.capacity_mbps - self.goodput_mbps
        share = self.goodput_mbps / self.capacity_mbps * 100 if self.capacity_mbps else 0.0
        first = (
            f"{self.name} delivered {number(self.goodput_mbps)} of the "
            f"{number(self.capacity_mbps)} Mbit/s that its paths could carry ({share:.0f} %)."
        )
        if self.main is None:
            overhead = sum(loss.mbps for loss in self.losses if loss.cause.is_overhead)
            return [
                first,
                f"Nothing held it back: headers and acknowledgements took {number(overhead)} of "
                f"the {number(missing)} Mbit/s missing.",
            ]
        return [first, _sentence(self.main, missing)]

    @cached_property
    def delays(self) -> Delays | None:
        """The parts of the blocks' delays; `None` if the workload delivered no blocks."""
        delays = Delays(self.run, self.number)
        return None if delays.blocks.is_empty() else delays

    def json(self) -> dict[str, Any]:
        """The explanation as plain values."""
        return {
            "connection": self.name,
            "goodput_mbps": self.goodput_mbps,
            "capacity_mbps": self.capacity_mbps,
            "finding": self.finding(),
            "main_cause": None if self.main is None else _loss_json(self.main),
            "losses": [_loss_json(loss) for loss in self.losses],
            "delays": None if self.delays is None else self.delays.json(),
            "account_bytes": self.account.to_dicts(),
            "states_s": self.states().to_dicts(),
        }

    def states(self) -> pl.DataFrame:
        """Time in s that each subflow spent in each state."""
        length = (pl.col("until_ns") - pl.col("from_ns")).sum() / 1e9
        keys = ["path", "subflow", "generation", "state", "behind"]
        sums = self.activities.group_by(keys, maintain_order=True).agg(seconds=length)
        rows = [
            {
                "path": self.run.path_names[row["path"]],
                "subflow": None if row["subflow"] == NONE else row["subflow"],
                "state": CAUSES[row["state"]].name,
                "behind": self.path_of_subflow.get(row["behind"]),
                "seconds": row["seconds"],
            }
            for row in sums.iter_rows(named=True)
        ]
        schema = {
            "path": pl.String, "subflow": pl.UInt32, "state": pl.String, "behind": pl.String,
            "seconds": pl.Float64,
        }  # fmt: skip
        return pl.DataFrame(rows, schema=schema)

    def intervals(self) -> pl.DataFrame:
        """The states as intervals, with names instead of numbers."""
        names = dict(enumerate(self.run.path_names))
        states = {state: cause.name for state, cause in CAUSES.items()}
        return self.activities.select(
            pl.lit(self.name).alias("connection"),
            pl.col("path").replace_strict(names, return_dtype=pl.String),
            pl.col("subflow").replace(NONE, None),
            pl.col("state").replace_strict(states, return_dtype=pl.String),
            pl.col("behind").replace_strict(
                self.path_of_subflow, default=None, return_dtype=pl.String
            ),
            "from_ns",
            "until_ns",
        )


def explanations(run: Run) -> Iterator[Explanation]:
    """The explanation of each flow of a run with a ledger."""
    for index in range(len(run.flows)):
        yield Explanation(run, index)


def _sentence(loss: Loss, missing: float) -> str:
    ends = f"{number(loss.mbps)} of the {number(missing)} Mbit/s missing"
    percent = f"{loss.share * 100:.0f} %" if loss.share >= 0.095 else f"{loss.share * 100:.1f} %"
    part = f"{percent} of {'its capacity' if loss.varies else 'the time'}"
    if loss.cause.is_idle:
        behind = f" behind {loss.behind}" if loss.behind is not None else ""
        return f"{loss.path} idled for {part} because {loss.cause.because}{behind}: {ends}."
    if loss.cause.name == "outage":
        verb = "were" if " and " in loss.path else "was"
        return f"{loss.path} {verb} down for {part}: {ends}."
    if loss.path == "all":
        return f"{percent} of the capacity went into data {loss.cause.words}: {ends}."
    return f"{percent} of the capacity of {loss.path} went to {loss.cause.words}: {ends}."


def _loss_json(loss: Loss) -> dict[str, Any]:
    return {
        "path": loss.path,
        "cause": loss.cause.name,
        "behind": loss.behind,
        "mbps": loss.mbps,
        "share_of_path": loss.share,
    }
