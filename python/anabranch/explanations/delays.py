"""Parts of the delay of data blocks, from a run with a ledger."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from anabranch.explanations.causes import NONE
from anabranch.results.estimates import number
from anabranch.runs.columns import frame
from anabranch.runs.run import Run

PARTS = {
    "send_wait": "waiting to be sent",
    "retransmission": "until the last retransmission",
    "queueing": "in queues",
    "transmission": "transmission",
    "propagation": "propagation",
    "out_of_order": "out of order",
    "unknown": "unknown",
}
"""The parts of a block's delay, in the order in which a block spends them."""
_SLOW = 0.95


@dataclass(frozen=True)
class Delays:
    """The delays of one flow's blocks by part, without the warm-up.

    The parts follow the piece of the block that arrived last. It waits in the send buffer until it
    is first sent. If it is sent again, on the same subflow or on another, that time counts as
    retransmission. Then it crosses the path, and waits for earlier data. The parts of each block
    add up to its delay exactly. Jitter counts as queueing.
    """

    run: Run
    number: int

    @cached_property
    def blocks(self) -> pl.DataFrame:
        """A row for each block: its parts in ms, its path, and the path that it waited behind."""
        names = dict(enumerate(self.run.path_names))
        table = frame(self.run.tables["block_parts"])
        mine = (pl.col("connection") == self.number) & (
            pl.col("accepted_ns") >= self.run.warm_up_ns
        )
        named = {
            name: pl.col(name).replace(NONE, None).replace_strict(
                names, default=None, return_dtype=pl.String
            )
            for name in ("path", "behind")
        }  # fmt: skip
        return table.filter(mine).select(
            pl.lit(self.run.connection_names[self.number]).alias("connection"),
            "block",
            ((pl.col("delivered_ns") - pl.col("accepted_ns")) / 1e6).alias("delay_ms"),
            *((pl.col(f"{part}_ns") / 1e6).alias(f"{part}_ms") for part in PARTS),
            **named,
        )

    def rows(self) -> list[tuple[str, float, float]]:
        """The parts in ms: their means over all blocks, and over the slowest 5 %.

        Waiting out of order has a row for each path that blocks waited behind.
        """
        found: list[tuple[str, float, float]] = []
        slow = self.blocks.filter(pl.col("delay_ms") >= pl.col("delay_ms").quantile(_SLOW))
        for part, words in PARTS.items():
            if part != "out_of_order":
                column = f"{part}_ms"
                found.append((words, _mean(self.blocks, column), _mean(slow, column)))
                continue
            for path in self.run.path_names:
                behind = f"{words} behind {path}"
                parts = (each.filter(pl.col("behind") == path) for each in (self.blocks, slow))
                sums = [float(each["out_of_order_ms"].sum()) for each in parts]
                means = (sums[0] / max(1, self.blocks.height), sums[1] / max(1, slow.height))
                found.append((behind, *means))
        return [row for row in found if max(row[1:]) >= 0.0005]

    def finding(self) -> str:
        """The mean delay and its largest parts in one sentence."""
        rows = sorted(self.rows(), key=lambda row: -row[1])
        mean = _mean(self.blocks, "delay_ms")
        largest = [f"{number(ms)} ms {words}" for words, ms, _ in rows[:3]]
        return f"A block took {number(mean)} ms on average: {', '.join(largest)}."

    def json(self) -> dict[str, Any]:
        """The parts as plain values."""
        return {
            "mean_ms": _mean(self.blocks, "delay_ms"),
            "blocks": self.blocks.height,
            "parts": [
                {"part": words, "mean_ms": mean, "slowest_5_percent_ms": slow}
                for words, mean, slow in self.rows()
            ],
        }


def _mean(blocks: pl.DataFrame, column: str) -> float:
    return float(blocks[column].sum()) / max(1, blocks.height)
