"""Odd and damaged captures, texts and folders: one line of error, in little time and memory.

    python tests/python/mutants.py explain-captures --from 0 --count 100

makes one input for each seed, runs the command on it in this process, and prints a line for each
fault: a traceback, more than a line of error, or too much time. The process has a limit on its
memory. `test_mutants.py` calls this for a few seeds, and its slow tests for hundreds.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType

import anabranch
import captures
from anabranch.cli.main import run_command
from anabranch.results.folder import TABLES

MOST_BYTES = 6 << 30
"""Address space of the process; about 3 GiB of it are mapped when the libraries are loaded."""
ANALYZE_S, EXPLAIN_S, TWIN_S = 20, 20, 120
"""Limits of one command, in s of processor time: how busy the machine is does not count."""
RECORDED = Path(__file__).parent / "ss"

_WIFI = anabranch.NetworkPath(name="wifi", rate="8Mbit/s", delay="10ms", limit="40packets")
_LTE = anabranch.NetworkPath(name="lte", rate="2Mbit/s", delay="30ms", limit="40packets")
_LINUX = {"kind": "linux", "buffers": "socket"}
_CONNECTIONS = (
    anabranch.Connection(name="main", workload=anabranch.Bulk(), send_buffer="200KiB"),
    anabranch.Connection(
        name="main",
        workload=anabranch.Bulk(size="400kB"),
        host=_LINUX,
        scheduler="linux",
        congestion_control="cubic_linux",
    ),
    anabranch.Connection(name="main", workload=anabranch.Cbr(rate="1Mbit/s")),
)


@cache
def wholes() -> list[list[captures.Packet]]:
    """Good captures of about a second each: a full buffer, a finished transfer, and blocks."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            captures.of_run(
                Path(folder),
                anabranch.Scenario(
                    name="short", duration="1500ms", paths=(_WIFI, _LTE), connections=(each,)
                ),
            )
            for each in _CONNECTIONS
        ]


def _cut_capture(draw: random.Random, folder: Path) -> list[str]:
    file = folder / "cut.pcap"
    file.write_bytes(captures.pcap(captures.cut(draw, draw.choice(wholes()))))
    return [str(file)]


def _damaged_capture(draw: random.Random, folder: Path) -> list[str]:
    file = folder / "damaged.pcap"
    file.write_bytes(captures.damaged(draw, draw.choice(wholes())))
    return [str(file)]


def _capture(draw: random.Random, folder: Path) -> list[str]:
    return draw.choice((_cut_capture, _damaged_capture))(draw, folder)


def _analysed(draw: random.Random, folder: Path) -> list[str]:
    """A capture, and the folder for its report."""
    return [*_capture(draw, folder), "--out", str(folder / "report")]


def _text(draw: random.Random, folder: Path) -> list[str]:
    """The output of ss or nstat with other words, numbers, lines or bytes."""
    source = draw.choice(sorted(RECORDED.glob("*.txt")))
    text = source.read_text(encoding="utf-8")
    for _ in range(draw.choice((1, 3, 30))):
        text = draw.choice(_TEXT_CHANGES)(draw, text) or "\n"
    data = bytearray(text.encode())
    if draw.random() < 0.3:
        data[draw.randrange(len(data))] = draw.randrange(256)
    file = folder / "ss.txt"
    file.write_bytes(data)
    return [str(file)]


_ODD = (
    "", "-1", "0", "zz", "9" * 400, "1e999", "nan", "inf", "0x", ":", "(", "%", "\t", "\n", "\r",
    "\u0661", "²", "\0", "timer:(persist,41sec,0)", "token:0000(id:0)/7d4e6e06(id:0)", "write_seq:",
    "skmem:(tb,w)", "mptcp ESTAB 0 0 1:1 2:2\n",
)  # fmt: skip


def _other_word(draw: random.Random, text: str) -> str:
    words = text.split(" ")
    words[draw.randrange(len(words))] = draw.choice(_ODD)
    return " ".join(words)


def _other_value(draw: random.Random, text: str) -> str:
    parts = text.split(":")
    at = draw.randrange(len(parts))
    parts[at] = draw.choice(_ODD) + parts[at][draw.randint(0, 4) :]
    return ":".join(parts)


