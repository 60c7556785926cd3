"""A scenario as a Python script for Mininet."""

from __future__ import annotations

from collections.abc import Iterator
from pprint import pformat
from textwrap import indent
from typing import Any

from anabranch.exchange import hosts
from anabranch.exchange.link import FULL_PACKET, UNLIMITED, Link, milliseconds
from anabranch.exchange.network import Network, TrafficFlow
from anabranch.exchange.tc import program
from anabranch.exchange.words import header

FASTEST = 1_000_000_000
"""The largest rate in bit/s of Mininet's `TCIntf`."""


def in_delay_line(rate: int, delay_s: float) -> int:
    """The full packets that propagate over a link at its rate, rounded up.

    They are in netem's queue, so ``max_queue_size`` counts them as well.
    """
    return -(-int(rate * delay_s) // (8 * FULL_PACKET))


def parameters(link: Link) -> dict[str, Any]:
    """The parameters of Mininet's `TCLink` for a link."""
    found: dict[str, Any] = {}
    if link.rate <= FASTEST:
        found["bw"] = link.rate / 1e6
    if link.delay_s or link.jitter_s:
        found["delay"] = milliseconds(link.delay_s)
    if link.jitter_s:
        found["jitter"] = milliseconds(link.jitter_s)
    if link.loss or link.is_down:
        found["loss"] = 100 if link.is_down else float(f"{link.loss * 100:.6g}")
    packets = link.limit_packets()
    waiting = in_delay_line(link.rate, link.delay_s)
    found["max_queue_size"] = UNLIMITED if packets is None else packets + waiting
    return found


def differences(network: Network) -> Iterator[str]:
    """A line for each difference of Mininet's links from those of a network."""
    for path, pair in network.links.items():
        name, forward = f"path.{path}", pair[0]
        if any(each.rate > FASTEST for each in pair):
            yield f"{name}.rate: Mininet's links are not limited above 1 Gbit/s"
        if forward.burst_loss:
            yield f"{name}.burst_loss: Mininet's links lose packets independently"
        if any(each.jitter_s and each.keeps_order for each in pair):
            yield f"{name}.jitter: it reorders packets in Mininet"
        if forward.discipline["kind"] != "drop_tail":
            yield f"{name}.queue: Mininet's queues drop packets when they are full"
        if not all(each.limit == "infinite" or each.limit.endswith("packets") for each in pair):
            yield f"{name}.limit: Mininet's queues count packets, here those of 1500 bytes"


def script(network: Network, differences: list[str]) -> str:
    """The script for a network. `differences` are those from the scenario."""
    endpoints = hosts.endpoints(network)
    commands = {node: [*each, *endpoints.get(node, [])] for node, each in network.commands.items()}
    flows = [(each.client, each.server, _laid_out(network, each)) for each in network.flows]
    changes = [
        (each.at_s, *network.ends(each.path, is_forward=each.is_forward), parameters(each.link))
        for each in network.changes
    ]
    return _SCRIPT.format(
        header=header(network.settings, differences, "python3 SCRIPT"),
        topology="\n".join(f"        {line}" if line else "" for line in _topology(network)),
        commands=_texts(commands),
        sysctls=_texts(hosts.sysctls(network)),
        flows="".join(
            f"    ({client!r}, {server!r}, {about}),\n" for client, server, about in flows
        ),
        changes="".join(f"    {each!r},\n" for each in changes),
        program=program(),
    )


def _topology(network: Network) -> Iterator[str]:
    routers = {each for path in network.near for each in network.ends(path, is_forward=True)}
    for node in network.commands:
        cls = "cls=Router, " if node in routers else ""
        yield f"self.addHost({node!r}, {cls}ip=None)"
    links = {network.near[path]: (path, pair) for path, pair in network.links.items()}
    for cable in network.cables:
        ends = f"{cable.one!r}, {cable.other!r}, intfName1={cable.other!r}, intfName2={cable.one!r}"
        path, pair = links.get(cable.one, ("", None))
        if pair is None or cable.other != network.far(path):
            yield f"self.addLink({ends})"
            continue
        yield f"# path {path}"
        if parameters(pair[0]) == parameters(pair[1]):
            yield from _call(ends, "cls=TCLink", *_arguments(parameters(pair[0])))
        else:
            # The first interface sends from the client to the server.
            ways = zip(("params1", "params2"), map(parameters, reversed(pair)), strict=True)
            given = (f"{name}=dict({', '.join(_arguments(each))})" for name, each in ways)
            yield from _call(ends, "cls1=TCIntf, cls2=TCIntf", *given)


def _call(*arguments: str) -> Iterator[str]:
    yield "self.addLink("
    yield from (f"    {each}," for each in arguments)
    yield ")"


def _arguments(values: dict[str, Any]) -> Iterator[str]:
    return (f"{key}={value!r}" for key, value in values.items())


def _laid_out(network: Network, flow: TrafficFlow) -> str:
    """The description of a flow as a dictionary in the script."""
    return indent(pformat(hosts.traffic(network, flow), width=90, sort_dicts=False), "    ").strip()


def _texts(lines: dict[str, list[str]]) -> str:
    """The items of a dictionary of texts with several lines."""
    return "".join(
        "\n        ".join([f'    {node!r}: """', *each]) + '\n    """,\n'
        for node, each in lines.items()
    )


_SCRIPT = """\
#!/usr/bin/env python3
{header}
#
# Mininet's links count the 14 bytes of Ethernet headers, so they carry up to 1 % less than those of
# the scenario. max_queue_size includes the packets that propagate.

import json
import os
import subprocess
import sys
import tempfile
import time

try:
    from mininet.link import TCIntf, TCLink
    from mininet.net import Mininet
    from mininet.node import Node
    from mininet.topo import Topo
except ImportError:
    sys.exit(f"{{sys.argv[0]}}: this script needs Mininet; use apt install mininet")

LEAD = 2.0  # time in s after which all programs are ready, and the run begins


class Router(Node):
    def config(self, **params):
        super().config(**params)
        self.cmd("sysctl -w net.ipv4.ip_forward=1")


class Paths(Topo):
    def build(self):
{topology}


# The commands for ip of each node.
COMMANDS = {{
{commands}}}

# The sysctls of each node, which it sets as far as the kernel has them.
SYSCTLS = {{
{sysctls}}}

# Client, server and traffic of each flow.
FLOWS = [
{flows}]

# Time in s of each change, node, interface, and the new settings.
CHANGES = [
{changes}]

# The program that makes the traffic.
TRAFFIC = r'''{program}
'''


def require(condition, problem):
    if not condition:
        sys.exit(f"{{sys.argv[0]}}: {{problem}}")


def run(net):
    for name, commands in COMMANDS.items():
        command(net[name], ["ip", "-batch", "-"], commands)
    for name, settings in SYSCTLS.items():
        command(net[name], ["sysctl", "-q", "-e", "-p", "-"], settings)
    file = tempfile.NamedTemporaryFile("w", suffix=".py")
    file.write(TRAFFIC)
    file.flush()
    start = time.time() + LEAD
    players = []
    for client, server, flow in FLOWS:
        for role, host in (("server", server), ("client", client)):
            program = ["python3", file.name, role, json.dumps(flow), str(start)]
            players.append(net[host].popen(program, stdout=None, stderr=None))
    for at, name, interface, parameters in CHANGES:
        time.sleep(max(0.0, start + at - time.time()))
        net[name].intf(interface).config(**parameters)
    return max([each.wait() for each in players])


def command(node, arguments, text):
    process = node.popen(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    _, errors = process.communicate(text.encode())
    require(process.returncode == 0, f"{{node.name}}: {{errors.decode()}}")


def main():
    require(os.geteuid() == 0, "this script needs root; use sudo")
    require(os.path.exists("/proc/sys/net/mptcp"), "this kernel lacks Multipath TCP")
    net = Mininet(topo=Paths(), controller=None)
    try:
        net.start()
        return run(net)
    finally:
        net.stop()


if __name__ == "__main__":
    sys.exit(main())
"""
