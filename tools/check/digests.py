"""Compute the digests of many runs. A change that keeps behaviour must not change them.

python tools/check/digests.py [--check] [--only PART ...] [--results FOLDER]

Runs in virtual time every cell of the gallery's quick tiers and of the calibration with one seed
(minutes), both benchmark scenarios, and 2,000 seeds of the soak, and writes their digests to
tests/digests.toml, or compares them with that file.
"""

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from anabranch.batches.journal import FILE as FILE_OF_RUNS
from anabranch.batches.journal import Journal
from anabranch.batches.reduction import Task
from anabranch.gallery import catalogue
from anabranch.results.provenance import combined_digest
from anabranch.runs.run import run_scenario

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests/digests.toml"
SEEDS, BLOCK = 2_000, 100
HEAD = """\
# Digests of runs in virtual time. `make digests` writes this file, and `make digests CHECK=1`
# compares with it. A commit that changes a digest says so, and why.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="Compare with the file.")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument(
        "--results", type=Path, help="Read digests of runs that this build finished here."
    )
    arguments = parser.parse_args()
    known = tomllib.loads(FILE.read_text()) if FILE.exists() else {}
    found = {part: dict(PARTS[part](arguments.results)) for part in arguments.only}
    if not arguments.check:
        FILE.write_text(HEAD + "".join(toml(*table) for table in (known | found).items()))
        print(f"written: {FILE.relative_to(ROOT)}")
        return 0
    return compare({part: known.get(part, {}) for part in found}, found)


def compare(known: dict[str, dict[str, str]], found: dict[str, dict[str, str]]) -> int:
    """Print every digest that differs, and return 1 if there is any."""
    differ = [
        f"{part}: {name}: was {known[part].get(name, 'none')}, is {digests.get(name, 'none')}"
        for part, digests in found.items()
        for name in known[part] | digests
        if known[part].get(name) != digests.get(name)
    ]
    print(*differ, sep="\n", end="\n" if differ else "")
    print(f"{sum(map(len, found.values()))} digests, {len(differ)} differ")
    return 1 if differ else 0


def toml(part: str, digests: dict[str, str]) -> str:
    """One table of the file."""
    return f"\n[{part}]\n" + "".join(f'"{name}" = "{value}"\n' for name, value in digests.items())


def of_gallery(results: Path | None) -> Iterator[tuple[str, str]]:
    """Digests of every entry in virtual time, and of the calibration's runs in virtual time."""
    entries = {name: virtual_tasks(name) for name in [*catalogue.names(), catalogue.CALIBRATION]}
    digests: dict[bytes, str] = {}
    if results is not None:
        for name, runs in entries.items():
            digests |= finished(results / name, runs)
    tasks = {key: task for entry in entries.values() for key, task in entry.items()}
    to_run = sorted(tasks.keys() - digests.keys(), key=lambda key: -tasks[key].scenario.cost)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(digest, (tasks[key] for key in to_run))
        digests |= zip(to_run, made, strict=True)
    for name, entry in entries.items():
        if entry:
            yield name, combined_digest([digests[key] for key in entry])


def virtual_tasks(name: str) -> dict[bytes, Task]:
    """The runs in virtual time of an entry's quick tier with the first seed, by key."""
    entry = catalogue.entry(name)
    cells = [cell for cell in entry.cells(entry.quick) if cell.hosts is None]
    tasks = [cell.task(1) for cell in cells]
    return {task.key(): task for task in tasks}


def finished(folder: Path, tasks: Iterable[bytes]) -> dict[bytes, str]:
    """The digests of those runs that this build finished in the folder, by key."""
    if not (folder / FILE_OF_RUNS).exists():
        return {}
    with closing(Journal(folder)) as journal:
        runs = {key: journal.find(key) for key in tasks}
    return {key: run.digest for key, run in runs.items() if run}


def digest(task: Task) -> str:
    """The digest of one run."""
    return run_scenario(task.scenario, task.seed).digest


def of_benchmark(_results: Path | None) -> Iterator[tuple[str, str]]:
    """The digests of the benchmark scenarios."""
    for scenario in sorted((ROOT / "bench/scenarios").glob("*.toml")):
        figures = json.loads(output("anabranch-bench", str(scenario)))
        yield scenario.stem, figures["digest"][:12]


def of_soak(_results: Path | None) -> Iterator[tuple[str, str]]:
    """The soak's digests, each over a hundred seeds."""
    for first in range(1, SEEDS, BLOCK):
        *_, last = output(
            "anabranch-soak", "--from", str(first), "--seeds", str(BLOCK)
        ).splitlines()
        yield f"{first} to {first + BLOCK - 1}", last.removeprefix("digest ")[:12]


def output(binary: str, *arguments: str) -> str:
    """The output of a program of anabranch-sim."""
    command = [str(ROOT / "target/release" / binary), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


PARTS: dict[str, Callable[[Path | None], Iterator[tuple[str, str]]]] = {
    "gallery": of_gallery,
    "benchmark": of_benchmark,
    "soak": of_soak,
}

if __name__ == "__main__":
    sys.exit(main())
