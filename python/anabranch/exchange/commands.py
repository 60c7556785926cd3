"""The shell commands of a Mininet script: traffic, and settings of the kernel."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from anabranch.exchange.calls import ip_of
from anabranch.exchange.script import Command, Node, Script


@dataclass
class Traffic:
    """A transfer between two hosts, as iperf makes it.

    Attributes:
        client: The host that opens the connection.
        server: The host that accepts it.
        line: Line of the script.
        seconds: Duration in s.
        size: Amount of data as in scenarios; `None` for as much as the time allows.
        is_download: Whether the server sends the data.
        count: Number of parallel connections.
    """

    client: Node
    server: Node
    line: int
    seconds: float = 10.0
    size: str | None = None
    is_download: bool = False
    count: int = 1


@dataclass
class Found:
    """Traffic and kernel settings in the commands of a script.

    Attributes:
        traffic: The transfers, in order.
        connection: Keys of the connection in the scenario.
        host: Keys of its table `host`.
    """

    traffic: list[Traffic] = field(default_factory=list)
    connection: dict[str, Any] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)


_NO_EFFECT = {
    "ping", "echo", "sleep", "ifconfig", "route", "ethtool", "kill", "killall", "pkill", "arp",
    "cd", "tcpdump", "tshark", "ss", "netstat", "cat", "mkdir", "rm", "wait", "true", "date",
    "hostname", "nstat", "traceroute", "modprobe", "mn",
}  # fmt: skip
"""Programs that change neither the links nor the traffic that a scenario has."""

_CONTROLS = {"cubic": "cubic_linux", "reno": "new_reno"} | {
    each: each for each in ("lia", "olia", "balia", "wvegas", "bbr")
}
_SCHEDULERS = {"default": "linux", "roundrobin": "round_robin", "redundant": "redundant",
               "blest": "blest", "ecf": "ecf"}  # fmt: skip
_MANAGERS = {"fullmesh": "full_mesh", "ndiffports": "ndiffports", "default": "initial_only"}
_SWITCHES = {
    "net.mptcp.checksum_enabled": "dss_checksum",
    "net.mptcp.mptcp_checksum": "dss_checksum",
    "net.mptcp.allow_join_initial_addr_port": "allow_join_initial_addr_port",
    "net.ipv4.tcp_sack": "sack",
    "net.ipv4.tcp_timestamps": "timestamps",
}
_PROBING = {"0": "off", "1": "on_black_hole", "2": "always"}
_NAMED = {
    "net.ipv4.tcp_congestion_control": ("congestion_control", _CONTROLS),
    "net.mptcp.scheduler": ("scheduler", _SCHEDULERS),
    "net.mptcp.mptcp_scheduler": ("scheduler", _SCHEDULERS),
    "net.mptcp.mptcp_path_manager": ("path_manager", _MANAGERS),
    "net.ipv4.tcp_mtu_probing": ("mtu_probing", _PROBING),
}
_HARMLESS_SYSCTLS = re.compile(
    r"net\.ipv[46]\.(conf\..*|ip_forward|tcp_no_metrics_save|tcp_window_scaling|route\..*)"
    r"|net\.core\.(rmem|wmem|netdev)_.*|net\.mptcp\.(blackhole_timeout|mptcp_debug|pm_type)"
)


def read(script: Script) -> Found:
    """Read all commands of a script. Those that were not understood join its problems."""
    found = Found()
    for client, server, seconds, line in script.tests:
        found.traffic.append(Traffic(client, server, line, seconds))
    for command in script.commands:
        for words in _simple(command.text):
            if not _take(script, found, command, words):
                script.problem(command.line, " ".join(words))
    found.traffic.sort(key=lambda each: each.line)
    return found


def _simple(text: str) -> Iterator[list[str]]:
    """The simple commands of a shell command, without redirections."""
    for part in re.split(r"&&|\|\||[;|\n]|(?<!>)&(?!>)", text):
        try:
            words = shlex.split(re.sub(r"\d?>+\s*&?\s*\S+|<\s*\S+", " ", part))
        except ValueError:
            words = part.split()
        while words and words[0] in ("mptcpize", "run", "sudo", "nohup", "exec", "timeout"):
            words = words[2:] if words[0] == "timeout" else words[1:]
        if words:
            yield words


def _take(script: Script, found: Found, command: Command, words: list[str]) -> bool:
    """Take the meaning of a simple command. Returns whether it was understood."""
    program = words[0].rpartition("/")[2]
    if program in ("iperf", "iperf3"):
        return _iperf(script, found, command, words)
    if program == "sysctl":
        settings = [each for each in words[1:] if not each.startswith("-")]
        joined = re.sub(r"\s*=\s*", "=", " ".join(settings))
        pairs = re.findall(r"([\w./-]+)=((?:(?!\s[\w.]+=).)*)", joined)
        understood = [_sysctl(found, key, value.strip()) for key, value in pairs]
        return all(understood)
    if program == "ip":
        return _ip(found, words[1:])
    return program in _NO_EFFECT


def _iperf(script: Script, found: Found, command: Command, words: list[str]) -> bool:
    options = _options(words[1:])
    if "-s" in options:
        return True
    server = _peer(script, command, str(options.get("-c", "")))
    if command.node is None or server is None or "-u" in options:
        return False
    traffic = Traffic(command.node, server, command.line)
    try:
        traffic.seconds = float(options.get("-t", 10))
        traffic.count = int(options.get("-P", 1))
    except ValueError:
        return False
    if "-n" in options:
        traffic.size = f"{options['-n'].rstrip('KMGkmg')}{_UNITS[options['-n'][-1:].upper()]}"
    traffic.is_download = "-R" in options
    control = options.get("-C", options.get("-Z"))
    found.traffic.append(traffic)
    return control is None or _sysctl(found, "net.ipv4.tcp_congestion_control", control)


_UNITS = {"K": "KiB", "M": "MiB", "G": "GiB"} | dict.fromkeys(map(str, range(10)), "B") | {"": "B"}
_LONG = {
    "--client": "-c", "--server": "-s", "--time": "-t", "--bytes": "-n", "--reverse": "-R",
    "--parallel": "-P", "--udp": "-u", "--congestion": "-C", "--linux-congestion": "-Z",
}  # fmt: skip


def _options(words: list[str]) -> dict[str, str]:
    """The options of iperf, by their short names, with their values."""
    found: dict[str, str] = {}
    last = ""
    for word in " ".join(words).replace("=", " ").split():
        if word.startswith("-"):
            last = _LONG.get(word, word)
            if len(last) > 2 and not last.startswith("--"):  # as in -t10
                last, found[last[:2]] = last[:2], last[2:]
            found.setdefault(last, "")
        elif last:
            found[last] = word
    return found


def _peer(script: Script, command: Command, address: str) -> Node | None:
    """The node with this address: one that the script states, or Mininet's own."""
    hosts = [
        each for each in script.nodes.values() if not each.forwards and each is not command.node
    ]
    for each in hosts:
        if address in (each.name, each.ip, ip_of(script, each)):
            return each
    return hosts[0] if len(hosts) == 1 else None


