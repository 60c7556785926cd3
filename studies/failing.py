"""Paths that fail: Linux of this host, in real time, compared with virtual time.

    python studies/failing.py --seed 20261201 [--count 36] [--runs FOLDER]
        [--json docs/results/calibration.json]

Runs the scenarios of `anabranch calibrate --random COUNT --failing --seed SEED`: three times
with Linux, which gives Linux's own spread, and once in virtual time. Scenarios with two paths also
run with all failures 20 and 40 ms later, and the medians over these times are compared. Needs root.
Takes an hour for 36 scenarios. The runs of Linux are kept in a folder, so that a later version of
the engine can be compared with them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measured import update

from anabranch.calibration import failing
from anabranch.calibration.case import Case
from anabranch.live.hosts import HERE

LINUX_SEEDS = (1, 2, 3)
LATER_MS = (20, 40)
"""Delays of all failures of a scenario with two paths."""
MOST_ATTEMPTS = 3


class Values(NamedTuple):
    """Results of a run that are compared."""

    stall_ms: float
    transfer_s: float | None
    """`None` for a stream, or if the transfer did not finish."""


class Deviation(NamedTuple):
    """The deviation of virtual time from the median of Linux, in %."""

    percent: float
    is_in_spread: bool


def run(file: Path, *options: str) -> Any:
    """The results of `anabranch run`."""
    command = [sys.executable, "-m", "anabranch", "run", str(file), "--json", *options]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def run_linux(file: Path, seed: int, kept: Path) -> Any:
    """The results of a valid live run, which are kept in a file."""
    if kept.exists():
        return json.loads(kept.read_text("utf-8"))
    for _ in range(MOST_ATTEMPTS):
        try:
            found = run(file, "--live", "--seed", str(seed))
        except subprocess.CalledProcessError as error:
            print(error.stderr.decode(), file=sys.stderr)
            continue
        if found["live"]["valid"]:
            kept.write_text(json.dumps(found), "utf-8")
            return found
    raise SystemExit(f"{file}: no valid live run in {MOST_ATTEMPTS} attempts")


def values(found: Any) -> Values:
    """The longest stall, and the time of a transfer."""
    (connection,) = found["connections"]
    is_done = connection["block_count"] == 1 and connection["completed"]
    bits = connection["bytes_delivered"] * 8
    return Values(
        connection["stall_ms"], bits / connection["goodput_mbps"] / 1e6 if is_done else None
    )


def deviation(virtual: float, linux: Sequence[float], all_: Sequence[float]) -> Deviation:
    """Of virtual time from the median of Linux, where `all_` are all runs of Linux."""
    percent = (virtual / float(np.median(linux)) - 1) * 100
    return Deviation(percent, min(all_) <= virtual <= max(all_))


def delayed(toml: str, ms: int) -> str:
    """A scenario whose failures begin and end later."""
    return re.sub(
        r'(\bat = )"([\d.]+)s"', lambda found: f'{found[1]}"{float(found[2]) + ms / 1e3:g}s"', toml
    )


def compare(case: Case, folder: Path) -> tuple[Deviation, Deviation | None]:
    """The deviations of the longest stall, and of the time of a transfer."""
    file = folder / f"{case.key}.toml"
    file.write_text(case.toml, "utf-8")
    virtual = values(run(file))
    linux = [
        values(run_linux(file, seed, folder / f"{case.key}-l{seed}.json")) for seed in LINUX_SEEDS
    ]
    stalls = [each.stall_ms for each in linux]
    stall = deviation(virtual.stall_ms, stalls, stalls)
    if case.toml.count("[[path]]") > 1:
        later = [_later(case, folder, ms) for ms in LATER_MS]
        virtual_ms = float(np.median([virtual.stall_ms, *(each[0] for each in later)]))
        linux_ms = [each[1] for each in later]
        stall = deviation(virtual_ms, [stalls[0], *linux_ms], [*stalls, *linux_ms])
    times = [each.transfer_s for each in linux if each.transfer_s is not None]
    is_finite = virtual.transfer_s is not None and len(times) == len(linux)
    time = deviation(virtual.transfer_s, times, times) if virtual.transfer_s and is_finite else None
    print(case.name, f"stall {stall.percent:+.1f} %", end="", flush=True)
    print(f", time {time.percent:+.1f} %" if time else "", flush=True)
    return stall, time


def _later(case: Case, folder: Path, ms: int) -> tuple[float, float]:
    """The longest stalls in virtual time and in Linux, if all failures begin later."""
    file = folder / f"{case.key}-s{ms}.toml"
    file.write_text(delayed(case.toml, ms), "utf-8")
    linux = run_linux(file, LINUX_SEEDS[0], file.with_suffix(".json"))
    return values(run(file)).stall_ms, values(linux).stall_ms


def row(name: str, found: Iterable[Deviation], p90_bound: float) -> list[str]:
    """A row of the table."""
    all_ = list(found)
    errors = np.array([abs(each.percent) for each in all_])
    worst = max(all_, key=lambda each: abs(each.percent)).percent
    beyond = [each for each in all_ if abs(each.percent) > p90_bound]
    inside = sum(each.is_in_spread for each in beyond)
    return [
        name,
        str(len(all_)),
        f"{np.median(errors):.1f} %",
        f"{np.percentile(errors, 90):.1f} %",
        f"{worst:+.0f} %".replace("-", "−"),
        f"{len(beyond)}, {inside} of them within",
    ]


def main() -> None:
    """Run, print and perhaps record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=36)
    parser.add_argument("--runs", type=Path, default=Path("results/failing"))
    parser.add_argument("--json", type=Path, help="File of results whose rows are replaced.")
    arguments = parser.parse_args()
    arguments.runs.mkdir(parents=True, exist_ok=True)
    cases = [each.for_machine(HERE) for each in failing.cases(arguments.count, arguments.seed)]
    found = [compare(case, arguments.runs) for case in cases]
    rows = [
        row("longest stall", (stall for stall, _ in found), 15),
        row("time of a transfer", (time for _, time in found if time), 8),
    ]
    for each in rows:
        print(*each, sep="  ")
    if arguments.json is not None:
        update(
            arguments.json, "failing", rows, f"python studies/failing.py --seed {arguments.seed}"
        )


if __name__ == "__main__":
    main()
