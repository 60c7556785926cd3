"""The commands that give Linux the advised settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.advice.failover import STALE_LOSS_CNT
from anabranch.scenarios import quantities

_LARGEST_BY_DEFAULT = 212_992
"""The default of net.core.rmem_max and net.core.wmem_max."""
_CONTROLS = {"cubic_linux": "cubic", "new_reno": "reno"}
_DOCUMENTED = {"ipv4": "192.0.2.{}", "ipv6": "2001:db8::{}"}
"""Addresses for documentation (RFC 5737, RFC 3849), one for each path."""
_SERVER = 100
"""Number of the server's address."""


@dataclass(frozen=True)
class Commands:
    """Commands for one place.

    Attributes:
        place: Where they belong, in words.
        lines: Shell commands, or calls of a program.
    """

    place: str
    lines: tuple[str, ...]


def of(settings: Mapping[str, Any], connection: Mapping[str, Any]) -> list[Commands]:
    """The commands for a connection of a normalised scenario that runs as in Linux."""
    found = []
    for place, own, call in (("client", "upload", "connect"), ("server", "download", "listen")):
        sends = connection["direction"] in (own, "both")
        receives = connection["direction"] != own
        root = [*_host(connection, sends=sends, receives=receives)]
        if connection["protocol"] == "mptcp":
            families = _families(settings, connection)
            root += _limits(connection, announced=len(families) - 1)
            ends = _endpoints if place == "client" else _announced
            root += ends(settings, connection)
        program = _of_program(connection, sends=sends, receives=receives)
        found.append(Commands(f"on the {place}, as root", tuple(root)))
        found.append(Commands(f"in the {place}'s program, before {call}()", tuple(program)))
    return [each for each in found if each.lines]


def _host(connection: Mapping[str, Any], *, sends: bool, receives: bool) -> Iterator[str]:
    if connection["protocol"] == "mptcp":
        yield "sysctl -w net.mptcp.enabled=1"
        yield "sysctl -w net.mptcp.scheduler=default"
        periods = connection["host"].get("stale_loss_cnt", STALE_LOSS_CNT)
        if periods != STALE_LOSS_CNT:
            yield f"sysctl -w net.mptcp.stale_loss_cnt={periods}"
    if sends:
        control = _CONTROLS[connection["congestion_control"]]
        yield f"sysctl -w net.ipv4.tcp_congestion_control={control}"
    for option, size in _sizes(connection, sends=sends, receives=receives):
        if size > _LARGEST_BY_DEFAULT:
            limit = "wmem_max" if option == "SO_SNDBUF" else "rmem_max"
            yield f"sysctl -w net.core.{limit}={size}  # unless it is larger"


def _sizes(
    connection: Mapping[str, Any], *, sends: bool, receives: bool
) -> Iterator[tuple[str, int]]:
    """The socket options of stated buffers, and their sizes in bytes."""
    for key, option, used in (
        ("send_buffer", "SO_SNDBUF", sends),
        ("receive_buffer", "SO_RCVBUF", receives),
    ):
        if used and key in connection:
            yield option, quantities.byte_count(connection[key])


def _families(settings: Mapping[str, Any], connection: Mapping[str, Any]) -> list[str]:
    """The address families of the connection's paths, that of the first path first."""
    family = {path["name"]: path["family"] for path in settings["path"]}
    return [*dict.fromkeys(family[name] for name in connection["paths"])]


def _limits(connection: Mapping[str, Any], announced: int) -> list[str]:
    further = 0 if connection["path_manager"] == "initial_only" else len(connection["paths"]) - 1
    return [f"ip mptcp limits set subflows {further} add_addr_accepted {announced}"]


def _announced(settings: Mapping[str, Any], connection: Mapping[str, Any]) -> Iterator[str]:
    """The server's address of the other family, which clients join over its paths."""
    for family in _families(settings, connection)[1:]:
        yield f"ip mptcp endpoint add {_DOCUMENTED[family].format(_SERVER)} signal  # the server's"


def _endpoints(settings: Mapping[str, Any], connection: Mapping[str, Any]) -> Iterator[str]:
    yield "ip mptcp endpoint flush"
    manager = connection["path_manager"]
    if manager == "initial_only":
        return
    numbers = {path["name"]: number for number, path in enumerate(settings["path"], start=1)}
    families = {path["name"]: path["family"] for path in settings["path"]}
    for name in connection["paths"]:
        address = _DOCUMENTED[families[name]].format(numbers[name])
        is_backup = isinstance(manager, dict) and manager["regular"] != name
        yield f"ip mptcp endpoint add {address} subflow{' backup' if is_backup else ''}  # {name}"


def _of_program(connection: Mapping[str, Any], *, sends: bool, receives: bool) -> Iterator[str]:
    for option, size in _sizes(connection, sends=sends, receives=receives):
        yield f"setsockopt(fd, SOL_SOCKET, {option}, &(int){{{size}}}, sizeof(int));"


def notes(connection: Mapping[str, Any]) -> list[str]:
    """Steps that the commands leave to the reader."""
    found = []
    if connection["protocol"] == "mptcp" and connection["path_manager"] != "initial_only":
        found.append("Replace each 192.0.2.N or 2001:db8::N by the address on that path.")
        found.append(f"The connection opens over {connection['paths'][0]}: route the server there.")
    if connection["protocol"] == "mptcp":
        found.append("A program without Multipath TCP needs: mptcpize run PROGRAM")
    return found
