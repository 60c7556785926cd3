"""Check that the Python package has no circular imports, and that all imports go down.

    python tools/check/python_imports.py

The script reads every import in python/anabranch, including imports inside functions and imports
for types only. It prints a line for each import that goes up, or otherwise for a circle, and then
exits with 1.
"""

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "python"
PACKAGE = "anabranch"

# Floors from the bottom up. A module may import modules of its own floor and of lower floors. Its
# floor is the longest of these names that contains it. `gallery.catalogue` imports entries by name,
# which no parser sees. The entries' floor is below it, so no entry can import it.
FLOORS = (
    "anabranch._core",
    "anabranch.errors",
    "anabranch.words",
    "anabranch.forms",
    "anabranch.files",
    "anabranch.policy",
    "anabranch.scenarios",
    "anabranch.exchange",
    "anabranch.runs",
    "anabranch.live",
    "anabranch.results",
    "anabranch.batches",
    "anabranch.reports",
    "anabranch.sweeps",
    "anabranch.gallery.data",
    "anabranch.gallery.systems",
    "anabranch.gallery.registry",
    "anabranch.gallery.claims",
    "anabranch.gallery.measures",
    "anabranch.gallery.metrics",
    "anabranch.gallery.panels",
    "anabranch.gallery.parameters",
    "anabranch.gallery.entry",
    "anabranch.gallery.shared",
    "anabranch.calibration",
    "anabranch.gallery.entries",
    "anabranch.gallery",
    "anabranch.analyze",
    "anabranch.explanations",
    "anabranch.twins",
    "anabranch.advice",
    "anabranch.conformance",
    "anabranch.playground",
    "anabranch.answers",
    "anabranch.api",
    "anabranch.cli",
    "anabranch",
)

Imports = dict[str, dict[str, int]]
"""The imports of each module, with their lines."""


def main() -> int:
    files = {name_of(file): file for file in sorted((SOURCES / PACKAGE).rglob("*.py"))}
    found: Imports = {module: {} for module in (*files, f"{PACKAGE}._core")}
    for module, file in files.items():
        for target, line in imported(module, file, set(found)):
            if target != module:
                found[module].setdefault(target, line)
    faults = [
        f"{files[module].relative_to(ROOT)}:{line}: {module} imports {target}, which is above it"
        for module, targets in found.items()
        for target, line in targets.items()
        if floor(target) > floor(module)
    ]
    if not faults and (around := circle(found)):
        faults.append(f"circular import: {' -> '.join(around)}")
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


def name_of(file: Path) -> str:
    """The import name of the module in a file."""
    return ".".join(file.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")


def imported(module: str, file: Path, known: set[str]) -> Iterator[tuple[str, int]]:
    """Modules of the package that a file imports, with the lines."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            # The last part may be a class or a function in a module.
            if target := next((each for each in ancestry(name) if each in known), None):
                yield target, node.lineno


def ancestry(name: str) -> list[str]:
    """The name itself, then the names of the packages that contain it."""
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(len(parts), 0, -1)]


def floor(module: str) -> int:
    """The floor of a module, counted from the bottom."""
    return next(FLOORS.index(each) for each in ancestry(module) if each in FLOORS)


def circle(found: Imports) -> list[str]:
    """A chain of imports from a module back to itself; empty if there is none."""
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        return [str(module) for module in reversed(error.args[1])]
    return []


if __name__ == "__main__":
    sys.exit(main())
