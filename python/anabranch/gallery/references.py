"""The sources of entries, read from ``references.toml``."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from anabranch.errors import InputError


def _read() -> dict[str, str]:
    text = files("anabranch.gallery").joinpath("references.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


SOURCES = _read()
"""The sources, by the short names that claims and tables of parameters use."""


def cited(*names: str) -> tuple[str, ...]:
    """Sources by their short names, such as ``"NSDI'12"``.

    Raises:
        InputError: if ``references.toml`` does not have one of them.
    """
    for name in names:
        if name not in SOURCES:
            raise InputError(f'references.toml has no source "{name}"')
    return tuple(SOURCES[name] for name in names)
