"""Shared by entries that compare TCP over one path with Multipath TCP over several paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anabranch.scenarios.scenario import Bulk, Connection


def one_or_both(
    alone: Sequence[str] | None, *, control: str = "lia", buffers: str, **others: Any
) -> Connection:
    """The connection `main`: TCP NewReno over the path `alone`, or Multipath TCP over all paths.

    `control` is the congestion control of Multipath TCP. By default, the workload is endless.
    """
    return Connection(
        name="main",
        paths=tuple(alone) if alone else None,
        protocol="tcp" if alone else "mptcp",
        congestion_control="new_reno" if alone else control,
        send_buffer=buffers,
        receive_buffer=buffers,
        **{"workload": Bulk(), **others},
    )


def tcp(name: str, path: str) -> Connection:
    """An endless transfer of TCP NewReno over one path."""
    return Connection(
        name=name, paths=(path,), protocol="tcp", congestion_control="new_reno", workload=Bulk()
    )


def model_of_linux(**others: Any) -> Connection:
    """The connection `main` with the buffers and the CUBIC of Linux, and an endless transfer."""
    return Connection(
        name="main",
        host={"kind": "linux", "buffers": "socket"},
        congestion_control="cubic_linux",
        workload=Bulk(),
        **others,
    )