def _sysctl(found: Found, key: str, value: str) -> bool:
    """Take a sysctl. Returns whether it was understood."""
    key = key.replace("/", ".")
    connection = found.connection
    if key in _NAMED:
        name, known = _NAMED[key]
        if value in known:
            connection[name] = known[value]
        return value in known
    if key in _SWITCHES:
        connection[_SWITCHES[key]] = value != "0"
    elif key in ("net.mptcp.enabled", "net.mptcp.mptcp_enabled"):
        connection["protocol"] = "tcp" if value == "0" else "mptcp"
    elif key == "net.ipv4.tcp_ecn":
        connection["ecn"] = value == "1"
    elif key in ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"):
        return _memory(found, key.rpartition(".")[2], value)
    else:
        return _HARMLESS_SYSCTLS.fullmatch(key) is not None
    return True


def _memory(found: Found, key: str, value: str) -> bool:
    sizes = value.split()
    if len(sizes) != 3 or not all(map(str.isdecimal, sizes)):
        return False
    found.host[f"{key}_max"] = f"{sizes[2]}B"
    if key == "tcp_rmem":
        found.host["tcp_rmem_default"] = f"{sizes[1]}B"
    return True


def _ip(found: Found, words: list[str]) -> bool:
    """Take a command of iproute2. Addresses and routes follow from the topology."""
    words = [each for each in words if not each.startswith("-")]
    if words[:1] != ["mptcp"]:
        return "down" not in words and "netem" not in words
    if words[1:2] in (["limits"], ["limit"]):
        pairs = dict(zip(words[3::2], words[4::2], strict=False))
        subflows = pairs.get("subflows", pairs.get("subflow"))
        accepted = pairs.get("add_addr_accepted")
        given = {"subflows": subflows, "add_addr_accepted": accepted}
        known = {key: int(each) for key, each in given.items() if each and each.isdecimal()}
        found.connection.setdefault("limits", {}).update(known)
        return len(known) == len([each for each in given.values() if each])
    return "backup" not in words and "fullmesh" not in words
