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
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from modulefinder import ModuleFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from anabranch.errors import InputError, PolicyError
from anabranch.words import listed

KINDS = ("scheduler", "congestion_control", "path_manager")
"""Scenario keys of the policies that users can write."""

PREFIX = "custom:"
FORM = "FILE.py:CLASS"
"""The form in which options and scenarios name a policy."""

_METHODS = {
    "scheduler": ("schedule",),
    "congestion_control": ("on_ack", "on_congestion_event", "on_external_reduction"),
    "path_manager": ("handle_event", "handle_timeout", "poll_action", "poll_timeout"),
}
"""The methods that a policy of each kind must have."""

Factory = Callable[..., Any]
"""A factory of policies, usually a class."""

MadeBy = list[dict[str, Factory | None]]
"""The factories of each connection's policies, by kind; `None` means a built-in policy."""


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


def classes_in(table: Mapping[str, Any]) -> MadeBy | None:
    """The classes that a scenario's table holds, for each connection; `None` if it holds none."""
    made_by = [
        {kind: made if callable(made := each.get(kind)) else None for kind in KINDS}
        for each in table.get("connection", ())
    ]
    return _unless_empty(made_by)


def named_in(value: object) -> str | None:
    """The name of the user's own policy in a scenario's value; `None` for a built-in policy."""
    if isinstance(value, str) and (value.startswith(PREFIX) or names_file(value)):
        return value.removeprefix(PREFIX).strip()
    return None


def names_file(text: str) -> bool:
    """Whether a text names a Python file and perhaps a class in it."""
    return ".py:" in text or text.endswith(".py")


def of_toml(toml: str, given: MadeBy | None = None) -> MadeBy | None:
    """The factories of the policies in a normalised scenario; `None` if all are built-in.

    `given` has the classes of a scenario that was made in Python.
    """
    if PREFIX not in toml:
        return None
    connections = tomllib.loads(toml)["connection"]
    made_by = [
        _of_connection(each, {} if given is None else given[index])
        for index, each in enumerate(connections)
    ]
    return _unless_empty(made_by)


def _unless_empty(made_by: MadeBy) -> MadeBy | None:
    return made_by if any(factory for each in made_by for factory in each.values()) else None


def _of_connection(
    connection: Mapping[str, Any], given: Mapping[str, Factory | None]
) -> dict[str, Factory | None]:
    made: dict[str, Factory | None] = dict.fromkeys(KINDS)
    for kind in KINDS:
        name = named_in(connection[kind])
        if name is not None:
            where = f'connection {connection["name"]}: {kind}: "{name}"'
            made[kind] = given.get(kind) or load(kind, name, where)
    return made


def describe(names: list[str], made_by: MadeBy) -> tuple[CustomPolicy, ...]:
    """The user's own policies that took part in a run with the connections `names`."""
    return tuple(
        CustomPolicy(connection, kind, _short_name(factory), *_source(factory))
        for connection, each in zip(names, made_by, strict=True)
        for kind, factory in each.items()
        if factory is not None
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


def require_picklable(made_by: MadeBy) -> None:
    """Reject policies that cannot be sent to other processes.

    Raises:
        InputError: if a factory cannot be pickled.
    """
    for each in made_by:
        for kind, factory in each.items():
            if factory is None:
                continue
            try:
                pickle.dumps(factory)
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                raise InputError(
                    f"{kind}={name_of(factory)}: other processes make runs with your own policies, "
                    f"but cannot import this policy: {error}; define it at the top level of a "
                    "module or script (no lambda, no class inside a function)"
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
    file = Path(folder, path).resolve()
    if not file.is_file():
        raise InputError(f"{where}: no file {file}; name a readable Python file")
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
            try:
                sha256 = _sha256(file)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise InputError(f"{file}: {reason}; name a readable Python file") from error
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
