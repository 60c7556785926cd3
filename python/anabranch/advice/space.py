"""The choices of a search for a connection: those that Linux has, and those of the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch import _core
from anabranch.advice.failover import STALE_LOSS_CNT
from anabranch.scenarios import quantities
from anabranch.words import listed

_MOST_PATHS = 4
"""Number of paths up to which a search tries each as backup and without each (this project)."""
_HALVINGS = range(-4, 7)
"""Buffers from a quarter to eight times that of the rule, in steps of √2 (this project)."""
_SMALLEST_BUFFER = 16 << 10
_CONTROLS_OF_LINUX = ("cubic_linux", "new_reno")
_PERIODS = (1, 2)
"""Values of net.mptcp.stale_loss_cnt (this project)."""
_MANAGERS = ("single_path", "drepas")
"""Path managers of the engine that need no parameters, besides `full_mesh` and `backup`."""


@dataclass(frozen=True)
class Option:
    """A value of a choice.

    Attributes:
        words: The change; empty for the present value.
        keys: Keys of the connection, and their new values; `None` removes a key.
    """

    words: str
    keys: Mapping[str, Any]


@dataclass(frozen=True)
class Choice:
    """Something that a search chooses.

    Attributes:
        present: Index of the option that changes nothing.
    """

    name: str
    options: Sequence[Option]
    present: int = 0

    @property
    def words(self) -> list[str]:
        """The words of the options."""
        return [each.words for each in self.options]


Space = Sequence[Choice]
"""The choices, with that of the buffers first."""

AUTOTUNED = "autotuned buffers"
"""Words of the option in which the host tunes its buffers."""


def of_linux(connection: Mapping[str, Any], rule: int) -> Space:
    """Abilities of Linux for a connection that runs as in Linux.

    `rule` is the buffer of the rule, in bytes.
    """
    controls = _of_kind("congestion_control", connection, _CONTROLS_OF_LINUX)
    choices = [_buffers(connection, rule, can_tune=True), controls]
    if connection["protocol"] == "mptcp":
        choices.append(_paths(connection, managers=()))
    return _proper(choices)


def of_linux_for_failover(connection: Mapping[str, Any], rule: int) -> Space:
    """The same, with the sysctl that decides when a silent subflow goes out of use."""
    choices = [*of_linux(connection, rule)]
    if connection["protocol"] == "mptcp" and len(connection["paths"]) > 1:
        choices.append(_stale_loss_cnt(connection["host"]))
    return choices


def _stale_loss_cnt(host: Mapping[str, Any]) -> Choice:
    now = host.get("stale_loss_cnt", STALE_LOSS_CNT)
    options = [
        Option(f"stale_loss_cnt {periods}", {"host": {**host, "stale_loss_cnt": periods}})
        for periods in _PERIODS
        if periods != now
    ]
    return Choice("stale_loss_cnt", [Option("", {}), *options])


def of_engine(connection: Mapping[str, Any], rule: int) -> Space:
    """Abilities of the engine for a connection."""
    host = connection["host"]
    can_tune = isinstance(host, dict) and host.get("buffers") == "socket"
    choices = [
        _buffers(connection, rule, can_tune=can_tune),
        _of_kind("congestion_control", connection, _names("congestion_control")),
    ]
    if connection["protocol"] == "mptcp":
        choices += [
            _of_kind("scheduler", connection, _names("scheduler")),
            _paths(connection, _MANAGERS),
            *_remedies(connection),
        ]
    return _proper(choices)


def _proper(choices: Sequence[Choice]) -> Space:
    return [each for each in choices if len(each.options) > 1]


def buffer_words(size: int) -> str:
    """A buffer in words."""
    return f"{size / 1024:.0f} KiB buffers" if size < 10 << 20 else f"{size >> 20} MiB buffers"


def _buffers(connection: Mapping[str, Any], rule: int, *, can_tune: bool) -> Choice:
    sizes = sorted({max(_whole(rule * 2 ** (each / 2)), _SMALLEST_BUFFER) for each in _HALVINGS})
    options = [(size, Option(buffer_words(size), _buffer_keys(size))) for size in sizes]
    now = [connection.get(key) for key in ("send_buffer", "receive_buffer")]
    known = [quantities.byte_count(each) for each in now if each is not None]
    if known:
        present = (min(known), Option("", {}))
        options = [each for each in options if [each[0]] * 2 != known] + [present]
    options.sort(key=lambda each: each[0])
    found = [option for _, option in options]
    if can_tune and known:
        found.append(Option(AUTOTUNED, {"send_buffer": None, "receive_buffer": None}))
    if not known:
        found.append(Option("", {}))
    return Choice("buffers", found, [each.words for each in found].index(""))


def _whole(size: float) -> int:
    return round(size / 1024) * 1024


def _buffer_keys(size: int) -> dict[str, str]:
    return {"send_buffer": f"{size}B", "receive_buffer": f"{size}B"}


def _names(kind: str) -> list[str]:
    return [str(each["name"]) for each in _core.policies() if each["kind"] == kind]


def _of_kind(kind: str, connection: Mapping[str, Any], names: Sequence[str]) -> Choice:
    now = connection[kind]
    now = now.get("kind") if isinstance(now, dict) else now
    others = [
        Option(f"{name} ({kind.replace('_', ' ')})", {kind: name}) for name in names if name != now
    ]
    return Choice(kind, [Option("", {}), *others])


def _paths(connection: Mapping[str, Any], managers: Sequence[str]) -> Choice:
    paths = connection["paths"]
    now = (connection["path_manager"], paths)
    found = []
    for words, manager, kept in _uses(paths, managers):
        if (manager, kept) != now:
            found.append(Option(words, {"path_manager": manager, "paths": kept}))
    return Choice("paths", [Option("", {}), *found])


def _uses(paths: list[str], managers: Sequence[str]) -> Iterator[tuple[str, Any, list[str]]]:
    if len(paths) == 1:
        return
    yield "all paths", "full_mesh", paths
    for name in managers:
        yield f"{name} (path manager)", name, paths
    if len(paths) > _MOST_PATHS:
        return
    for regular in paths:
        rest = listed(each for each in paths if each != regular)
        backups = "backups" if len(paths) > 2 else "backup"
        yield f"{rest} as {backups}", {"kind": "backup", "regular": regular}, paths
    for path in paths:
        yield f"without {path}", "full_mesh", [each for each in paths if each != path]


def _remedies(connection: Mapping[str, Any]) -> Iterator[Choice]:
    now = connection.get("remedies", {})
    for name in _names("remedy"):
        words = f"without {name}" if name in now else f"with {name}"
        yield Choice(name, [Option("", {}), Option(words, {_REMEDY + name: name not in now})])


_REMEDY = "remedies."


def keys(space: Space, chosen: Sequence[int], connection: Mapping[str, Any]) -> dict[str, Any]:
    """The new keys of a connection if these options are chosen."""
    new: dict[str, Any] = {}
    for choice, index in zip(space, chosen, strict=True):
        new |= choice.options[index].keys
    toggled = {key: new.pop(key) for key in [*new] if key.startswith(_REMEDY)}
    if toggled:
        remedies = dict(connection.get("remedies", {}))
        for key, is_on in toggled.items():
            name = key.removeprefix(_REMEDY)
            remedies = {each: remedies[each] for each in remedies if each != name}
            remedies |= {name: True} if is_on else {}
        new["remedies"] = remedies
    return new


def words(space: Space, chosen: Sequence[int]) -> str:
    """The changes in words; ``"no change"`` without one."""
    changes = (choice.options[index].words for choice, index in zip(space, chosen, strict=True))
    return ", ".join(filter(None, changes)) or "no change"
