"""Scenarios that kernel hosts can run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch import _core
from anabranch.errors import InputError
from anabranch.live.hosts import Hosts
from anabranch.scenarios import custom


def require_possible(hosts: Hosts, scenario: _core.Scenario) -> None:
    """Check before a live run whether its hosts can run a scenario.

    Raises:
        InputError: if they cannot. The message says why.
    """
    if found := _own_policy(scenario.settings):
        raise InputError(
            f"{scenario.file}: {found}: live runs have built-in policies only, because code in "
            "Python would delay packets; leave out --live, or name a built-in one"
        )
    if "kernel" in (hosts.client, hosts.server) and (reason := objection(scenario)):
        raise InputError(f"{scenario.file}: a kernel host cannot run this scenario: {reason}")


def _own_policy(settings: Mapping[str, Any]) -> str | None:
    """The first policy of the user's own in a normalised scenario."""
    for connection in settings["connection"]:
        for kind in custom.KINDS:
            if (name := custom.named_in(connection[kind])) is not None:
                return f"connection {connection['name']}: {kind} {name} is your own"
    return None


def objection(scenario: _core.Scenario) -> str | None:
    """Reason why kernel hosts cannot run a scenario; `None` if they can."""
    if found := _own_policy(scenario.settings):
        return f"{found}; name a built-in one"
    return _core.live_objection(scenario)
