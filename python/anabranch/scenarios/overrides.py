"""Changes to a scenario from the command line: single keys and policies."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch import _core
from anabranch.errors import InputError, ScenarioError, unknown
from anabranch.scenarios import keys, own
from anabranch.scenarios.scenario import TomlTable, to_toml


@dataclass(frozen=True)
class Overrides:
    """Changes to apply to a scenario."""

    settings: Sequence[str] = ()
    """Keys and their values, each as ``KEY=VALUE``."""
    policies: Mapping[str, str] | None = None
    """For each kind of policy that changes (`own.KINDS`), a built-in name or ``FILE.py:CLASS``.

    The policies apply to all Multipath TCP connections, and congestion controls also to TCP
    connections. If connections ask for the user's own policy (``"own:NAME"``), it applies only to
    them.
    """

    def apply(self, toml: str, file: str) -> tuple[str, own.MadeBy | None]:
        """The changed scenario, and the factories of the user's own policies for each connection.

        Raises:
            ScenarioError: if the scenario is wrong.
            InputError: if there is no such key or policy, or no connection for the policy.
            PolicyError: if the file of a policy cannot be imported.
        """
        chosen = self.policies or {}
        classes = {
            kind: own.load(_option(kind), text) for kind, text in chosen.items() if _is_file(text)
        }
        built_in = {kind: name for kind, name in chosen.items() if kind not in classes}
        if self.settings or built_in:
            toml = self._changed(toml, file, built_in)
        return _with_classes(toml, file, classes) if classes else (toml, None)

    def _changed(self, toml: str, file: str, built_in: Mapping[str, str]) -> str:
        normalised = tomllib.loads(_core.validate(toml, file))
        table = keys.with_names(tomllib.loads(toml), normalised)
        table = _with_settings(table, file, dict(map(_parsed, self.settings)), "--set ")
        for kind, name in built_in.items():
            _require_known(kind, name)
            for index, connection in enumerate(normalised["connection"]):
                if kind == "congestion_control" or connection["protocol"] == "mptcp":
                    table = keys.put(table, f"connection[{index}].{kind}", name, _option(kind))
        return to_toml(table)


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
    folder: str | None = None,
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
        raise unknown(f"{_option(kind)}: unknown {kind.replace('_', ' ')}", name, [*names, _CLASS])


def _with_classes(
    toml: str, file: str, classes: Mapping[str, own.Factory]
) -> tuple[str, own.MadeBy]:
    """The scenario with the names of the user's own policies, and their factories."""
    named = _core.with_own(
        toml, file, **{kind: own.name_of(each) for kind, each in classes.items()}
    )
    made_by = [
        {kind: classes.get(kind) if _is_own(connection[kind]) else None for kind in own.KINDS}
        for connection in tomllib.loads(named)["connection"]
    ]
    for kind in classes:
        if not any(each[kind] for each in made_by):
            raise InputError(f"{_option(kind)}: no connection of {file} uses Multipath TCP")
    return named, made_by


_CLASS = "FILE.py:CLASS"


def _is_file(text: str) -> bool:
    return ":" in text or text.endswith(".py")


def _is_own(written: object) -> bool:
    return isinstance(written, str) and written.startswith(own.PREFIX)


def _option(kind: str) -> str:
    return "--" + kind.replace("_", "-")
