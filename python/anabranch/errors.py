"""Exceptions that this package raises, mostly for mistakes that its user can correct."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class AnabranchError(Exception):
    """Base class of the package's exceptions. The message is one line for the user."""

    exit_status = 2


class InputError(AnabranchError):
    """A name, number, file or folder from the user is invalid or unusable."""


class UnwritableError(InputError):
    """A file or folder cannot be written.

    Attributes:
        path: The file or folder.
        problem: Why not, and what to do.
        option: The option of the command line that named it, if one did.
    """

    def __init__(self, path: Path, problem: str, option: str = "") -> None:
        super().__init__(path, problem, option)
        self.path, self.problem, self.option = path, problem, option

    def __str__(self) -> str:
        return f"{self.option} {self.path}: {self.problem}".lstrip()


class ScenarioError(AnabranchError, ValueError):
    """A scenario is wrong. The message names the file, the key, its value and a valid value.

    The compiled core raises this exception, because only the core parses scenarios.
    """


class ScriptError(AnabranchError, ValueError):
    """A packet script is wrong. The message names file, line, column and a valid form."""


class PolicyError(AnabranchError):
    """A policy written in Python raised an exception, which is the cause of this one."""


class IntegrityError(AnabranchError):
    """A run broke a guarantee of the engine, so its numbers are invalid."""

    exit_status = 1


class TooLateError(IntegrityError):
    """The emulator was late too often in every attempt at a live run."""


class NoTwinError(AnabranchError):
    """No scenario that was tried explains a capture."""

    exit_status = 1


def unknown(what: str, name: str, valid: Iterable[str], listed_by: str = "") -> InputError:
    """The error for an unknown name. It suggests the most similar valid name.

    It lists the valid names, or tells which command `listed_by` does.
    """
    valid = list(valid)
    near = difflib.get_close_matches(name, valid, n=1, cutoff=0.4)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    names = f"see {listed_by}" if listed_by else f"valid: {', '.join(valid) or 'none'}"
    return InputError(f'{what} "{visible(name)}"{hint} ({names})')


def visible(text: str) -> str:
    """The text, with an escape for each character that a terminal would not show."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
