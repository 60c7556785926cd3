"""Scenarios that kernel hosts can run. `anabranch_live::settings` has the last word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch import _core
from anabranch.errors import InputError
from anabranch.live.hosts import Hosts
from anabranch.scenarios import custom
from anabranch.words import listed

_PATH_MANAGERS = ("full_mesh", "backup", "initial_only")
_OF_HOST = ("ecn", "sack", "timestamps")
_OF_MULTIPATH = ("paths", "path_manager", "limits", "dss_checksum", "allow_join_initial_addr_port")


def require_possible(hosts: Hosts, scenario: _core.Scenario) -> None:
    """Check before a live run whether its hosts can run a scenario.

    Raises:
        InputError: if they cannot. The message says why.
    """
    settings, file = scenario.settings, scenario.file
    if found := _own_policy(settings):
        raise InputError(
            f"{file}: {found}: live runs have built-in policies only, because code in Python would "
            "delay packets; leave out --live, or name a built-in one"
        )
    if "kernel" in (hosts.client, hosts.server) and (reason := objection(settings)):
        raise InputError(f"{file}: a kernel host cannot run this scenario: {reason}")


def _own_policy(settings: Mapping[str, Any]) -> str | None:
    """The first policy of the user's own in a normalised scenario."""
    for connection in settings["connection"]:
        for kind in custom.KINDS:
            if (name := custom.named_in(connection[kind])) is not None:
                return f"connection {connection['name']}: {kind} {name} is your own"
    return None


def objection(settings: Mapping[str, Any]) -> str | None:
    """Reason why kernel hosts cannot run a normalised scenario; `None` if they can."""
    connections = settings["connection"]
    multipath = [each for each in connections if each["protocol"] == "mptcp"]
    if found := _own_policy(settings):
        return f"{found}; name a built-in one"
    for key, those in (
        *((key, connections) for key in _OF_HOST),
        *((key, multipath) for key in _OF_MULTIPATH),
    ):
        if any(each.get(key) != those[0].get(key) for each in those[1:]):
            return f"it has one {key} for all connections of a host; give all the same {key}"
    addresses = [path.get("routing", {}).get("server_addresses") for path in settings["path"]]
    if any(each != addresses[0] for each in addresses):
        return (
            "it does not know which addresses a path leads to; give all paths the same "
            "routing.server_addresses"
        )
    for each in multipath:
        manager = each["path_manager"]
        kind = manager["kind"] if isinstance(manager, dict) else manager
        if kind not in _PATH_MANAGERS:
            return (
                f"connection {each['name']}: it has no path_manager {kind}; use "
                f"{listed(_PATH_MANAGERS, 'or')}"
            )
    return None
