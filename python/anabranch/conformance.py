"""Packet scripts: what a TCP stack must send, segment by segment.

A script is played against the engine in virtual time, or against this host's kernel. The language
is a subset of packetdrill's; docs/conformance.md describes it.
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
from anabranch.live.lab import at_priority

Verdict = Literal["ok", "failed", "differs", "skipped"]

_WORDS: dict[Verdict, str] = {
    "ok": "ok",
    "failed": "FAILED",
    "differs": "differs",
    "skipped": "skipped",
}


@dataclass(frozen=True)
class Result:
    """What playing one script has shown."""

    file: str
    shows: str
    """The first comment of the script: what it shows, and the clause."""
    verdict: Verdict
    """``differs`` is a difference of Linux that the script announces."""
    reason: str | None
    report: str | None
    """What failed: the expected segment, what came instead, and what happened before."""
    failure: dict[str, Any] | None
    """The parts of the report."""
    log: list[str]
    """Every segment and call with its time, in the notation of scripts."""


def find(paths: Iterable[Path]) -> list[Path]:
    """The scripts among `paths`: files, and the ``.pkt`` files in folders at any depth, sorted.

    Raises:
        InputError: if a path does not exist, or a folder holds no script.
    """
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob("*.pkt")) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"{path}: no .pkt file in this folder; name one that holds scripts")
        found.extend(inside)
    for path in found:
        if not path.is_file():
            raise InputError(f"{path}: no such file or folder; name .pkt files or folders of them")
    return found


def run(file: Path, *, live: bool = False, platform: str | None = None) -> Result:
    """Play one script against the engine, or with `live` against this host's kernel.

    Raises:
        ScriptError: if the script is wrong.
        InputError: if it cannot be read, or the system refuses what a live run needs.
    """
    try:
        text = file.read_text(encoding="utf-8")
        played = at_priority(_core.conform, text, os.fspath(file), platform, live)
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: {error}") from error
    except OSError as error:
        raise InputError(f"{file}: {error}; see: anabranch doctor") from error
    return Result(**played)


def text(result: Result, *, verbose: bool = False) -> str:
    """One line, and below it what there is to say."""
    reason = "" if result.verdict == "failed" or result.reason is None else f": {result.reason}"
    lines = [f"{_WORDS[result.verdict]:<7} {result.file}{reason}"]
    if verbose:
        lines.extend(result.log)
    if result.verdict == "failed" and result.report is not None:
        lines.append(result.report.rstrip("\n"))
    return "\n".join(lines)


def summary(results: Sequence[Result]) -> str:
    """How many scripts there are of each verdict."""
    counts = dict.fromkeys(_WORDS, 0)
    for result in results:
        counts[result.verdict] += 1
    words = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    return f"{len(results)} script{'' if len(results) == 1 else 's'}: {', '.join(words)}"


def to_json(results: Sequence[Result]) -> str:
    """All results, as a list of objects."""
    return json.dumps([asdict(result) for result in results], indent=2)
