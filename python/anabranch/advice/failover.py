"""Settings of Linux that decide how long a connection pauses after a path fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.results.estimates import Estimate

STALE_LOSS_CNT = 4
"""Default of net.mptcp.stale_loss_cnt in Linux 6.18."""
_PERIODS = (1, 2, 8)
_RETRIES = (5, 8)
"""Values of net.ipv4.tcp_retries2: 12.6 s, and the least that RFC 1122 allows, 102 s."""
_KEEP_ALIVE_S = 1
_PROBES = 15
"""Unanswered keep-alive probes after which the model gives a subflow up."""
_MOST_PATHS = 4


@dataclass(frozen=True)
class LinuxSetting:
    """A setting that Linux offers.

    Attributes:
        keys: Keys of the connection, and their new values.
        commands: Commands or calls that make it.
    """

    words: str
    keys: Mapping[str, Any]
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stall:
    """The predicted pause with a setting, over the path whose failure is worst.

    Attributes:
        pause: In seconds; `None` if the run cannot measure it.
    """

    setting: LinuxSetting
    pause: Estimate | None


def settings(connection: Mapping[str, Any]) -> Iterator[LinuxSetting]:
    """The settings to compare, for a connection that runs as in Linux, and first none."""
    yield LinuxSetting("as advised", {})
    if connection["protocol"] == "mptcp" and len(connection["paths"]) > 1:
        for periods in _PERIODS:
            yield _sysctl(connection, "net.mptcp.", "stale_loss_cnt", periods)
        yield from _backups(connection)
    for retries in _RETRIES:
        yield _sysctl(connection, "net.ipv4.", "tcp_retries2", retries)
    yield LinuxSetting(
        f"keepalives after {_KEEP_ALIVE_S} s",
        {"keep_alive": f"{_KEEP_ALIVE_S}s"},
        (
            "setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));",
            *(
                f"setsockopt(fd, SOL_TCP, {option}, &(int){{{value}}}, sizeof(int));"
                for option, value in (
                    ("TCP_KEEPIDLE", _KEEP_ALIVE_S),
                    ("TCP_KEEPINTVL", _KEEP_ALIVE_S),
                    ("TCP_KEEPCNT", _PROBES),
                )
            ),
        ),
    )


def _sysctl(connection: Mapping[str, Any], prefix: str, name: str, value: int) -> LinuxSetting:
    keys = {"host": {**connection["host"], name: value}}
    return LinuxSetting(f"{name} {value}", keys, (f"sysctl -w {prefix}{name}={value}",))


def _backups(connection: Mapping[str, Any]) -> Iterator[LinuxSetting]:
    paths = connection["paths"]
    if len(paths) > _MOST_PATHS:
        return
    for regular in paths:
        keys = {"path_manager": {"kind": "backup", "regular": regular}}
        yield LinuxSetting(
            f"only {regular} regular", keys, ("ip mptcp endpoint change id ID backup",)
        )
