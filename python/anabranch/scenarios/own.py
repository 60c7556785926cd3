"""The user's own policies in a scenario: their names, sources and errors.

A scenario file can only name such a policy, as in ``scheduler = "own:my_scheduler.LowestRtt"``. The
policy itself is passed to the run.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.errors import InputError, PolicyError

KINDS = ("scheduler", "congestion_control", "path_manager")
"""Scenario keys of the policies that users can write."""

PREFIX = "own:"

Factory = Callable[..., Any]
"""A factory of policies, usually a class."""

MadeBy = list[dict[str, Factory | None]]
"""The factories of each connection's policies, by kind; `None` means a built-in policy."""


@dataclass(frozen=True)
class OwnPolicy:
    """The user's own policy that took part in a run. The scenario alone cannot repeat the run."""

    connection: str
    kind: str
    """``"scheduler"``, ``"congestion_control"`` or ``"path_manager"``."""
    name: str
    file: str | None
    """The file that defines the policy; `None` if there is none."""
    sha256: str | None
    """SHA-256 of that file at the end of the run."""

    def text(self) -> str:
        """The policy and its source in one line."""
        source = "" if self.file is None else f", {self.file} (SHA-256 {self.sha256})"
        return f"{self.kind} {self.name} of connection {self.connection}{source}"


def name_of(factory: Factory) -> str:
    """The name of a factory's policies in scenarios."""
    if isinstance(factory, functools.partial):
        positional = [repr(each) for each in factory.args]
        named = [f"{key}={value!r}" for key, value in factory.keywords.items()]
        return f"{name_of(factory.func)}({', '.join(positional + named)})"
    named_by = factory if hasattr(factory, "__qualname__") else type(factory)
    return f"{named_by.__module__}.{named_by.__qualname__}"


def value_of(kind: str, factory: object) -> str:
    """The value of a scenario's key for `factory`.

    Raises:
        InputError: if `factory` cannot make a policy.
    """
    if callable(factory):
        return PREFIX + name_of(factory)
    raise InputError(
        f"{kind}={factory!r}: give a name, or the class of your policy; each connection creates "
        "its own object"
    )


def describe(names: list[str], made_by: MadeBy) -> tuple[OwnPolicy, ...]:
    """The user's own policies that took part in a run with the connections `names`."""
    return tuple(
        OwnPolicy(connection, kind, name_of(factory), *_source(factory))
        for connection, each in zip(names, made_by, strict=True)
        for kind, factory in each.items()
        if factory is not None
    )


def _source(factory: Factory) -> tuple[str | None, str | None]:
    """The file that defines a factory, and its SHA-256."""
    while isinstance(factory, functools.partial):
        factory = factory.func
    try:
        file = inspect.getsourcefile(factory if hasattr(factory, "__code__") else _class(factory))
        if file is None:
            return None, None
        return file, hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except (OSError, TypeError):
        return None, None


def _class(factory: Factory) -> type:
    return factory if isinstance(factory, type) else type(factory)


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


def load(option: str, text: str) -> Factory:
    """The class that ``FILE.py:CLASS`` names. `option` is the command-line option in messages.

    Raises:
        InputError: if there is no such file, or no such class in it.
        PolicyError: if the file cannot be imported.
    """
    path, _, name = text.rpartition(":")
    if not path or not name:
        raise InputError(f"{option} {text}: write FILE.py:CLASS")
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{option} {text}: no file {path}; name a readable Python file")
    module = _module(file)
    found: Factory | None = getattr(module, name, None)
    if callable(found):
        return found
    raise InputError(f"{option} {text}: no class {name} in {path}{_classes(module)}")


def _module(file: Path) -> Any:
    """Import the module in `file`. It can import other modules from its own folder."""
    spec = importlib.util.spec_from_file_location(file.stem, file.resolve())
    if spec is None or spec.loader is None:
        raise InputError(f"{file}: not a Python file; its name must end in .py")
    present = sys.modules.get(file.stem)
    if present is not None and getattr(present, "__file__", None) != spec.origin:
        raise InputError(f"{file}: another module is called {file.stem}; rename the file")
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also a SystemExit
        del sys.modules[file.stem]
        raise PolicyError(f"{file}: {type(error).__name__}: {error}") from error
    return module


def _classes(module: Any) -> str:
    defined = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    return f" (classes: {', '.join(defined)})" if defined else ""
