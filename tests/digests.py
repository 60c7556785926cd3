"""Compute the digests of many runs. A change that keeps behaviour must not change them.

python tests/digests.py [--check] [--only PART ...] [--results FOLDER]

Runs in virtual time the quick tier of every gallery entry and of the calibration (minutes), both
benchmark scenarios, and 2,000 seeds of the soak, and writes their digests to tests/digests.toml, or
compares them with that file.
"""

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from anabranch.batches.reduction import Task
from anabranch.gallery import catalogue
from anabranch.results.folder import PROVENANCE
from anabranch.results.provenance import combined_digest
from anabranch.runs.run import cost, run_toml

ROOT = Path(__file__).resolve().parent.parent
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
        "--results", type=Path, help="Read the gallery's digests from results of this build."
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
    tasks = {name: virtual_tasks(name) for name in [*catalogue.names(), catalogue.CALIBRATION]}
    made = {name: made_runs(results / name) for name in tasks} if results else {}
    to_run = [task for name, entry in tasks.items() if not made.get(name) for task in entry]
    to_run.sort(key=lambda task: -cost(task.toml))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        digests = dict(zip(map(id, to_run), pool.map(digest, to_run), strict=True))
    for name, entry in tasks.items():
        if entry:
            yield name, combined_digest(made.get(name) or [digests[id(task)] for task in entry])


def virtual_tasks(name: str) -> list[Task]:
    """The runs in virtual time of an entry's quick tier."""
    entry = catalogue.entry(name)
    cells = [cell for cell in entry.cells(entry.quick) if cell.hosts is None]
    return [cell.task(seed) for cell in cells for seed in range(1, entry.quick.seeds + 1)]


def made_runs(folder: Path) -> list[str]:
    """The digests of an entry's runs in virtual time, if the folder contains them."""
    file = folder / PROVENANCE
    about = json.loads(file.read_text()) if file.exists() else {}
    return [run["digest"] for run in about.get("runs", []) if run["digest"]]


def digest(task: Task) -> str:
    """The digest of one run."""
    return run_toml(task.toml, task.file, task.seed, made_by=task.made_by).digest


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
