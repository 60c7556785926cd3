"""Subject of advice: a scenario file, or paths on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.errors import InputError, ScenarioError
from anabranch.explanations import linux
from anabranch.explanations.pairs import changed_connections
from anabranch.scenarios import loading, quantities
from anabranch.scenarios.overrides import Overrides
from anabranch.scenarios.quantities import bits_per_second, nanoseconds
from anabranch.scenarios.routes import Crossing, route
from anabranch.scenarios.scenario import Blocks, Connection, NetworkPath, Scenario
from anabranch.words import listed

_QUEUE = "100ms"
"""Default queue of a path of the command line (this project): a moderately bloated link."""
_EXAMPLE = "8Mbit/s,20ms,54packets,loss=0.5%"
_PACKETS = 50_000
_SHORTEST_S, _LONGEST_S = 10, 60
"""Packets of a run over paths of the command line, and bounds of its time (this project)."""
_SHORT_QUEUE = 30
"""Queue in packets up to which calibration finds large differences with two paths."""
_OPPORTUNITY_BITS = 1504 * 8
"""Bytes that an opportunity of a trace delivers."""
_UNCHANGED = Overrides()


def of_file(file: Path, overrides: Overrides = _UNCHANGED) -> _core.Scenario:
    """The scenario of a file, with changes.

    Raises:
        InputError: if the file cannot be read, or if a change is wrong.
        ScenarioError: if the scenario is wrong.
    """
    return with_blocks(loading.of_file(file, overrides))


def of_paths(texts: Sequence[str], overrides: Overrides = _UNCHANGED) -> _core.Scenario:
    """The scenario of paths such as ``8Mbit/s,20ms,54packets,loss=0.5%``.

    A path has a rate, a round-trip time, and optionally a queue and a loss probability. The server
    sends 8 KiB blocks as fast as it can.

    Raises:
        InputError: if a path is wrong.
    """
    paths = [_path(text, f"path{number}") for number, text in enumerate(texts, start=1)]
    bits = sum(bits_per_second(str(path.rate)) for path in paths)
    seconds = min(max(round(_PACKETS * 12_000 / bits), _SHORTEST_S), _LONGEST_S)
    connection = Connection(
        name="main", protocol="mptcp" if len(paths) > 1 else "tcp", workload=Blocks()
    )
    scenario = Scenario(
        name=" + ".join(str(path.rate) for path in paths),
        duration=f"{seconds}s",
        warm_up=f"{seconds // 5}s",
        paths=tuple(paths),
        connections=(connection,),
    )
    return loading.of_text(scenario.to_toml(), "--path", changes=overrides)


def _path(text: str, name: str) -> NetworkPath:
    parts = [part.strip() for part in text.split(",")]
    losses = [part.removeprefix("loss=") for part in parts if part.startswith("loss=")]
    plain = [part for part in parts if not part.startswith("loss=")]
    if not 2 <= len(plain) <= 3 or len(losses) > 1:
        raise InputError(
            f"--path {text}: write a rate, a round-trip time, and optionally a queue and a loss, "
            f"such as {_EXAMPLE}"
        )
    path = NetworkPath(
        name=name,
        rate=plain[0],
        delay=_one_way(plain[1], text),
        limit=plain[2] if len(plain) == 3 else _QUEUE,
        loss=losses[0] if losses else None,
    )
    _check(path, text)
    return path


def _one_way(round_trip: str, text: str) -> str:
    try:
        return f"{nanoseconds(round_trip) // 2}ns"
    except ValueError as error:
        raise InputError(
            f'--path {text}: "{round_trip}" is not a round-trip time; write a number and a unit, '
            "such as 20ms"
        ) from error


def _check(path: NetworkPath, text: str) -> None:
    """Let the core check the values of a path."""
    connection = Connection(protocol="tcp", workload=Blocks())
    alone = Scenario(name="path", duration="1s", paths=(path,), connections=(connection,))
    try:
        loading.of_text(alone.to_toml(), "--path")
    except ScenarioError as error:
        problem = str(error).removeprefix("--path: ").removeprefix("path[0].")
        raise InputError(f"--path {text}: {problem}") from error


def with_blocks(scenario: _core.Scenario) -> _core.Scenario:
    """The scenario with blocks in place of bulk data, so that delays and pauses can be measured."""
    new = {}
    changed = changed_connections(scenario.settings)
    for index, connection in enumerate(scenario.settings["connection"]):
        workload = connection["workload"]
        if connection in changed and workload["kind"] == "bulk":
            once = {"block_size": workload["size"], "count": 1} if "size" in workload else {}
            new[f"connection[{index}].workload"] = {"kind": "blocks", **once}
    return loading.changed(scenario, new) if new else scenario


def as_linux(connection: Mapping[str, Any]) -> dict[str, Any]:
    """The keys with which a connection runs as in Linux.

    The buffers are what its program requests; without them, Linux tunes them, between the sizes
    that the connection states. Policies that Linux does not have become its defaults.
    """
    host, control = connection["host"], connection["congestion_control"]
    is_linux = isinstance(host, dict) and host.get("buffers") == "socket"
    new = {
        "host": host if is_linux else {"kind": "linux", "buffers": "socket"},
        "congestion_control": "new_reno" if control == "new_reno" else "cubic_linux",
    }
    if connection["protocol"] != "mptcp":
        return new
    manager = connection["path_manager"]
    known = linux.kind_of(manager) in linux.MANAGERS
    return {
        **new,
        "scheduler": linux.SCHEDULER,
        "path_manager": manager if known else "full_mesh",
        "remedies": {},
    }


def rule_bytes(settings: Mapping[str, Any], connection: Mapping[str, Any]) -> int:
    """The buffer of the rule 2 · ΣBW · RTTmax (Raiciu et al., NSDI 2012) in bytes.

    ΣBW is the sum of the rates of its paths in the direction of the data, and RTTmax their longest
    round-trip time with jitter and without queues.
    """
    paths = {path["name"]: path for path in settings["path"]}
    used = [paths[name] for name in connection["paths"]]
    if connection["protocol"] == "tcp":
        used = used[:1]
    rates = sum(_bits_per_second(path, connection["direction"], paths) for path in used)
    routes = [route(path["name"], paths) for path in used]
    longest_s = max(sum(_round_trip_ns(paths[each.path]) for each in hops) for hops in routes) / 1e9
    return round(2 * rates / 8 * longest_s)


def warnings(settings: Mapping[str, Any], connection: Mapping[str, Any]) -> list[str]:
    """Reasons why the model of Linux may be wrong for a connection of a normalised scenario."""
    used = [path for path in settings["path"] if path["name"] in connection["paths"]]
    short = [path["name"] for path in used if _queue_packets(path) <= _SHORT_QUEUE]
    if len(used) < 2 or not short:
        return []
    names, has = (listed(short), "has" if len(short) == 1 else "have")
    return [
        f"{names} {has} a queue of at most {_SHORT_QUEUE} packets. With such a queue next to "
        "another path, Linux can differ much from its model (docs/calibration.md): try the advice "
        "before you rely on it."
    ]


def _queue_packets(path: Mapping[str, Any]) -> float:
    """Queue of a path in packets of its MTU."""
    limit, packet = path["limit"], quantities.byte_count(path["mtu"])
    if limit.endswith("packets"):
        return quantities.packets(limit)
    if limit.endswith("s"):
        return _rate_of_side(path) * nanoseconds(limit) / 1e9 / 8 / packet
    return quantities.byte_count(limit) / packet


def _bits_per_second(
    path: Mapping[str, Any], direction: str, paths: Mapping[str, Mapping[str, Any]]
) -> float:
    """Rate of the slowest link on a path's route, in the direction of the data.

    Data in both directions counts at the faster one.
    """
    return min(_rate_over(each, direction, paths) for each in route(path["name"], paths))


def _rate_over(crossing: Crossing, direction: str, paths: Mapping[str, Mapping[str, Any]]) -> float:
    path = paths[crossing.path]
    down, up = (path["reverse"], path) if crossing.is_reversed else (path, path["reverse"])
    sides = {"download": [down], "upload": [up], "both": [down, up]}
    return max(map(_rate_of_side, sides[direction]))


def _rate_of_side(side: Mapping[str, Any]) -> float:
    return bits_per_second(side["rate"]) if "rate" in side else _mean_rate(side["trace"])


def _mean_rate(trace: Mapping[str, str]) -> float:
    """Mean rate of a trace, whose last time is its period, in bit/s."""
    times = [each.partition("*") for each in trace["milliseconds"].split()]
    count = sum(int(repeated) if repeated else 1 for _, _, repeated in times)
    return count * _OPPORTUNITY_BITS / max(int(times[-1][0]), 1) * 1000


def _round_trip_ns(path: Mapping[str, Any]) -> int:
    back = path["reverse"]
    return sum(nanoseconds(side[key]) for side in (path, back) for key in ("delay", "jitter"))
