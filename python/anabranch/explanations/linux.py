"""Abilities of Linux (6.18) with Multipath TCP, in the terms of a normalised scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCHEDULER = "linux"
CONTROLS = ("cubic_linux", "cubic", "new_reno")
MANAGERS = ("full_mesh", "backup", "initial_only")


def kind_of(chosen: Any) -> str:
    """The name of a policy, which a scenario writes with or without parameters."""
    return str(chosen["kind"] if isinstance(chosen, dict) and "kind" in chosen else chosen)


def foreign(connection: Mapping[str, Any]) -> list[str]:
    """The policies of a connection that Linux does not have."""
    found = []
    control = connection["congestion_control"]
    by_path = isinstance(control, dict) and "kind" not in control
    controls = map(kind_of, control.values()) if by_path else [kind_of(control)]
    found += [each for each in dict.fromkeys(controls) if each not in CONTROLS]
    if connection["protocol"] != "mptcp":
        return found
    for key, known in (("scheduler", (SCHEDULER,)), ("path_manager", MANAGERS)):
        found += [name for name in [kind_of(connection[key])] if name not in known]
    return [*found, *connection.get("remedies", {})]
