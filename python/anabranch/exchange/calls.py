"""The calls of Mininet's API in a script."""

from __future__ import annotations

import ast
from typing import Any

from anabranch.exchange.script import (
    UNKNOWN,
    Cable,
    Call,
    Command,
    Instance,
    Made,
    Node,
    Reader,
    Symbol,
)

_SWITCHES = ("addSwitch",)
_HOSTS = ("addHost", "addNode", "addDocker", "addStation")
_COMMANDS = ("cmd", "cmdPrint", "sendCmd", "popen", "pexec")
_OF_SCRIPT = {"os.system", "os.popen", "subprocess.run", "subprocess.call", "subprocess.Popen",
              "subprocess.check_call", "subprocess.check_output", "quietRun"}  # fmt: skip
"""Functions that run a shell command outside the nodes."""

_HARMLESS = {
    "start", "stop", "build", "startTerms", "pingAll", "ping", "pingPair", "pingFull",
    "addController", "waitConnected", "staticArp", "setMAC", "MAC", "setIP", "intf", "defaultIntf",
    "intfList", "intfNames", "connectionsTo", "waitOutput", "monitor", "wait", "terminate",
    "communicate", "setDefaultRoute", "setHostRoute", "setARP", "waitListening", "interact",
    "addCleanup", "sendInt", "poll", "kill", "read", "write", "items", "keys", "values",
}  # fmt: skip
"""Methods of Mininet that change neither the links nor the traffic between hosts."""

_HARMLESS_FUNCTIONS = {
    "print", "info", "output", "debug", "warn", "error", "CLI", "setLogLevel", "dumpNodes",
    "dumpNodeConnections", "dumpNetConnections", "super", "Topo.__init__", "isinstance", "type",
    "id",
}  # fmt: skip


def call(reader: Reader, made: Call) -> Any:
    """Evaluate a call that is none of the script's own functions."""
    function = made.function.name if isinstance(made.function, Symbol) else ""
    short = function.rpartition(".")[2]
    if isinstance(made.owner, Instance):
        return _of_network(reader, made)
    if isinstance(made.owner, Node):
        return _of_node(reader, made)
    if short in ("Mininet", "MininetWithControlNet", "Containernet", "Topo", "MultiGraph"):
        return Instance()
    if function in _OF_SCRIPT or short == "quietRun":
        _command(reader, made, None)
    elif short == "config" and function.startswith(f"{_INTERFACE.name}."):
        reader.not_understood(made.node)
    elif short == "irange":
        return list(range(made.arguments[0], made.arguments[1] + 1))
    elif short not in _HARMLESS_FUNCTIONS and function not in _HARMLESS_FUNCTIONS:
        values = (*made.arguments, *made.keywords.values())
        if any(isinstance(each, (Node, Instance)) for each in values):
            reader.not_understood(made.node)
    return UNKNOWN


def _of_network(reader: Reader, made: Call) -> Any:
    """A method of a network or a topology."""
    name = made.name
    if name in _HOSTS or name in _SWITCHES:
        return _node(reader.made, made)
    if name == "addLink":
        return _link(reader, made)
    if name in ("get", "getNodeByName"):
        found = [reader.made.node(each) or UNKNOWN for each in made.arguments]
        return found[0] if len(found) == 1 else found
    if name == "iperf":
        _iperf(reader, made)
    elif name not in _HARMLESS and not name.startswith("__"):
        reader.not_understood(made.node)
    return UNKNOWN


def _node(found: Made, made: Call) -> Node | Symbol:
    name = made.arguments[0] if made.arguments else made.keywords.get("name")
    if not isinstance(name, str):
        return UNKNOWN
    cls = made.keywords.get("cls", made.arguments[1] if len(made.arguments) > 1 else None)
    ip = made.keywords.get("ip")
    forwards = made.name in _SWITCHES or _is_router(cls)
    node = Node(name, forwards, ip.partition("/")[0] if isinstance(ip, str) else None)
    found.nodes[name] = node
    return node


def _is_router(cls: Any) -> bool:
    """Whether nodes of this class forward packets: by its name, or by the sysctl that it sets."""
    if isinstance(cls, ast.ClassDef):
        return "router" in cls.name.lower() or "ip_forward" in ast.unparse(cls)
    name = cls.name.lower() if isinstance(cls, Symbol) else ""
    return any(each in name for each in ("router", "switch", "bridge"))


def _link(reader: Reader, made: Call) -> Any:
    given = dict(zip(("node1", "node2", "port1", "port2"), made.arguments, strict=False))
    given |= made.keywords
    one, other = (reader.made.node(given.get(key)) for key in ("node1", "node2"))
    if one is None or other is None:
        reader.not_understood(made.node)
        return UNKNOWN
    common = {key: value for key, value in given.items() if key not in _ENDS}
    ways = [given.get(key) or {} for key in ("params1", "params2")]
    both = [common | (each if isinstance(each, dict) else {}) for each in ways]
    cable = Cable(one, other, (both[0], both[1]), made.line)
    reader.made.cables.append(cable)
    return _INTERFACE


_INTERFACE = Symbol("interface")
"""A link or an interface, whose changes during a run the reader does not follow."""

_ENDS = {
    "node1", "node2", "port1", "port2", "intfName1", "intfName2", "addr1", "addr2", "cls", "cls1",
    "cls2", "intf", "params1", "params2", "key", "fast",
}  # fmt: skip
"""Parameters of links that do not describe their rates, delays or queues."""


def _iperf(reader: Reader, made: Call) -> None:
    """A call of Mininet's own test: the first host sends to the second."""
    hosts = made.keywords.get("hosts", made.arguments[0] if made.arguments else None)
    if hosts is None:
        ends = [each for each in reader.made.nodes.values() if not each.forwards]
        hosts = [ends[0], ends[-1]] if ends else []
    nodes = [reader.made.node(each) for each in hosts] if isinstance(hosts, (list, tuple)) else []
    is_udp = str(made.keywords.get("l4Type", "TCP")).upper() != "TCP"
    seconds = made.keywords.get("seconds", 5)
    if is_udp or len(nodes) != 2 or not isinstance(seconds, (int, float)):
        reader.not_understood(made.node)
        return
    client, server = nodes
    if client is not None and server is not None:
        reader.made.tests.append((client, server, float(seconds), made.line))


def _of_node(reader: Reader, made: Call) -> Any:
    """A method of a host, a router or a switch."""
    if made.name in _COMMANDS:
        _command(reader, made, made.owner)
    elif made.name == "IP":
        return ip_of(reader.made, made.owner)
    elif made.name in ("intf", "defaultIntf"):
        return _INTERFACE
    elif made.name not in _HARMLESS:
        reader.not_understood(made.node)
    return UNKNOWN


def ip_of(found: Made, node: Node) -> str:
    """A node's address: the script's, or Mininet's, which numbers the hosts."""
    hosts = [each for each in found.nodes.values() if not each.forwards]
    return node.ip or (f"10.0.0.{hosts.index(node) + 1}" if node in hosts else "")


def _command(reader: Reader, made: Call, node: Node | None) -> None:
    words: list[Any] = []
    for each in made.arguments:
        words += each if isinstance(each, (list, tuple)) else [each]
    if not words or isinstance(words[0], Symbol):
        reader.not_understood(made.node)
        return
    text = " ".join("?" if isinstance(each, Symbol) else str(each) for each in words)
    reader.made.commands.append(Command(node, text, made.line))
