"""Settings of the kernel hosts of a script: sysctls, Multipath TCP endpoints and traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anabranch.exchange.link import seconds
from anabranch.exchange.network import Network, TrafficFlow
from anabranch.scenarios.quantities import bits_per_second, byte_count

PORT = 5001
"""Port of all servers, the default of iperf."""

CONTROLS = {"new_reno": "reno", "cubic": "cubic", "cubic_linux": "cubic", "bbr": "bbr"}
"""Congestion controls that Linux has, with Linux's names. It uses CUBIC for all others."""

MOST_SUBFLOWS = 8
"""Largest limit of Linux's path manager."""

_PROBING = {"off": 0, "on_black_hole": 1, "always": 2}


def name_of(policy: Any) -> str:
    """The name of a policy, which a normalised scenario writes as a name or as a table."""
    if isinstance(policy, dict):
        return str(policy.get("kind", "choice for each path"))
    return str(policy)


def sysctls(network: Network) -> dict[str, list[str]]:
    """The sysctls of each node, each as ``key = value``.

    No node filters by the reverse path, because the paths of a host lead to the same addresses.
    """
    found = {}
    for node in network.commands:
        interfaces = ("all", *network.neighbours(node))
        found[node] = [f"net.ipv4.conf.{each}.rp_filter = 0" for each in interfaces]
    for path in network.near:
        for router in network.ends(path, is_forward=True):
            found[router].append("net.ipv4.ip_forward = 1")
    for flow in network.flows:
        if flow.is_connection:
            for node in (flow.client, flow.server):
                found[node] += [f"{key} = {each}" for key, each in _of(flow.settings).items()]
    return found


def _of(connection: Mapping[str, Any]) -> dict[str, str | int]:
    """The sysctls of both hosts of a connection."""
    found: dict[str, str | int] = {
        "net.ipv4.tcp_no_metrics_save": 1,
        "net.ipv4.tcp_ecn": int(connection.get("ecn", False)),
        "net.ipv4.tcp_sack": int(connection.get("sack", True)),
        "net.ipv4.tcp_timestamps": int(connection.get("timestamps", True)),
        "net.ipv4.tcp_mtu_probing": _PROBING[connection.get("mtu_probing", "off")],
        **_memory(connection["host"]),
    }
    if connection["protocol"] == "mptcp":
        joins = connection.get("allow_join_initial_addr_port", True)
        found["net.mptcp.enabled"] = 1
        found["net.mptcp.checksum_enabled"] = int(connection.get("dss_checksum", False))
        found["net.mptcp.allow_join_initial_addr_port"] = int(joins)
        # Older kernels lack these, and have only the behaviour that they select.
        found["net.mptcp.scheduler"] = "default"
        # After a lost SYN, Linux would make the connections of the next hour plain TCP.
        found["net.mptcp.blackhole_timeout"] = 0
    return found


def _memory(host: str | Mapping[str, Any]) -> dict[str, str]:
    """The sizes between which Linux tunes buffers, if the scenario has them."""
    if isinstance(host, str) or host.get("buffers") != "socket":
        return {}
    initial = byte_count(host["tcp_rmem_default"])
    return {
        "net.ipv4.tcp_rmem": f"4096 {initial} {byte_count(host['tcp_rmem_max'])}",
        "net.ipv4.tcp_wmem": f"4096 16384 {byte_count(host['tcp_wmem_max'])}",
    }


def endpoints(network: Network) -> dict[str, list[str]]:
    """The commands of Linux's path manager, for ``ip -batch``, of each host that has some."""
    found = {}
    for flow in network.flows:
        if flow.settings.get("protocol") == "mptcp":
            limit = _limit(flow.settings.get("limits", {}))
            signals = [f"mptcp endpoint add {each} dev lo signal" for each in flow.servers[1:]]
            found[flow.client] = [limit, *_subflows(network, flow)]
            found[flow.server] = [limit, *signals]
    return found


def _limit(limits: Mapping[str, int]) -> str:
    subflows, accepted = (
        min(limits.get(key, MOST_SUBFLOWS), MOST_SUBFLOWS)
        for key in ("subflows", "add_addr_accepted")
    )
    return f"mptcp limits set subflows {subflows} add_addr_accepted {accepted}"


def _subflows(network: Network, flow: TrafficFlow) -> Iterator[str]:
    manager = flow.settings["path_manager"]
    kind = name_of(manager)
    if kind == "initial_only":
        return
    for path, address in flow.addresses.items():
        is_backup = kind == "backup" and manager["regular"] != path
        backup = " backup" if is_backup else ""
        yield f"mptcp endpoint add {address} dev {network.near[path]} subflow{backup}"


def traffic(network: Network, flow: TrafficFlow) -> dict[str, Any]:
    """The description of a flow for the traffic program.

    Times are in s, sizes in bytes, and rates in bit/s.
    """
    duration, warm_up = (seconds(network.settings[key]) for key in ("duration", "warm_up"))
    about: dict[str, Any] = {
        "name": flow.name,
        "number": flow.number,
        "client": next(iter(flow.addresses.values())),
        "server": flow.servers[0],
        "port": PORT,
        "duration": duration,
        "warm_up": warm_up,
    }
    settings = flow.settings
    if flow.is_connection:
        about |= {
            "protocol": settings["protocol"],
            "direction": settings["direction"],
            "start": seconds(settings["start"]),
            "congestion_control": CONTROLS.get(name_of(settings["congestion_control"]), "cubic"),
            "nodelay": not settings["nagle"],
            "workload": plain(settings["workload"]),
        }
        for key in ("send_buffer", "receive_buffer"):
            if key in settings:
                about[key] = byte_count(settings[key])
    else:
        about |= {"protocol": "udp", "direction": settings["direction"]}
        about |= plain({key: settings[key] for key in _OF_CROSS_TRAFFIC if key in settings})
    return about


_OF_CROSS_TRAFFIC = ("rate", "packet_size", "on", "off")


def plain(table: Mapping[str, Any]) -> dict[str, Any]:
    """A workload, cross-traffic or random quantity with plain numbers."""
    return {key: _number(value) for key, value in table.items()}


def _number(value: Any) -> Any:
    if isinstance(value, dict):
        return plain(value)
    if not isinstance(value, str):
        return value
    for read in (seconds, byte_count, bits_per_second):
        try:
            return read(value)
        except ValueError:
            continue
    return value
