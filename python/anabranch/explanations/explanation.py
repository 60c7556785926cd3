"""Use of the capacity of a connection's paths, from a run with a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from anabranch.explanations import stalls
from anabranch.explanations.causes import BY_NAME, NONE, Cause
from anabranch.explanations.delays import Delays
from anabranch.explanations.main_parts import NAMED, grouped
from anabranch.results import metrics
from anabranch.results.estimates import number, percent
from anabranch.runs.columns import frame
from anabranch.runs.run import Run
from anabranch.scenarios.quantities import nanoseconds
from anabranch.scenarios.routes import route
from anabranch.words import listed

_SMALL = 0.02
"""Share of the capacity below which a loss is not worth a remedy (this project)."""


@dataclass(frozen=True)
class Loss:
    """Capacity of a path that a connection did not use for new data.

    Attributes:
        path: Its name, or the names of the paths of a sum of losses, as in a sentence.
        behind: The path of the subflow that blocked.
        paths: The names of the paths of a sum of losses.
    """

    path: str
    cause: Cause
    behind: str | None
    mbps: float
    share: float
    """Part of the path's capacity."""
    varies: bool = False
    """Whether the path's rate changes during the run. If not, `share` is a share of the time."""
    paths: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The cause in words."""
        return (
            self.cause.words if self.behind is None else f"{self.cause.words} behind {self.behind}"
        )


@dataclass(frozen=True)
class Explanation:
    """Reasons why one direction of a connection was not faster.

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
    def begin_ns(self) -> int:
        """When measuring begins: at the end of the warm-up, or when the connection opens."""
        return max(self.run.warm_up_ns, nanoseconds(self.flow["start"]))

    @property
    def end_ns(self) -> int:
        """When measuring ends: when the workload ends, or with the run."""
        return self.begin_ns + int(self.run.connections["measured_ns"][self.number])

    @property
    def seconds(self) -> float:
        """The measured time."""
        return (self.end_ns - self.begin_ns) / 1e9

    def _mbps(self, byte_count: float) -> float:
        return byte_count * 8e-6 / self.seconds if self.seconds else 0.0

    @cached_property
    def capacity_mbps(self) -> float:
        """Capacity of the paths, in Mbit/s."""
        return self._mbps(sum(map(self._capacity, self.paths)))

    @cached_property
    def _metrics(self) -> dict[str, Any]:
        return metrics.connection_rows(self.run)[self.number]

    @cached_property
    def goodput_mbps(self) -> float:
        """Goodput in Mbit/s, as in the tables of every command."""
        return float(self._metrics["goodput_mbps"])

    @cached_property
    def account(self) -> pl.DataFrame:
        """Use of each byte of capacity: path, cause, behind, bytes.

        The bytes of all causes but ``useful`` add up to capacity minus goodput.
        """
        names = self.run.path_names
        shown = self._rows.filter(pl.col("path").is_in([*self.paths]))
        rows = [
            {
                "path": names[row["path"]],
                "cause": row["cause"],
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
        varying = {path["name"] for path in settings if _varies(path)}
        capacity = {name: self._mbps(self._capacity(index)) for index, name in self.paths.items()}
        for row in self.account.iter_rows(named=True):
            cause = BY_NAME[row["cause"]]
            if cause.name == "useful":
                continue
            mbps = self._mbps(row["bytes"])
            path, of = row["path"], capacity[row["path"]]
            share = mbps / of if of else 0.0
            found.append(Loss(path, cause, row["behind"], mbps, share, path in varying))
        return sorted(found, key=lambda loss: -loss.mbps)

    @cached_property
    def main(self) -> Loss | None:
        """The largest loss that a transfer could do without, over the paths that have most of it.

        It is the sum of the losses that it names. `None` if all such losses are small.
        """
        by_cause: dict[str, list[Loss]] = {}
        for loss in self.losses:
            if not loss.cause.is_overhead:
                by_cause.setdefault(loss.cause.name, []).append(loss)
        largest = max(by_cause.values(), key=_total, default=[])
        if not largest or _total(largest) < _SMALL * self.capacity_mbps:
            return None
        return self._as_one(largest)

    def _as_one(self, losses: list[Loss]) -> Loss:
        """The losses of one cause as one, without the paths that have little of it."""
        least = NAMED * _total(losses)
        paths = grouped(losses, lambda loss: loss.path, _mbps, least)
        named = [loss for loss in losses if loss.path in paths]
        behind = grouped(named, lambda loss: loss.behind or "", _mbps, least)
        named = [loss for loss in named if (loss.behind or "") in behind]
        capacity = {name: self._mbps(self._capacity(index)) for index, name in self.paths.items()}
        mbps = _total(named)
        return Loss(
            listed(paths),
            losses[0].cause,
            listed(filter(None, behind)) or None,
            mbps,
            mbps / (sum(capacity[path] for path in paths) or 1.0),
            any(loss.varies for loss in named),
            tuple(paths),
        )

    def finding(self) -> list[str]:
        """The lost capacity and the longest stall, in sentences."""
        stall = stalls.sentence(self.run, self.number, self.activities) if self.seconds else None
        return [*self.lost_capacity(), *([] if stall is None else [stall])]

    def lost_capacity(self) -> list[str]:
        """The lost capacity, the largest cause, and the reason behind it, in a sentence each."""
        if not self.seconds:
            return [f"{self.name} ended before the measured time began: shorten warm_up."]
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
        return [first, _sentence(self.main, missing), *self._handshakes()]

    def _handshakes(self) -> list[str]:
        """The SYNs that did not arrive, if the main loss is a handshake that took long."""
        assert self.main is not None, "asked after a loss was found"
        if self.main.cause.name != "opening":
            return []
        table = frame(self.run.tables["handshakes"])
        mine = table.filter(pl.col("connection") == self.number)
        names = self.run.path_names
        by_path = mine.group_by("path", maintain_order=True)
        found = [
            _unanswered(names[int(path)], rows, self._link_drops(names[int(path)]))
            for (path,), rows in by_path
            if names[int(path)] in self.main.paths
        ]
        return [sentence for sentence in found if sentence is not None]

    def _link_drops(self, path: str) -> int:
        """Packets that the links of a path lost, without those that its queues dropped."""
        settings = {path["name"]: path for path in self.run.settings["path"]}
        names = self.run.path_names
        crossed = [names.index(each.path) for each in route(path, settings)]
        links = self.run.links.filter(pl.col("path").is_in(crossed))
        return sum(sum(links[name].to_list()) for name in ("dropped_by_loss", "dropped_down"))

    @cached_property
    def full_buffers(self) -> dict[str, float]:
        """Share of the time in which only a full buffer stopped a subflow, by the metric's name.

        This is the time of the sender. A full buffer costs no capacity while the link drains its
        queue.
        """
        names = ("send_buffer_limited_share", "window_limited_share")
        return {name: self._metrics[name] for name in names}

    def buffers(self) -> str:
        """Time for which full buffers stopped a subflow, in a sentence."""
        send, receive = map(percent, self.full_buffers.values())
        return (
            f"A subflow had room, but waited for the send buffer for {send} of the time, and for "
            f"the receive window for {receive}."
        )

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
            **self.full_buffers,
            "stall_ms": self._metrics["stall_ms"],
            "main_cause": None if self.main is None else _loss_json(self.main),
            "losses": [_loss_json(loss) for loss in self.losses],
            "delays": None if self.delays is None else self.delays.json(),
            "account_bytes": self.account.to_dicts(),
            "states_s": self.states().to_dicts(),
        }

    def states(self) -> pl.DataFrame:
        """Time in s that each subflow spent in each state during the measured time."""
        until = pl.min_horizontal("until_ns", pl.lit(self.end_ns))
        since = pl.max_horizontal("from_ns", pl.lit(self.begin_ns))
        length = (until.cast(pl.Int64) - since.cast(pl.Int64)).clip(0).sum() / 1e9
        keys = ["path", "subflow", "generation", "state", "behind"]
        sums = self.activities.group_by(keys, maintain_order=True).agg(seconds=length)
        rows = [
            {
                "path": self.run.path_names[row["path"]],
                "subflow": None if row["subflow"] == NONE else row["subflow"],
                "state": row["state"],
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
        return self.activities.select(
            pl.lit(self.name).alias("connection"),
            pl.col("path").replace_strict(names, return_dtype=pl.String),
            pl.col("subflow").replace(NONE, None),
            "state",
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


def _varies(path: Mapping[str, Any]) -> bool:
    """Whether a path's rate changes during the run."""
    return "rate" not in path or any("rate" in change for change in path["change"])


def _total(losses: Iterable[Loss]) -> float:
    return sum(loss.mbps for loss in losses)


def _mbps(loss: Loss) -> float:
    return loss.mbps


_SYNS = {"": "no Multipath TCP option", "mp_capable": "MP_CAPABLE", "mp_join": "MP_JOIN"}
"""The option of a SYN in words, by its name in the table of handshakes."""


def _unanswered(path: str, rows: pl.DataFrame, link_drops: int) -> str | None:
    """The SYNs of a path, or answers to them, that did not arrive; `None` if all did."""
    lost = []
    is_answered = False
    for row in rows.iter_rows(named=True):
        option = _SYNS[row["option"]]
        for words, sent, arrived in (
            ("SYN", row["syns_sent"], row["syns_arrived"]),
            ("SYN/ACK", row["answers_sent"], row["answers_arrived"]),
        ):
            if sent > arrived:
                lost.append(f"{sent - arrived} of {sent} {words}s with {option}")
        is_answered |= row["option"] == "" and row["answers_arrived"] > 0
    # A box that removes the option lets the SYN arrive without it.
    is_removed = rows["syns_arrived"].sum() >= rows["syns_sent"].sum()
    if not lost or is_removed:
        return None
    sentence = f"On {path}, {listed(lost)} did not arrive"
    tried = rows.filter((pl.col("option") != "") & (pl.col("syns_sent") > 1))
    refused = not tried.is_empty() and tried["answers_arrived"].sum() == 0
    if is_answered and refused and link_drops == 0:
        return f"{sentence}, and those without did: something on the path drops the option."
    return f"{sentence}."


def _sentence(loss: Loss, missing: float) -> str:
    ends = f"{number(loss.mbps)} of the {number(missing)} Mbit/s missing"
    share = percent(loss.share)
    of_time = f"{share} of the time"
    capacity = f"{share} of {'their' if len(loss.paths) > 1 else 'its'} capacity"
    if loss.cause.is_idle:
        idled = f"left {capacity} unused" if loss.varies else f"idled for {of_time}"
        behind = f" behind {loss.behind}" if loss.behind is not None else ""
        return f"{loss.path} {idled} because {loss.cause.because}{behind}: {ends}."
    if loss.cause.name == "outage":
        was = "were" if len(loss.paths) > 1 else "was"
        down = f"lost {capacity} while down" if loss.varies else f"{was} down for {of_time}"
        return f"{loss.path} {down}: {ends}."
    return f"{share} of the capacity of {loss.path} went to {loss.cause.words}: {ends}."


def _loss_json(loss: Loss) -> dict[str, Any]:
    return {
        "path": loss.path,
        "cause": loss.cause.name,
        "behind": loss.behind,
        "mbps": loss.mbps,
        "share_of_path": loss.share,
    }
