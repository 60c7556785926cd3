"""Mininet scripts as scenarios."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.errors import InputError
from anabranch.exchange import calls, commands, topology
from anabranch.exchange.commands import Found, Traffic
from anabranch.exchange.script import Node, Reader, Script
from anabranch.files import reading
from anabranch.scenarios import loading
from anabranch.scenarios.scenario import to_toml

DURATION = "60s"
"""Duration of a run if the script makes no traffic."""


@dataclass(frozen=True)
class Imported:
    """A scenario from a script.

    Attributes:
        toml: The scenario.
        differences: The parts of the script that the scenario does not have, each as
            ``FILE:LINE: text``, in order. Comments at the head of the scenario list them as well.
    """

    toml: str
    differences: tuple[str, ...]

    def scenario(self) -> _core.Scenario:
        """The scenario, checked."""
        return loading.of_text(self.toml, "imported scenario")


def read(file: str | os.PathLike[str]) -> Imported:
    """The scenario of a script for Mininet, which is read and not run.

    Raises:
        InputError: if the file cannot be read, is not Python, or has no two hosts joined by a path.
    """
    name = os.fspath(file)
    with reading(name, "name a script for Mininet"):
        source = Path(file).read_text(encoding="utf-8")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise InputError(f"{name}:{line}: not Python; name a script for Mininet") from error
    script = Reader(source, calls.evaluate).run(tree)
    found = commands.read(script)
    client, server = _ends(script, found, name)
    shared, own = topology.paths(script, client, server)
    if not own:
        raise InputError(
            f"{name}: no links join {client} and {server}; name a script whose addLink calls do"
            f"{_first(script)}"
        )
    _require_shaping(script, source)
    toml = to_toml(_scenario(script, found, Path(file).stem, [*shared, *own], own))
    problems = sorted(script.problems, key=lambda each: each[0])
    head = [*_head(Path(file).name, client, server, found), *_listed(problems)]
    return Imported(
        "".join(f"# {line}".rstrip() + "\n" for line in head) + f"\n{toml}",
        tuple(f"{name}:{line}: {text}" for line, text in problems),
    )


def _require_shaping(script: Script, source: str) -> None:
    """Report parameters of links that Mininet ignores."""
    shaped = [
        each for each in script.cables if "bw" in {**each.parameters[0], **each.parameters[1]}
    ]
    if shaped and not re.search(r"TC\w*(Link|Intf)", source):
        script.note(shaped[0].line, "Mininet ignores bw without TCLink; the scenario has it")


def _head(file: str, client: Node, server: Node, found: Found) -> Iterator[str]:
    yield f"The links of the Mininet script {file}: {client} is the client, {server} the server."
    yield "Limits exclude the packets that propagate, which Mininet's max_queue_size includes."
    if not found.traffic:
        yield f"The script makes no traffic: the client sends data for {DURATION}."


def _listed(problems: list[tuple[int, str]]) -> Iterator[str]:
    """The lines about the differences, for the head of the scenario."""
    if problems:
        yield ""
        yield "Differences from the script:"
        yield ""
        yield from (f"* line {line}: {text}" for line, text in problems)


def _ends(script: Script, found: Found, name: str) -> tuple[Node, Node]:
    """Client and server: those of the traffic, or the first host and the one with most routes."""
    if found.traffic:
        return found.traffic[0].client, found.traffic[0].server
    hosts = [each for each in script.nodes.values() if not each.forwards]
    if len(hosts) < 2:
        raise InputError(
            f"{name}: {len(hosts)} hosts; name a script that adds two with addHost{_first(script)}"
        )
    client, *others = hosts
    server = max(reversed(others), key=lambda each: len(topology.routes(script, client, each)))
    if len(hosts) > 2:
        script.note(1, f"of {len(hosts)} hosts, {client} is the client, and {server} is the server")
    return client, server


def _first(script: Script) -> str:
    """The first line that was not understood, which may be the reason for an error."""
    if not script.problems:
        return ""
    line, text = min(script.problems)
    return f" (line {line}: {text})"


def _scenario(
    script: Script,
    found: Found,
    name: str,
    paths: list[topology.Path],
    own: list[topology.Path],
) -> dict[str, Any]:
    traffic = found.traffic[0] if found.traffic else None
    for other in found.traffic[1:]:
        script.note(
            other.line, f"only the first of {len(found.traffic)} transfers is in the scenario"
        )
    return {
        "name": name,
        "duration": DURATION if traffic is None else f"{traffic.seconds:g}s",
        "stack": "linux-6.12",
        "path": [topology.table(each) for each in paths],
        "connection": [*_connections(found, traffic, own)],
    }


def _connections(
    found: Found, traffic: Traffic | None, own: list[topology.Path]
) -> list[dict[str, Any]]:
    connection = {**_direction(traffic), **found.connection}
    if found.host:
        connection["host"] = {"kind": "linux", "buffers": "socket", **found.host}
    if connection.get("protocol") == "tcp":
        connection["paths"] = [own[0].name]
    connection["workload"] = _workload(traffic)
    count = 1 if traffic is None else traffic.count
    suffixes = [""] if count == 1 else [f"-{number}" for number in range(1, count + 1)]
    return [{"name": f"transfer{each}", **connection} for each in suffixes]


def _direction(traffic: Traffic | None) -> Mapping[str, str]:
    """The direction of the data. The client of iperf sends, unless it reverses the test."""
    return {"direction": "download" if traffic is not None and traffic.is_download else "upload"}


def _workload(traffic: Traffic | None) -> dict[str, str]:
    size = None if traffic is None else traffic.size
    return {"kind": "bulk"} | ({} if size is None else {"size": size})
