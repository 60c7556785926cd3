"""Scenarios as scripts that set up the same links on real kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from anabranch import _core
from anabranch.exchange import mininet, tc, words
from anabranch.exchange.network import of_scenario

Target = Literal["tc", "mininet"]
"""A kind of script."""


@dataclass(frozen=True)
class Exported:
    """A script.

    Attributes:
        text: The script.
        differences: Where it differs from the scenario, a line each. The comments at its head list
            them as well.
    """

    text: str
    differences: tuple[str, ...]


def export(scenario: _core.Scenario, to: Target) -> Exported:
    """The script for a scenario: a shell script for ``"tc"``, or a Python script for ``"mininet"``.

    Raises:
        InputError: if the scenario is too large for a script.
    """
    settings = scenario.settings
    network = of_scenario(settings)
    differences = [*words.differences(settings)]
    if to == "mininet":
        differences += mininet.differences(network)
        return Exported(mininet.script(network, differences), tuple(differences))
    return Exported(tc.script(network, differences), tuple(differences))
