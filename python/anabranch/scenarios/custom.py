"""The user's own policies in a scenario: their names, their files, and their errors.

A scenario names such a policy by file and class, as in ``scheduler = "my_scheduler.py:LowestRtt"``.
A normalised scenario has the whole name of the file
(``"custom:/home/u/my_scheduler.py:LowestRtt"``), so that every process finds it. A scenario that
was made in Python may also hold the class itself. Its text then only names the class
(``"custom:my_scheduler.LowestRtt"``), and the class is passed to the run.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from modulefinder import ModuleFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from anabranch import _core
from anabranch.errors import InputError, PolicyError, ScenarioError
from anabranch.files import reading
from anabranch.words import listed

KINDS = ("scheduler", "congestion_control", "path_manager")
"""Scenario keys of the policies that users can write."""

PREFIX = "custom:"
FORM = "FILE.py:CLASS"
"""The form in which options and scenarios name a policy."""
_READABLE = "name a readable Python file"

_METHODS = {
    "scheduler": ("schedule",),
    "congestion_control": ("on_ack", "on_congestion_event", "on_external_reduction"),
    "path_manager": ("handle_event", "handle_timeout", "poll_action", "poll_timeout"),
}
"""The methods that a policy of each kind must have."""

Factory = Callable[..., Any]
"""A factory of policies, usually a class."""

Policies = dict[str, Factory]
"""Factories of the user's own policies, by the names that scenarios have for them."""


@dataclass(frozen=True)
class CustomPolicy:
    """The user's own policy that took part in a run. The scenario alone cannot repeat the run."""

    connection: str
    kind: str
    """``"scheduler"``, ``"congestion_control"`` or ``"path_manager"``."""
    name: str
    file: str | None
    """The file that defines the policy; `None` if there is none."""
    sha256: str | None
    """SHA-256 of that file at the end of the run."""
    imports: tuple[tuple[str, str], ...] = ()
    """The files that it imports from its own folder, each with its SHA-256."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CustomPolicy:
        """The policy from its plain values, as results keep them."""
        imports = tuple((file, sha256) for file, sha256 in values.get("imports", ()))
        return cls(**{**values, "imports": imports})

    def text(self) -> str:
        """The policy and its source in one line."""
        source = "" if self.file is None else f", {self.file} (SHA-256 {self.sha256})"
        return f"{self.kind} {self.name} of connection {self.connection}{source}"


@dataclass(frozen=True)
class FromFile:
    """A class in the user's file. Other processes load the file again, if it is still the same."""

    file: str
    """The whole name of the file."""
    name: str
    sha256: str
    """SHA-256 of the file when it was loaded."""

    def __call__(self, *given: Any) -> Any:
        """Create a policy."""
        return self.made()(*given)

    def made(self) -> Factory:
        """The class itself.

        Raises:
            InputError: if the file has changed since.
        """
        loaded = _MODULES.of(Path(self.file))
        if loaded.sha256 != self.sha256:
            raise InputError(
                f"{self.file}: the file changed while runs were made; repeat the command"
            )
        made: Factory = getattr(loaded.module, self.name)
        return made


def name_of(factory: Factory) -> str:
    """The name of a factory's policies in scenarios."""
    if isinstance(factory, FromFile):
        return f"{factory.file}:{factory.name}"
    if isinstance(factory, functools.partial):
        positional = [repr(each) for each in factory.args]
        named = [f"{key}={value!r}" for key, value in factory.keywords.items()]
        return f"{name_of(factory.func)}({', '.join(positional + named)})"
    named_by = factory if hasattr(factory, "__qualname__") else type(factory)
    return f"{named_by.__module__}.{named_by.__qualname__}"


def value_of(factory: Factory) -> str:
    """The value of a scenario's key for `factory`."""
    return PREFIX + name_of(factory)


def require_factory(kind: str, factory: object) -> None:
    """Check that a scenario's value can make a policy.

    Raises:
        InputError: if it cannot.
    """
    if not callable(factory):
        raise InputError(
            f"{kind}={factory!r}: give a name, or the class of your policy; each connection "
            "creates its own object"
        )


