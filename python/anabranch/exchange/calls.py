"""Calls of Mininet's API in a script."""

from __future__ import annotations

import ast
from typing import Any

from anabranch.exchange.script import (
    UNKNOWN,
    Cable,
    Call,
    Command,
    Instance,
    Node,
    Reader,
    Script,
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


def evaluate(reader: Reader, call: Call) -> Any:
    """Evaluate a call that is none of the script's own functions."""
    function = call.function.name if isinstance(call.function, Symbol) else ""
    short = function.rpartition(".")[2]
    if isinstance(call.owner, Instance):
        return _of_network(reader, call)
    if isinstance(call.owner, Node):
        return _of_node(reader, call)
    if short in ("Mininet", "MininetWithControlNet", "Containernet", "Topo", "MultiGraph"):
        return Instance()
    if function in _OF_SCRIPT or short == "quietRun":
        _command(reader, call, None)
    elif short == "config" and function.startswith(f"{_INTERFACE.name}."):
        reader.not_understood(call.node)
    elif short not in _HARMLESS_FUNCTIONS and function not in _HARMLESS_FUNCTIONS:
        values = (*call.arguments, *call.keywords.values())
        if any(isinstance(each, (Node, Instance)) for each in values):
            reader.not_understood(call.node)
    return UNKNOWN


def _of_network(reader: Reader, call: Call) -> Any:
    """A method of a network or a topology."""
    name = call.name
    if name in _HOSTS or name in _SWITCHES:
        return _node(reader.script, call)
    if name == "addLink":
        return _link(reader, call)
    if name in ("get", "getNodeByName"):
        found = [reader.script.node(each) or UNKNOWN for each in call.arguments]
        return found[0] if len(found) == 1 else found
    if name == "iperf":
        _iperf(reader, call)
    elif name not in _HARMLESS and not name.startswith("__"):
        reader.not_understood(call.node)
    return UNKNOWN


def _node(found: Script, call: Call) -> Node | Symbol:
    name = call.arguments[0] if call.arguments else call.keywords.get("name")
    if not isinstance(name, str):
        return UNKNOWN
    cls = call.keywords.get("cls", call.arguments[1] if len(call.arguments) > 1 else None)
    ip = call.keywords.get("ip")
    forwards = call.name in _SWITCHES or _is_router(cls)
    node = Node(name, forwards, ip.partition("/")[0] if isinstance(ip, str) else None)
    found.nodes[name] = node
    return node


def _is_router(cls: Any) -> bool:
    """Whether nodes of this class forward packets: by its name, or by the sysctl that it sets."""
    if isinstance(cls, ast.ClassDef):
        return "router" in cls.name.lower() or "ip_forward" in ast.unparse(cls)
    name = cls.name.lower() if isinstance(cls, Symbol) else ""
    return any(each in name for each in ("router", "switch", "bridge"))


def _link(reader: Reader, call: Call) -> Any:
    given = dict(zip(("node1", "node2", "port1", "port2"), call.arguments, strict=False))
    given |= call.keywords
    one, other = (reader.script.node(given.get(key)) for key in ("node1", "node2"))
    if one is None or other is None:
        reader.not_understood(call.node)
        return UNKNOWN
    common = {key: value for key, value in given.items() if key not in _ENDS}
    ways = [given.get(key) or {} for key in ("params1", "params2")]
    both = [common | (each if isinstance(each, dict) else {}) for each in ways]
    cable = Cable(one, other, (both[0], both[1]), call.line)
    reader.script.cables.append(cable)
    return _INTERFACE


_INTERFACE = Symbol("interface")
"""A link or an interface, whose changes during a run the reader does not follow."""

_ENDS = {
    "node1", "node2", "port1", "port2", "intfName1", "intfName2", "addr1", "addr2", "cls", "cls1",
    "cls2", "intf", "params1", "params2", "key", "fast",
}  # fmt: skip
"""Parameters of links that do not describe their rates, delays or queues."""


def _iperf(reader: Reader, call: Call) -> None:
    """A call of Mininet's own test: the first host sends to the second."""
    hosts = call.keywords.get("hosts", call.arguments[0] if call.arguments else None)
    if hosts is None:
        ends = [each for each in reader.script.nodes.values() if not each.forwards]
        hosts = [ends[0], ends[-1]] if ends else []
    nodes = [reader.script.node(each) for each in hosts] if isinstance(hosts, (list, tuple)) else []
    is_udp = str(call.keywords.get("l4Type", "TCP")).upper() != "TCP"
    seconds = call.keywords.get("seconds", 5)
    if is_udp or len(nodes) != 2 or not isinstance(seconds, (int, float)):
        reader.not_understood(call.node)
        return
    client, server = nodes
    if client is not None and server is not None:
        reader.script.tests.append((client, server, float(seconds), call.line))


def _of_node(reader: Reader, call: Call) -> Any:
    """A method of a host, a router or a switch."""
    if call.name in _COMMANDS:
        _command(reader, call, call.owner)
    elif call.name == "IP":
        return ip_of(reader.script, call.owner)
    elif call.name in ("intf", "defaultIntf"):
        return _INTERFACE
    elif call.name not in _HARMLESS:
        reader.not_understood(call.node)
    return UNKNOWN


def ip_of(found: Script, node: Node) -> str:
    """A node's address: the script's, or Mininet's, which numbers the hosts."""
    hosts = [each for each in found.nodes.values() if not each.forwards]
    return node.ip or (f"10.0.0.{hosts.index(node) + 1}" if node in hosts else "")


def _command(reader: Reader, call: Call, node: Node | None) -> None:
    words: list[Any] = []
    for each in call.arguments:
        words += each if isinstance(each, (list, tuple)) else [each]
    if not words or isinstance(words[0], Symbol):
        reader.not_understood(call.node)
        return
    text = " ".join("?" if isinstance(each, Symbol) else str(each) for each in words)
    reader.script.commands.append(Command(node, text, call.line))
