"""Addresses that open scenarios in the playground."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence

PORT = 8684
"""Usual port of the playground's local server, after RFC 8684, Multipath TCP."""

_PLAYGROUND = f"http://127.0.0.1:{PORT}/"
"""Reports are files and have no server, so their links lead to that of `anabranch play`."""

_LONGEST = 32_000
"""Longest address in a report, in characters: a scenario may contain long traces."""


def address(toml: str, file: str, seed: int) -> str | None:
    """The address of a scenario in the playground; `None` if it would be too long."""
    found = _PLAYGROUND + fragment([(toml, file, seed)])
    return found if len(found) <= _LONGEST else None


def fragment(sessions: Sequence[tuple[str, str, int]]) -> str:
    """The end of an address that opens sessions: scenario (TOML), file name and seed of each."""
    text = json.dumps([[toml, file, str(seed)] for toml, file, seed in sessions])
    deflate = zlib.compressobj(wbits=-15)
    compressed = deflate.compress(text.encode()) + deflate.flush()
    return "#run=" + base64.urlsafe_b64encode(compressed).decode().rstrip("=")