def _lines(draw: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    at, to = draw.randrange(len(lines) or 1), draw.randrange(len(lines) or 1)
    return "".join(lines[:at] + lines[to:])


def _cut_text(draw: random.Random, text: str) -> str:
    return text[: draw.randrange(len(text) or 1)]


_TEXT_CHANGES = (_other_word, _other_word, _other_value, _other_value, _lines, _cut_text)


@cache
def _results() -> dict[str, bytes]:
    """A results folder that can be explained, as contents by name."""
    scenario = anabranch.Scenario(
        name="short", duration="300ms", paths=(_WIFI, _LTE), connections=_CONNECTIONS[:1]
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "short.toml"
        file.write_text(scenario.to_toml(), encoding="utf-8")
        results = Path(folder) / "results"
        with contextlib.redirect_stdout(io.StringIO()):
            assert run_command(["run", str(file), "--out", str(results)]) == 0
        wanted = ("provenance.json", *(f"{name}.parquet" for name in TABLES))
        found = {name: (results / name).read_bytes() for name in wanted}
        (toml,) = (results / "scenarios").iterdir()
        return found | {f"scenarios/{toml.name}": toml.read_bytes()}


def _folder(draw: random.Random, folder: Path) -> list[str]:
    """A results folder one of whose files is damaged: its text, its bytes or its name."""
    results = folder / "results"
    chosen = draw.choice([*_results()])
    for name, contents in _results().items():
        file = results / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_other_contents(draw, contents) if name == chosen else contents)
    if draw.random() < 0.1:
        (results / chosen).unlink()
        if draw.random() < 0.5:
            (results / chosen).mkdir()
    return [str(results)]


def _other_contents(draw: random.Random, contents: bytes) -> bytes:
    data = bytearray(contents)
    for _ in range(draw.choice((1, 1, 5))):
        at = draw.randrange(len(data) or 1)
        change = draw.choice((b"\xff\xfe", b"", b"0", b"-1", b"null", b"[]", b'"', b"9" * 30))
        data[at : at + draw.choice((0, 1, 2, 8))] = change
    return bytes(data[: draw.randrange(len(data) or 1)] if draw.random() < 0.2 else data)


KINDS: dict[str, tuple[list[str], int, Callable[[random.Random, Path], list[str]]]] = {
    "explain-captures": (["explain", "--json"], EXPLAIN_S, _capture),
    "analyze-captures": (["analyze", "--json"], ANALYZE_S, _analysed),
    "explain-texts": (["explain"], EXPLAIN_S, _text),
    "explain-folders": (["explain"], EXPLAIN_S, _folder),
    "twin-captures": (["twin", "--json", "--seeds", "1"], TWIN_S, _capture),
}


@contextlib.contextmanager
def _limited(seconds: int) -> Iterator[None]:
    def stop(_: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def fault(kind: str, seed: int, folder: Path) -> tuple[str | None, int | None]:
    """Fault of the command on one input, and its exit status."""
    command, seconds, make = KINDS[kind]
    arguments = make(random.Random(f"{kind} {seed}"), folder)
    out, error = io.StringIO(), io.StringIO()
    try:
        with _limited(seconds), contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            status = run_command([*command, *arguments])
    except BaseException:
        return traceback.format_exc(), None
    told = [line for line in error.getvalue().splitlines() if line.startswith("anabranch: ")]
    if status == 0 and out.getvalue():
        return None, status
    if status in (1, 2) and len(told) == 1 and len(error.getvalue().splitlines()) == 1:
        return None, status
    return f"status {status}, {len(told)} lines: {error.getvalue()[:2000]}", status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=[*KINDS])
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--keep", type=Path, help="write the input of the first seed here")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    counts: Counter[int | None] = Counter()
    bad, longest = 0, (0.0, 0)
    for seed in range(options.first, options.first + options.count):
        with tempfile.TemporaryDirectory() as temporary:
            begun = time.process_time()
            wrong, status = fault(options.kind, seed, options.keep or Path(temporary))
            longest = max(longest, (time.process_time() - begun, seed))
        counts[status] += 1
        if wrong is not None:
            bad += 1
            print(f"{options.kind} seed {seed}: {wrong}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    statuses = ", ".join(f"{count} × status {status}" for status, count in counts.items())
    print(
        f"{options.kind}: {bad} faults of {options.count} ({statuses}); longest "
        f"{longest[0]:.1f} s (seed {longest[1]}), {peak} MiB"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
