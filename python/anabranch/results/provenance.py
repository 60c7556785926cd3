"""Provenance of results: the software, the host and the command that made them."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.words import counted

_SOURCES = (
    "batches/reduction.py",
    "live/guest.py",
    "live/lab.py",
    "live/run.py",
    "live/vm.py",
    "results/metrics.py",
    "runs/run.py",
)
"""Files of this package that affect the numbers, besides the compiled core."""


@dataclass(frozen=True)
class Build:
    """The build that makes and reduces runs. Equal builds give equal numbers."""

    version: str
    sources: str
    """SHA-256 of the Python files that affect the numbers."""
    platform: str
    core: str
    """SHA-256 of the compiled core."""

    def makes_the_same_runs_as(self, other: Build) -> bool:
        """Whether both builds have the same sources, as far as platforms can be compared."""
        if self.platform != other.platform:
            return (self.version, self.sources) == (other.version, other.sources)
        return self == other

    def text(self) -> str:
        """The build in a few words."""
        return f"{self.version}, core {self.core[:8]}, sources {self.sources[:8]}"


@functools.cache
def build() -> Build:
    """The build of the running package."""
    package = Path(__file__).parents[1]
    sources = b"".join((package / name).read_bytes() for name in _SOURCES)
    return Build(
        version=_core.__version__,
        sources=hashlib.sha256(sources).hexdigest(),
        platform=f"{sys.platform}-{platform.machine()}",
        core=hashlib.sha256(Path(str(_core.__file__)).read_bytes()).hexdigest(),
    )


def describe_host() -> dict[str, Any]:
    """Version of the package, commit, command line, and the machine."""
    return {
        "version": _core.__version__,
        "commit": commit(),
        "command": _command(),
        "host": platform.node(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _command() -> str:
    """The command line. A script that calls this package may have arguments that are not UTF-8."""
    words = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    return words.encode(errors="backslashreplace").decode()


def commit() -> str | None:
    """The commit of the source tree that contains this package, or `None` without one.

    Ends in ``+changes`` if tracked files differ from the commit.
    """
    here = Path(__file__).resolve().parent
    root = next((each for each in here.parents if _is_source_tree(each)), None)
    if root is None:
        return None
    head = _git(root, "rev-parse", "--short=12", "HEAD")
    if not head:
        return None
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{head}+changes" if changed else head


def combined_digest(digests: list[str]) -> str:
    """One digest of 12 hexadecimal digits over the digests of many runs."""
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:12]


def digest(about: Mapping[str, Any]) -> tuple[str, str]:
    """The name and the value of a digest over all runs: the run's own digest if there is one run.

    The command `run` prints the same digest.
    """
    digests = [run["digest"] for run in about["runs"]]
    if len(digests) == 1:
        return "digest of the run", digests[0]
    return "combined digest of all runs", combined_digest(digests)


def effort(about: Mapping[str, Any]) -> str:
    """The number of runs and their cost, from a provenance."""
    found = about.get("runs_found")  # folders of earlier versions lack this and the keys below
    total = len(about["runs"])
    words = counted(total, "run")
    if found == total:
        words += ", all finished earlier"
    else:
        before = f", {found:,} of them finished earlier," if found else ""
        words += f"{before} in {about['wall_s']:.1f} s"
    if not (about.get("cpu_s") and about.get("data_segments")):
        return words
    rate = about["data_segments"] / about["cpu_s"] / 1e6
    return (
        f"{words} · all runs: {about['cpu_s']:,.1f} CPU s, {about['data_segments']:,} data "
        f"segments, {rate:.2f} M per CPU s"
    )


def _is_source_tree(folder: Path) -> bool:
    return (folder / "crates" / "anabranch-py").is_dir() and (folder / ".git").exists()


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
