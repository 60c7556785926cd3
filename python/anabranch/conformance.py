"""Packet scripts: tests of a TCP stack that specify each segment it must send.

A script is played against the engine in virtual time, or against this host's kernel. The script
language is a subset of packetdrill's; docs/conformance.md describes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from anabranch import _core
from anabranch.errors import InputError
from anabranch.files import reading
from anabranch.live.lab import at_priority

Verdict = Literal["ok", "failed", "differs", "skipped"]

_WORDS: dict[Verdict, str] = {
    "ok": "ok",
    "failed": "FAILED",
    "differs": "differs",
    "skipped": "skipped",
}

_SCRIPTS = "name .pkt files or folders of them"


@dataclass(frozen=True)
class Result:
    """The result of playing one script."""

    file: str
    shows: str
    """The first comment of the script: the behaviour that it tests, and the RFC clause."""
    verdict: Verdict
    """``differs`` means a difference of Linux that the script declares."""
    reason: str | None
    report: str | None
    """The failure: the expected segment, the actual one, and the events before it."""
    failure: dict[str, Any] | None
    """The parts of the report."""
    log: list[str]
    """Every segment and call with its time, in script notation."""


def find(paths: Iterable[Path]) -> list[Path]:
    """The scripts in `paths`: files as given, and all ``.pkt`` files below folders, sorted.

    Raises:
        InputError: if a path does not exist, or a folder contains no script.
    """
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob("*.pkt")) if os.path.isdir(path) else [path]
        if not inside:
            raise InputError(f"{path}: no .pkt file in this folder; name a folder of scripts")
        found.extend(inside)
    for path in found:
        with reading(path, _SCRIPTS):
            if not path.is_file():
                raise InputError(f"{path}: no such file or folder; {_SCRIPTS}")
    return found


def run(file: Path, *, live: bool = False, platform: str | None = None) -> Result:
    """Play one script against the engine or, with `live`, against this host's kernel.

    Raises:
        ScriptError: if the script is wrong.
        InputError: if the script cannot be read, or this host does not support live runs.
    """
    with reading(file, _SCRIPTS):
        text = file.read_text(encoding="utf-8")
    try:
        played = at_priority(_core.conform, text, os.fspath(file), platform, live)
    except OSError as error:
        raise InputError(f"{file}: {error}; see: anabranch doctor") from error
    return Result(**played)


def text(result: Result, *, verbose: bool = False) -> str:
    """The verdict in one line, followed by the log if `verbose`, and by the report of a failure."""
    reason = "" if result.verdict == "failed" or result.reason is None else f": {result.reason}"
    lines = [f"{_WORDS[result.verdict]:<7} {result.file}{reason}"]
    if verbose:
        lines.extend(result.log)
    if result.verdict == "failed" and result.report is not None:
        lines.append(result.report.rstrip("\n"))
    return "\n".join(lines)


def summary(results: Sequence[Result]) -> str:
    """The number of scripts with each verdict."""
    counts = dict.fromkeys(_WORDS, 0)
    for result in results:
        counts[result.verdict] += 1
    words = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    return f"{len(results)} script{'' if len(results) == 1 else 's'}: {', '.join(words)}"


def to_json(results: Sequence[Result]) -> str:
    """All results, as a list of objects."""
    return json.dumps([asdict(result) for result in results], indent=2)
