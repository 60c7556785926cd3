"""Shared by most entries: connections over one or several paths, and access paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anabranch.scenarios.scenario import Bulk, Connection, NetworkPath


def flow(
    paths: Sequence[str] | None = None,
    *,
    name: str = "main",
    control: str | None = None,
    buffers: str | None = None,
    **others: Any,
) -> Connection:
    """TCP NewReno over one path, or Multipath TCP over several, and over all by default.

    `control` is the congestion control of Multipath TCP, LIA by default. `buffers` is the size of
    both buffers. `others` are further settings, and override these. The workload is endless.
    """
    alone = paths is not None and len(paths) == 1
    settings: dict[str, Any] = {
        "paths": tuple(paths) if paths else None,
        "protocol": "tcp" if alone else "mptcp",
        "congestion_control": "new_reno" if alone else control,
        "send_buffer": buffers,
        "receive_buffer": buffers,
        "workload": Bulk(),
    }
    return Connection(name=name, **settings | others)


LINUX_6_18 = {"kind": "linux", "buffers": "socket", "version": "v6.18"}
"""The host of the kernel with which this project repeated reports about failing paths."""


def model_of_linux(**others: Any) -> Connection:
    """The connection `main` with the buffers and the CUBIC of Linux, and an endless transfer."""
    host = {"kind": "linux", "buffers": "socket"}
    return flow(host=host, congestion_control="cubic_linux", **others)


def network_path(name: str, rate: str, delay: str, limit: str, **others: Any) -> NetworkPath:
    """A path: its rate, one-way delay and queue."""
    return NetworkPath(name=name, rate=rate, delay=delay, limit=limit, **others)


def access(name: str, via: str, delay: str, **others: Any) -> NetworkPath:
    """A path over a bottleneck that other paths share; its own link of 1 Gbit/s drops nothing."""
    return network_path(name, "1Gbit/s", delay, "infinite", via=via, **others)
