"""Changes to a scenario from the command line: single keys and policies."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from anabranch import _core
from anabranch.errors import InputError, unknown
from anabranch.scenarios import custom


@dataclass(frozen=True)
class Overrides:
    """Changes to apply to a scenario."""

    OPTION: ClassVar[str] = "--set "
    """Prefix of a key in messages about it."""

    settings: Sequence[str] = ()
    """Keys and their values, each as ``KEY=VALUE``."""
    policies: Mapping[str, str] = field(default_factory=dict)
    """For each kind of policy that changes (`custom.KINDS`), a built-in name or ``FILE.py:CLASS``.

    The policies apply to all Multipath TCP connections, and congestion controls also to TCP
    connections. If connections have the user's own policy of this kind, another custom policy
    replaces those only.
    """

    def __bool__(self) -> bool:
        return bool(self.settings or self.policies)

    def pairs(self) -> list[tuple[str, Any]]:
        """The keys and their values.

        Raises:
            InputError: if a setting is not ``KEY=VALUE``.
        """
        return [*map(_parsed, self.settings)]

    def with_policies(self, scenario: _core.Scenario) -> _core.Scenario:
        """The scenario with the policies.

        Raises:
            InputError: if there is no such policy, or no connection for it.
            PolicyError: if the file of a policy cannot be imported.
        """
        for kind, text in self.policies.items():
            settings = [*_settings(scenario, kind, text)]
            scenario = scenario.with_settings(settings, f"{_option(kind)} {text}: ")
        return scenario


def _settings(scenario: _core.Scenario, kind: str, text: str) -> Iterator[tuple[str, Any]]:
    """The keys for a policy of this kind, for each connection that takes it."""
    option, value = _option(kind), text
    is_custom = custom.named_in(text) is not None or ":" in text
    if is_custom:
        value = custom.value_of(
            custom.load(kind, text.removeprefix(custom.PREFIX), f"{option} {text}")
        )
    else:
        _require_known(kind, text)
    connections = scenario.settings["connection"]
    takes = [kind == "congestion_control" or each["protocol"] == "mptcp" for each in connections]
    have_custom = [custom.named_in(each[kind]) is not None for each in connections]
    chosen = have_custom if is_custom and any(have_custom) else takes
    if not any(chosen):
        raise InputError(f"{option} {text}: no connection of {scenario.file} uses Multipath TCP")
    for index, is_chosen in enumerate(chosen):
        if is_chosen:
            yield f"connection[{index}].{kind}", value
            if is_custom and kind == "congestion_control":  # it ends slow start itself
                yield f"connection[{index}].hystart", False


def _parsed(setting: str) -> tuple[str, Any]:
    """The key and the value of ``KEY=VALUE``."""
    key, equals, value = setting.partition("=")
    if not equals or not key.strip():
        raise InputError(f"--set {setting}: write KEY=VALUE, such as path.wifi.rate=20Mbit/s")
    return key.strip(), _value(value.strip())


def _value(text: str) -> Any:
    """A value written in TOML, or as text without quotation marks."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return text


def _require_known(kind: str, name: str) -> None:
    names = [str(each["name"]) for each in _core.policies() if each["kind"] == kind]
    if name not in names:
        raise unknown(
            f"{_option(kind)}: unknown {kind.replace('_', ' ')}", name, [*names, custom.FORM]
        )


def _option(kind: str) -> str:
    return "--" + kind.replace("_", "-")
