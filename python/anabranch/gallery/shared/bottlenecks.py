"""Shared by the entries about congestion control: RED queues and a precondition."""

import polars as pl

from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Queue
from anabranch.words import counted


def red(packets: float) -> Queue:
    """A RED queue with thresholds at half and twice a bandwidth-delay product of `packets`."""
    return Queue(
        kind="red", min_packets=max(5, round(packets / 2)), max_packets=max(15, round(packets * 2))
    )


def all_carried(results: Results) -> str | None:
    """Check the precondition that every subflow carried bytes."""
    idle = results.subflows.filter(pl.col("bytes_received") == 0).height
    return None if idle == 0 else f"{counted(idle, 'subflow')} carried nothing"
