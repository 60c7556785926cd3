"""Check that the Python package has no circles of imports, and that all imports go down.

    python tests/python_imports.py

Reads every import in python/anabranch, including those inside functions and those for types only.
Prints a line for each import that goes up or, if there is none, for a circle; then exits with 1.
"""

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "python"
PACKAGE = "anabranch"

# From the bottom up: a module imports modules of its own floor and of those before it. Its floor is
# the longest of these names that it lies in. `gallery.catalogue` imports entries by name, and no
# parser sees that. The floor of the entries is below it, so no entry can import it.
FLOORS = (
    "anabranch._core",
    "anabranch.errors",
    "anabranch.policy",
    "anabranch.scenarios",
    "anabranch.runs",
    "anabranch.live",
    "anabranch.results",
    "anabranch.batches",
    "anabranch.reports",
    "anabranch.sweeps",
    "anabranch.gallery.entry",
    "anabranch.gallery.shared",
    "anabranch.gallery.entries",
    "anabranch.gallery",
    "anabranch.analyze",
    "anabranch.conformance",
    "anabranch.api",
    "anabranch.cli",
    "anabranch",
)

Imports = dict[str, dict[str, int]]
"""What each module imports, and in which line."""


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
        faults.append(f"circle of imports: {' -> '.join(around)}")
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


def name_of(file: Path) -> str:
    """The name by which the module in a file is imported."""
    return ".".join(file.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")


def imported(module: str, file: Path, known: set[str]) -> Iterator[tuple[str, int]]:
    """Modules of the package that a file imports, and the lines."""
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
            # The last part may be a class or a function, which lies in a module.
            if target := next((each for each in ancestry(name) if each in known), None):
                yield target, node.lineno


def ancestry(name: str) -> list[str]:
    """The name itself, then those of the packages that it lies in."""
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(len(parts), 0, -1)]


def floor(module: str) -> int:
    """Which of the floors a module is on, counted from the bottom."""
    return next(FLOORS.index(each) for each in ancestry(module) if each in FLOORS)


def circle(found: Imports) -> list[str]:
    """Modules that import each the next one, from a module back to itself; none without circle."""
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        return [str(module) for module in reversed(error.args[1])]
    return []


if __name__ == "__main__":
    sys.exit(main())
