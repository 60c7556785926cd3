"""Which scenarios kernel hosts can run. `anabranch_live::settings` has the last word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch.scenarios.own import PREFIX

_PATH_MANAGERS = ("full_mesh", "backup", "initial_only")
_OF_HOST = ("ecn", "sack", "timestamps")
_OF_MULTIPATH = ("paths", "path_manager", "dss_checksum", "allow_join_initial_addr_port")
_POLICIES = ("scheduler", "congestion_control", "path_manager")


def objection(settings: Mapping[str, Any]) -> str | None:
    """Why kernel hosts cannot run a normalised scenario; `None` if they can."""
    connections = settings["connection"]
    multipath = [each for each in connections if each["protocol"] == "mptcp"]
    for each in connections:
        for kind in _POLICIES:
            if str(each.get(kind, "")).startswith(PREFIX):
                return f"connection {each['name']}: {kind} is your own; name a built-in one"
    for key, those in (
        *((key, connections) for key in _OF_HOST),
        *((key, multipath) for key in _OF_MULTIPATH),
    ):
        if any(each.get(key) != those[0].get(key) for each in those[1:]):
            return f"it has one {key} for all connections of a host; give all the same {key}"
    for each in multipath:
        manager = each["path_manager"]
        kind = manager["kind"] if isinstance(manager, dict) else manager
        if kind not in _PATH_MANAGERS:
            return (
                f"connection {each['name']}: it has no path_manager {kind}; use "
                f"{', '.join(_PATH_MANAGERS[:-1])} or {_PATH_MANAGERS[-1]}"
            )
    return None
