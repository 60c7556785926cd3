"""Keys of scenarios."""

from __future__ import annotations

from anabranch.scenarios.classes import TomlTable

ARRAYS = ("path", "connection", "cross_traffic")
"""Arrays of tables in a scenario; each table has a name."""


def is_scenario(table: TomlTable) -> bool:
    """Whether a file that should be a plan is a scenario."""
    return "path" in table and "scenario" not in table
