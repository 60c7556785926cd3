"""What this package raises when its user can do something about it, and how it says so."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AnabranchError(Exception):
    """Base of the package's own exceptions; its message is one line for the user."""

    exit_status = 2


class InputError(AnabranchError):
    """A name, a number, a file or a folder that was given cannot be used."""


class ScenarioError(AnabranchError, ValueError):
    """A scenario is wrong: the message names file, key, value and what would be right.

    The compiled core raises it, because the core alone reads scenarios.
    """


class ScriptError(AnabranchError, ValueError):
    """A packet script is wrong: the message names file, line, column, and what would be right."""


class PolicyError(AnabranchError):
    """A policy written in Python raised an exception, which is this one's cause."""


class IntegrityError(AnabranchError):
    """A run broke a promise of the engine, so its numbers must not be believed."""

    exit_status = 1


class TooLateError(IntegrityError):
    """The emulator was late too often in each attempt at a live run."""


def unknown(what: str, name: str, valid: Iterable[str]) -> InputError:
    """The error for a name that nothing has: names the nearest one that something has."""
    valid = list(valid)
    near = difflib.get_close_matches(name, valid, n=1, cutoff=0.4)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    return InputError(f'{what} "{name}"{hint} (valid: {", ".join(valid) or "none"})')
