"""Header comments of scripts, and the differences between scripts and scenarios."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from anabranch.exchange.hosts import CONTROLS, name_of

_WIDTH = 98


def header(settings: Mapping[str, Any], differences: list[str], usage: str) -> str:
    """The comments at the head of a script."""
    lines = [
        f"Scenario {settings['name']} on the kernel's own Multipath TCP.",
        *([settings["description"]] if settings["description"] else []),
        f"Run it as root: {usage}. It prints the goodput, and removes what it has set up.",
        "",
    ]
    if differences:
        lines += ["Differences from the scenario:", ""]
        lines += [f"* {each}" for each in differences]
    else:
        lines.append("The script has everything that the scenario states.")
    return "\n".join(_comment(line) for line in lines)


def _comment(line: str) -> str:
    indent = "#   " if line.startswith("* ") else "# "
    return (
        textwrap.fill(
            " ".join(line.split()), _WIDTH, initial_indent="# ", subsequent_indent=indent
        ).rstrip()
        or "#"
    )


def differences(settings: Mapping[str, Any]) -> Iterator[str]:
    """A line for each difference of any script from a normalised scenario."""
    for path in settings["path"]:
        yield from _differences_of_path(path)
    leads_to = [path.get("routing", {}).get("server_addresses") for path in settings["path"]]
    if any(each != leads_to[0] for each in leads_to):
        yield "path.*.routing.server_addresses: every path leads to the addresses of the first one"
    for connection in settings["connection"]:
        for what in _differences_of_connection(connection):
            yield f"connection.{connection['name']}.{what}"


_OF_PIE = {"max_burst": "150ms", "ecn_threshold": "10%"}
"""Parameters of PIE that Linux does not have, with the values that it uses."""


def _differences_of_path(path: Mapping[str, Any]) -> Iterator[str]:
    name = f"path.{path['name']}"
    for direction, table in ((name, path), (f"{name}.reverse", path["reverse"])):
        if "trace" in table:
            yield f"{direction}.trace: the link has the constant mean rate of the trace"
        if "loss_trace" in table:
            yield f"{direction}.loss_trace: the link loses no packets at given places"
    for key, fixed in _OF_PIE.items():
        if path["queue"].get(key, fixed) != fixed:
            yield f"{name}.queue.{key}: it is {fixed} in Linux"
    if "shaper" in path:
        yield f"{name}.shaper: the links are made as without {name_of(path['shaper'])}"
    for index, middlebox in enumerate(path.get("middlebox", [])):
        yield f"{name}.middlebox[{index}]: there is no {middlebox['kind']}"
    if path["family"] == "ipv6":
        yield f"{name}.family: the addresses are IPv4"
    if not path.get("icmp", True):
        yield f"{name}.icmp: the routers answer packets that are too large"
    routing = path.get("routing", {})
    for key in ("client_egress", "server_egress"):
        if key in routing:
            yield f"{name}.routing.{key}: packets leave over the path of their address"
    for index, change in enumerate(path["change"]):
        if change.get("state") in ("suspend", "resume"):
            yield f"{name}.change[{index}].state: the link does not {change['state']}"
        if change.get("noticed"):
            yield f"{name}.change[{index}].noticed: the client does not notice the change"


def _differences_of_connection(connection: Mapping[str, Any]) -> Iterator[str]:
    control, scheduler = connection["congestion_control"], connection["scheduler"]
    if name_of(control) not in CONTROLS:
        yield f"congestion_control: Linux has no {name_of(control)}; it uses cubic"
    host = connection["host"]
    if name_of(host) != "linux":
        yield f"host: the hosts are Linux, not {name_of(host)}"
    if name_of(host) == "rfc" or (name_of(host) == "linux" and host["buffers"] == "payload"):
        for key in ("send_buffer", "receive_buffer"):
            if key in connection:
                yield f"{key}: Linux also charges the overhead of segments to the buffer"
    if connection.get("pacing"):
        yield "pacing: Linux paces only with a congestion control that asks for it"
    if "keep_alive" in connection:
        yield "keep_alive: the hosts send no keep-alives"
    if connection["protocol"] != "mptcp":
        return
    if name_of(scheduler) != "linux":
        yield f"scheduler: Linux has its own scheduler, not {name_of(scheduler)}"
    yield from (
        f"remedies.{each}: Linux has no remedies" for each in connection.get("remedies", ())
    )
    if "shared_bottleneck_detection" in connection:
        yield "shared_bottleneck_detection: Linux does not detect shared bottlenecks"
    if name_of(connection["path_manager"]) not in _MANAGERS:
        manager = name_of(connection["path_manager"])
        yield f"path_manager: Linux has no {manager}; it opens a subflow over every path"


_MANAGERS = ("full_mesh", "backup", "initial_only")
"""Path managers that the endpoints of Linux can follow."""
