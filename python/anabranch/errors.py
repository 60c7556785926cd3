"""What this package raises when its user can do something about it."""


class AnabranchError(Exception):
    """Base of the package's own exceptions; its message is one line for the user.

    Errors in a scenario are `anabranch.ScenarioError`, a `ValueError` that the compiled core
    raises, because the core alone reads scenarios.
    """

    exit_status = 2


class InputError(AnabranchError):
    """A name, a number, a file or a folder that was given cannot be used."""


class PolicyError(AnabranchError):
    """A policy written in Python raised an exception, which is this one's cause."""


class IntegrityError(AnabranchError):
    """A run broke a promise of the engine, so its numbers must not be believed."""

    exit_status = 1
