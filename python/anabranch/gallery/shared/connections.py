"""Shared by most entries: connections over one or several paths, and access paths."""

from collections.abc import Sequence
from typing import Any

from anabranch.scenarios.scenario import Bulk, Cbr, Change, Connection, NetworkPath


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


AS_LINUX_COUNTS = {"kind": "linux", "buffers": "socket"}
"""The host of Linux, which doubles requested buffers and charges the memory of segments."""
LINUX_6_18 = {**AS_LINUX_COUNTS, "version": "v6.18"}
"""The host of the kernel with which this project repeated reports about failing paths."""


def model_of_linux(**others: Any) -> Connection:
    """The connection `main` with the buffers and the CUBIC of Linux, and an endless transfer."""
    return flow(**{"host": AS_LINUX_COUNTS, "congestion_control": "cubic_linux", **others})


def upload(workload: Cbr, *, by_engine: bool, regular: str = "", **linux: Any) -> Connection:
    """An upload over all paths by this engine, or by the model of Linux 6.18.

    With Linux, `regular` names the only path that is no backup, and `linux` has further settings.
    """
    shared: dict[str, Any] = {"direction": "upload", "workload": workload}
    if by_engine:
        return flow(path_manager="full_mesh", **shared)
    manager = {"kind": "backup", "regular": regular} if regular else "full_mesh"
    settings = {"host": LINUX_6_18, "scheduler": "linux", "path_manager": manager, **linux}
    return model_of_linux(**settings, **shared)


def network_path(name: str, rate: str, delay: str, limit: str, **others: Any) -> NetworkPath:
    """A path: its rate, one-way delay and queue."""
    return NetworkPath(name=name, rate=rate, delay=delay, limit=limit, **others)


def outages(*times_s: float, noticed: bool | None = None) -> tuple[Change, ...]:
    """Changes of a path that alternately goes down and comes up, at these times."""
    return tuple(
        Change(at=f"{time:g}s", state="up" if index % 2 else "down", noticed=noticed)
        for index, time in enumerate(times_s)
    )


def access(name: str, via: str, delay: str, **others: Any) -> NetworkPath:
    """A path over a bottleneck that other paths share; its own link of 1 Gbit/s drops nothing."""
    return network_path(name, "1Gbit/s", delay, "infinite", via=via, **others)