def classes_in(table: Mapping[str, Any]) -> Policies:
    """The classes that a scenario's table holds.

    Raises:
        InputError: if two of them have the same name.
    """
    connections = table.get("connection", ())
    return classes_among(each.get(kind) for each in connections for kind in KINDS)


def classes_among(values: Iterable[object], known: Mapping[str, Factory] | None = None) -> Policies:
    """The classes among the values of keys, and the known ones.

    Raises:
        InputError: if two of them have the same name.
    """
    found: Policies = {**(known or {})}
    for value in values:
        if callable(value):
            name = name_of(value)
            if not _is_same(found.setdefault(name, value), value):
                raise InputError(f"two of your policies have the name {name}; rename one of them")
    return found


def _is_same(a: Factory, b: Factory) -> bool:
    if isinstance(a, functools.partial) and isinstance(b, functools.partial):
        return (a.func, a.args, a.keywords) == (b.func, b.args, b.keywords)
    return a == b


def pairs(settings: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Keys and values, with the names of classes in their place."""
    return [(key, value_of(value) if callable(value) else value) for key, value in settings.items()]


def without_classes(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table with the names of classes in their place."""
    connections = [
        {key: value_of(value) if callable(value) else value for key, value in each.items()}
        for each in table.get("connection", ())
    ]
    return {**table, **({"connection": connections} if connections else {})}


def found(scenario: _core.Scenario) -> _core.Scenario:
    """The scenario with the classes of all policies that it names.

    Raises:
        ScenarioError: if it names a policy without a file, and has no class for it.
        InputError: if a file cannot be read, or lacks the class.
        PolicyError: if a file cannot be imported.
    """
    named = scenario.custom_policies()
    if not named:
        return scenario
    policies: Policies = {}
    for index, kind, name in named:
        where = f'{scenario.file}: connection[{index}].{kind}: "{_written(name, scenario.file)}"'
        factory = scenario.policies.get(name)
        if factory is None and not names_file(name):
            raise ScenarioError(
                f'{where}: your own policy needs a file; write {kind} = "{FORM}", or name the '
                f"class with --{kind.replace('_', '-')} {FORM}"
            )
        policies[name] = factory or load(kind, name, where)
    return scenario.with_policies(policies)


def named_in(value: object) -> str | None:
    """The name of the user's own policy in a scenario's value; `None` for a built-in policy."""
    if isinstance(value, str) and (value.startswith(PREFIX) or names_file(value)):
        return value.removeprefix(PREFIX).strip()
    return None


def names_file(text: str) -> bool:
    """Whether a text names a Python file and perhaps a class in it."""
    return ".py:" in text or text.endswith(".py")


def _written(name: str, file: str) -> str:
    """The name of a policy, relative to the scenario's folder if its file lies there."""
    folder = os.path.join(os.path.realpath(os.path.dirname(file)), "")
    return name.removeprefix(folder)


def describe(scenario: _core.Scenario) -> tuple[CustomPolicy, ...]:
    """The user's own policies that take part in runs of the scenario."""
    connections, policies = scenario.settings["connection"], scenario.policies
    return tuple(
        CustomPolicy(connections[index]["name"], kind, _short_name(factory), *_source(factory))
        for index, kind, name in scenario.custom_policies()
        if (factory := policies.get(name)) is not None
    )


def _short_name(factory: Factory) -> str:
    """The name of a factory as in Python: its module and its class."""
    if isinstance(factory, FromFile):
        return f"{Path(factory.file).stem}.{factory.name}"
    return name_of(factory)


def _source(factory: Factory) -> tuple[str | None, str | None, tuple[tuple[str, str], ...]]:
    """The file that defines a factory, its SHA-256, and the files that it imports."""
    while isinstance(factory, functools.partial):
        factory = factory.func
    try:
        file = factory.file if isinstance(factory, FromFile) else _file_of(factory)
        if file is None:
            return None, None, ()
        return file, _sha256(Path(file)), _imports(file)
    except (OSError, TypeError):
        return None, None, ()


def _file_of(factory: Factory) -> str | None:
    plain = hasattr(factory, "__code__") or isinstance(factory, type)
    return inspect.getsourcefile(factory if plain else type(factory))


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _imports(file: str) -> tuple[tuple[str, str], ...]:
    """The files that a file imports from its own folder, with what they import, and the SHA-256s.

    The results of a run depend on them as well.
    """
    finder = ModuleFinder(path=[str(Path(file).parent)])
    try:
        finder.run_script(file)
    except (SyntaxError, UnicodeDecodeError, OSError):
        return ()
    names = (getattr(module, "__file__", None) for module in finder.modules.values())
    found = {str(name) for name in names if name}
    return tuple((each, _sha256(Path(each))) for each in sorted(found - {file}))


def require_picklable(scenario: _core.Scenario) -> None:
    """Reject policies that cannot be sent to other processes.

    Raises:
        InputError: if a factory cannot be pickled.
    """
    for name, factory in scenario.policies.items():
        try:
            pickle.dumps(factory)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError(
                f"{name}: other processes make runs with your own policies, but cannot import this "
                f"policy: {error}; define it at the top level of a module or script (no lambda, no "
                "class inside a function)"
            ) from error


def load(kind: str, text: str, where: str, folder: str | os.PathLike[str] = os.curdir) -> FromFile:
    """The class that ``FILE.py:CLASS`` names, as a policy of this kind.

    FILE is relative to `folder`. `where` is the option or the key with the text, for messages.

    Raises:
        InputError: if there is no such file, or no such class in it, or if it is no such policy.
        PolicyError: if the file cannot be imported.
    """
    path, _, name = text.rpartition(":")
    if not path or not name:
        raise InputError(f"{where}: write {FORM}: a Python file, and the name of your class in it")
    with reading(where, _READABLE):
        file = Path(os.path.realpath(Path(folder, path)))
        if not file.is_file():
            raise InputError(f"{where}: no file {file}; {_READABLE}")
    if file.suffix != ".py":
        raise InputError(f"{where}: not a Python file; its name must end in .py")
    loaded = _MODULES.of(file)
    found = getattr(loaded.module, name, None)
    if not callable(found):
        raise InputError(f"{where}: no class {name} in {file}{_classes(loaded.module)}")
    _require_kind(kind, found, where)
    return FromFile(str(file), name, loaded.sha256)


def _require_kind(kind: str, found: Factory, where: str) -> None:
    """Check the methods of a class before the first run. A function is called in the run only."""
    if not isinstance(found, type):
        return
    abstract = getattr(found, "__abstractmethods__", ())
    lacking = [each for each in _METHODS[kind] if not hasattr(found, each) or each in abstract]
    if lacking:
        noun = kind.replace("_", " ")
        raise InputError(
            f"{where}: {found.__name__} is not a {noun}: it lacks {listed(lacking)}; a "
            f"{noun} is a class with {listed(_METHODS[kind])}"
        )


def _classes(module: ModuleType) -> str:
    defined = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    return f"; it has {listed(defined)}" if defined else "; it defines no class"


@dataclass(frozen=True)
class _Loaded:
    module: ModuleType
    sha256: str


class _Modules:
    """The users' files that this process has loaded. A file runs again only if it has changed."""

    def __init__(self) -> None:
        self._loaded: dict[Path, _Loaded] = {}
        self._lock = threading.RLock()

    def of(self, file: Path) -> _Loaded:
        with self._lock:
            with reading(file, _READABLE):
                sha256 = _sha256(file)
            known = self._loaded.get(file)
            if known is None or known.sha256 != sha256:
                present = sys.modules.get(file.stem)
                is_it = known is None and getattr(present, "__file__", None) == str(file)
                module = present if present is not None and is_it else _executed(file, sha256)
                known = self._loaded[file] = _Loaded(module, sha256)
            return known


_MODULES = _Modules()


def _executed(file: Path, sha256: str) -> ModuleType:
    """The module of a file, which can import other modules from its own folder.

    It does not take the place of a module with the same name.
    """
    name = f"{file.stem}@{sha256[:8]}" if file.stem in sys.modules else file.stem
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None, "the name ends in .py"
    assert spec.loader is not None, "the name ends in .py"
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also a SystemExit
        del sys.modules[name]
        raise PolicyError(f"{file}: {type(error).__name__}: {error}") from error
    return module
