"""Scenarios as scripts that set up the same links on real kernels."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch import _core
from anabranch.exchange import mininet, tc, words
from anabranch.exchange.network import network

TARGETS = ("tc", "mininet")
"""Kinds of scripts."""


@dataclass(frozen=True)
class Exported:
    """A script.

    Attributes:
        text: The script.
        missing: The parts of the scenario that it lacks, a line each. The comments at its head list
            them as well.
    """

    text: str
    missing: tuple[str, ...]


def export(scenario: _core.Scenario, to: str) -> Exported:
    """The script for a scenario: a shell script for ``"tc"``, or a Python script for ``"mininet"``.

    Raises:
        InputError: if the scenario is too large for a script.
    """
    settings = scenario.settings
    made = network(settings)
    missing = [*words.missing(settings)]
    if to == "mininet":
        missing += mininet.missing(made)
        return Exported(mininet.script(made, missing), tuple(missing))
    return Exported(tc.script(made, missing), tuple(missing))
