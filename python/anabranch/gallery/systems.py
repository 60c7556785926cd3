"""Systems on which claims are judged: that of the source, this engine, and today's Linux."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from anabranch import _core, forms
from anabranch.exchange.link import UNLIMITED, links
from anabranch.gallery.data import rows_of
from anabranch.scenarios import loading
from anabranch.scenarios.classes import TomlTable

_CONTROL = "congestion_control"
_POLICIES = (_CONTROL, "scheduler", "remedies")
"""Policies that a stack sets."""
_OF_STACK = ("stack", "host", "late_fallback", "dss_checksum", *_POLICIES)
"""Keys of a connection that a stack sets."""
_OF_LINK = ("jitter_model", "queue", "reverse")
"""Keys of a path that a shaper sets."""


@dataclass(frozen=True)
class System:
    """A stack over a kind of links."""

    name: str
    stack: str = ""
    """A stack of scenarios; empty keeps the entry's scenarios, which are those of this engine."""
    host: TomlTable | None = None
    """The platform, if it is not the one of the stack."""
    shaper: str | None = None
    """Shaper of all paths; by default they stay as the entry has them."""
    without_artefact: str = ""
    """The name of the same system without a fault of the emulation, if this system has it."""
    forms: Mapping[str, str | TomlTable] = field(default_factory=dict)
    """The stack's own forms of policies, by the name of the policy."""
    ships: Callable[[str, Any], bool] | None = None
    """Whether the stack ships a policy, given by a key of a connection and its value.

    `None` keeps the policies of the entry, which are those of this stack.
    """

    def lacks(self, scenario: _core.Scenario, studied: Sequence[str]) -> bool:
        """Whether the stack lacks a policy of a scenario that the claims compare.

        `studied` are the keys of these policies. A stack with `ships` sets all others.
        """
        ships = self.ships
        if ships is None:
            return False
        multipath = (c for c in scenario.settings["connection"] if c["protocol"] != "tcp")
        return not all(
            ships(key, self._form(each.get(key, {}))) for each in multipath for key in studied
        )

    def scenario(self, scenario: _core.Scenario, studied: Sequence[str]) -> _core.Scenario:
        """A scenario on this system, with the policies that the claims compare; see `lacks`."""
        if not self.stack:
            return scenario
        table = dict(scenario.settings)
        table |= {
            "connection": [self._connection(each, studied) for each in table["connection"]],
            "path": [self._path(each) for each in table["path"]],
        }
        return loading.of_table(table, table["name"], policies=scenario.policies)

    def _form(self, policy: Any) -> Any:
        """The stack's own form of a policy."""
        name = policy if isinstance(policy, str) else policy.get("kind", "")
        return self.forms.get(name, policy)

    def _connection(self, settings: TomlTable, studied: Sequence[str]) -> TomlTable:
        kept = {key: value for key, value in settings.items() if key not in _OF_STACK}
        kept["stack"] = self.stack
        if self.host:
            kept["host"] = self.host
        if settings["protocol"] == "tcp":
            return kept if self.ships else kept | {_CONTROL: settings[_CONTROL]}
        for key in studied if self.ships else _POLICIES:
            kept[key] = self._form(settings.get(key, {}))
        return kept

    def _path(self, settings: TomlTable) -> TomlTable:
        if self.shaper is None:
            return settings
        kept = {key: value for key, value in settings.items() if key not in _OF_LINK}
        forward, _ = links(settings)
        kept["limit"] = f"{forward.limit_packets() or UNLIMITED}packets"
        return kept | {"shaper": self.shaper}


def _linux_ships(key: str, policy: Any) -> bool:
    match key:
        case "congestion_control":
            shipped: tuple[Any, ...] = ("new_reno", "cubic", "cubic_linux")
        case "scheduler":
            shipped = ("linux",)
        case "path_manager":
            shipped = ("full_mesh", "initial_only", "backup")
        case _:
            shipped = ({},)
    return policy in shipped


_ORIGINAL = "mptcp.org-0.89"
_ORIGINAL_FORMS: dict[str, str | TomlTable] = {
    "min_rtt": "mptcp_org",
    "linux": "mptcp_org",
    "round_robin": "mptcp_org_round_robin",
    "lia": "lia_linux",
    "ecf": {"kind": "ecf", "rule": "linux"},
}


def original(
    name: str = "original kernel", *, shaper: str | None = None, offload: bool = False
) -> System:
    """The original kernel of multipath-tcp.org, version 0.89, on a kind of links."""
    host = {"kind": _ORIGINAL, "offload": offload}
    return System(name, _ORIGINAL, host, shaper, forms=_ORIGINAL_FORMS)


def with_artefact(of: System, name: str) -> System:
    """The system with netem's fault: a delayed segment takes up one byte (``mininet-truesize``)."""
    host = {**(of.host or {}), "charges_delayed_segments": False}
    return replace(of, name=name, host=host, without_artefact=of.name)


_CLEAN = original()
_KEPT = original("the same, memory kept", shaper="mininet", offload=True)
ON_MININET = (with_artefact(_KEPT, "original kernel on Mininet"), _KEPT)
"""The original kernel on Mininet's links: as it was, and without netem's fault."""
_ON_LINKS: Mapping[str, tuple[System, ...]] = {
    "clean": (_CLEAN,),
    "clean, or with netem's fault": (_CLEAN, with_artefact(_CLEAN, "the same, netem's fault")),
    "Mininet": ON_MININET,
    "Mininet, or clean": (*ON_MININET, original("original kernel, clean links")),
    "dummynet": (original("original kernel on dummynet", shaper="dummynet"),),
}
"""The original kernel on the kinds of links that ``systems.toml`` names."""
ENGINE = System("this engine")
LINUX = System("Linux 6.12", "linux-6.12", forms={"min_rtt": "linux"}, ships=_linux_ships)


@dataclass(frozen=True)
class _SourceRow:
    says: Annotated[str, forms.TEXT]
    links: Annotated[str, forms.name("kind of links", _ON_LINKS)] = "clean"


SOURCE_ROW = forms.row(_SourceRow)
SYSTEMS: Mapping[str, _SourceRow] = rows_of("systems.toml", SOURCE_ROW)
"""The systems that sources ran, by name: the source's statement, and the kind of links."""


@dataclass(frozen=True)
class Source:
    """The system that a source used, and the policies that it studied."""

    says: str
    """Statements of the source about its system, and inferences from them."""
    studied: tuple[str, ...]
    """The keys of a connection whose policies the claims compare. Linux sets all others."""
    systems: tuple[System, ...]
    """The systems of the source. The first one is closest to what it states, and is judged."""

    @property
    def system(self) -> System:
        """The system that the claims judge."""
        return self.systems[0]

    @property
    def compared(self) -> tuple[System, ...]:
        """Systems for comparison: the other ones of the source, this engine, and today's Linux."""
        return (*self.systems[1:], ENGINE, LINUX)


def source_of(name: str, studied: Sequence[str]) -> Source:
    """A source of ``systems.toml``, and the policies that it studied."""
    found = SYSTEMS[name]
    return Source(found.says, tuple(studied), _ON_LINKS[found.links])
