"""Changes to a scenario from the command line: single keys and policies."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anabranch import _core
from anabranch.errors import InputError, ScenarioError, unknown
from anabranch.scenarios import custom, keys
from anabranch.scenarios.scenario import TomlTable, to_toml


@dataclass(frozen=True)
class Overrides:
    """Changes to apply to a scenario."""

    settings: Sequence[str] = ()
    """Keys and their values, each as ``KEY=VALUE``."""
    policies: Mapping[str, str] = field(default_factory=dict)
    """For each kind of policy that changes (`custom.KINDS`), a built-in name or ``FILE.py:CLASS``.

    The policies apply to all Multipath TCP connections, and congestion controls also to TCP
    connections. If connections have the user's own policy of this kind, another own policy replaces
    those only.
    """

    def __bool__(self) -> bool:
        return bool(self.settings or self.policies)

    def apply(self, toml: str, file: str, folder: str | os.PathLike[str] | None = None) -> str:
        """The changed scenario. Names of files in it are relative to `folder`, or to its file's.

        Raises:
            ScenarioError: if the scenario is wrong.
            InputError: if there is no such key or policy, or no connection for the policy.
            PolicyError: if the file of a policy cannot be imported.
        """
        if not self:
            return toml
        normalised = tomllib.loads(_core.validate(toml, file, folder))
        table = keys.with_names(tomllib.loads(toml), normalised)
        settings = dict(map(_parsed, self.settings))
        table = _with_settings(table, file, settings, "--set ", folder)
        for kind, text in self.policies.items():
            table = _with_policy(table, file, normalised["connection"], kind, text)
        return to_toml(table)


def _with_policy(
    table: TomlTable, file: str, connections: Sequence[TomlTable], kind: str, text: str
) -> TomlTable:
    """The scenario with a policy of this kind, for each connection that takes it."""
    option = _option(kind)
    is_custom = custom.named_in(text) is not None or ":" in text
    if is_custom:
        name = text.removeprefix(custom.PREFIX)
        text = custom.value_of(custom.load(kind, name, f"{option} {text}"))
    else:
        _require_known(kind, text)
    takes = [kind == "congestion_control" or each["protocol"] == "mptcp" for each in connections]
    have_custom = [custom.named_in(each[kind]) is not None for each in connections]
    chosen = have_custom if is_custom and any(have_custom) else takes
    if not any(chosen):
        raise InputError(f"{option} {text}: no connection of {file} uses Multipath TCP")
    for index, is_chosen in enumerate(chosen):
        if is_chosen:
            table = keys.put(table, f"connection[{index}].{kind}", text, option)
            if is_custom and kind == "congestion_control":  # it ends slow start itself
                table = keys.put(table, f"connection[{index}].hystart", False, option)
    return table


def changed(toml: str, file: str, settings: Mapping[str, Any], folder: str | None = None) -> str:
    """The scenario with these keys set, such as ``{"path.wifi.rate": "20Mbit/s"}``.

    Raises:
        ScenarioError: if the scenario is wrong.
        InputError: if there is no such key, or a value is wrong. The message names the key.
    """
    normalised = tomllib.loads(_core.validate(toml, file, folder))
    table = keys.with_names(tomllib.loads(toml), normalised)
    return to_toml(_with_settings(table, file, settings, "", folder))


def _with_settings(
    table: TomlTable,
    file: str,
    settings: Mapping[str, Any],
    option: str,
    folder: str | os.PathLike[str] | None = None,
) -> TomlTable:
    """The scenario with the settings. Messages name the option and the key instead of the file."""
    for key, value in settings.items():
        table = keys.put(table, key, value, f"{option}{key}")
    if not settings:
        return table
    try:
        _core.validate(to_toml(table), file, folder)
    except ScenarioError as error:
        place, _, problem = str(error).removeprefix(f"{file}: ").partition(": ")
        wrong = keys.by_name(table, place)
        for key in (keys.by_name(table, each) for each in settings):
            if f"{wrong}.".startswith(f"{key}."):
                inner = wrong[len(key) + 1 :]
                words = f"{inner}: {problem}" if inner else problem
                raise InputError(f"{option}{key}: {words}") from error
            if key.startswith(f"{wrong}."):
                raise InputError(f"{option}{key}: {wrong}: {problem}") from error
        raise
    return table


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
    names = [str(each["name"]) for each in _core.policies() if each["sort"] == kind]
    if name not in names:
        raise unknown(
            f"{_option(kind)}: unknown {kind.replace('_', ' ')}", name, [*names, custom.FORM]
        )


def _option(kind: str) -> str:
    return "--" + kind.replace("_", "-")
