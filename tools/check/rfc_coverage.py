"""Write docs/rfc-coverage.md: the requirements of RFC 8684, their code and their tests.

    python tools/check/rfc_coverage.py [--check]

The requirements are those of docs/rfc/rfc8684.toml. Each names functions, and each of these must
cite the requirement's clause (``RFC 8684 §3.2``) in its body, in what stands directly before it, or
at the head of its file. Every citation of every RFC in the sources must name a clause that
exists: docs/rfc/clauses.toml lists them. With ``--check`` the page is compared, not written.
"""

import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "rfc-coverage.md"
RFC = "8684"
# A citation names one RFC and then any number of its clauses.
CITATION = re.compile(r"RFC (\d+)((?:,? (?:and )?§[0-9A-Z]+(?:\.[0-9]+)*)*)")
CLAUSE = re.compile(r"§([0-9A-Z]+(?:\.[0-9]+)*)")
FUNCTION = re.compile(r"^( *)(?:pub(?:\([a-z]+\))? )?(?:const )?(?:fn|struct|enum) (\w+)")


class Place(NamedTuple):
    """A function with the clauses of RFC 8684 that it cites."""

    path: Path
    clauses: frozenset[str]


def citations(text: str) -> list[tuple[str, str]]:
    """RFC and clause of every citation in a text; a clause may continue on the next line."""
    flat = re.sub(r"\n\s*//[/!]? ?", " ", text)
    return [
        (rfc, clause)
        for rfc, clauses in CITATION.findall(flat)
        for clause in CLAUSE.findall(clauses)
    ]


def places(path: Path) -> dict[str, Place]:
    """The functions of a file by name, each with what it cites."""
    lines = path.read_text().splitlines()
    head = "\n".join(line for line in lines if line.startswith("//!"))
    starts = [(n, match[2]) for n, line in enumerate(lines) if (match := FUNCTION.match(line))]
    found: dict[str, Place] = {}
    for index, (line, name) in enumerate(starts):
        first = line
        while first > 0 and re.match(r"\s*(///|//|#\[)", lines[first - 1]):
            first -= 1
        last = starts[index + 1][0] if index + 1 < len(starts) else len(lines)
        text = head + "\n" + "\n".join(lines[first:last])
        clauses = frozenset(clause for rfc, clause in citations(text) if rfc == RFC)
        found.setdefault(name, Place(path, clauses))
    return found


def wrong_citations(sources: list[Path], known: dict[str, list[str]]) -> list[str]:
    """Citations of clauses that do not exist."""
    wrong = []
    for path in sources:
        for rfc, clause in sorted(set(citations(path.read_text()))):
            where = path.relative_to(ROOT)
            if rfc not in known:
                wrong.append(f"{where}: RFC {rfc} §{clause}: RFC {rfc} is not in clauses.toml")
            elif clause not in known[rfc]:
                wrong.append(f"{where}: RFC {rfc} has no §{clause}")
    return wrong


def find(name: str, sources: list[Path], cache: dict[Path, dict[str, Place]]) -> list[Place]:
    """The places that ``file function`` means; without a function, the whole file."""
    file, _, function = name.partition(" ")
    paths = [path for path in sources if str(path).endswith("/" + file)]
    if not function:
        return [
            Place(path, frozenset(c for rfc, c in citations(path.read_text()) if rfc == RFC))
            for path in paths
        ]
    function = function.rpartition("::")[2]
    return [
        place for path in paths if (place := cache.setdefault(path, places(path)).get(function))
    ]


def is_cited(clause: str, place: Place) -> bool:
    """Whether the place cites the clause, one inside of it, or the one that it is in."""
    return any(
        cited == clause or cited.startswith(clause + ".") or clause.startswith(cited + ".")
        for cited in place.clauses
    )


def link(place: Place, name: str) -> str:
    """A place as a link whose label is what the table calls it."""
    function = name.partition(" ")[2] or place.path.name
    return f"[{function}](../{place.path.relative_to(ROOT)})"


def page(requirements: list[dict[str, Any]], sources: list[Path]) -> tuple[str, list[str]]:
    """The page, and what is wrong with the table."""
    cache: dict[Path, dict[str, Place]] = {}
    problems: list[str] = []
    rows: list[str] = []
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for requirement in requirements:
        clause, cells = requirement["clause"], []
        for kind in ("code", "tests"):
            links = []
            for name in requirement.get(kind, []):
                found = find(name, sources, cache)
                cited = [place for place in found if is_cited(clause, place)]
                if len(found) == 0:
                    problems.append(f"§{clause}: there is no {name}")
                elif not cited:
                    problems.append(f"§{clause}: {name} does not cite RFC {RFC} §{clause}")
                else:
                    links.append(link(cited[0], name))
            cells.append(", ".join(links))
        code, tests = cells
        state = (
            "missing"
            if "missing" in requirement
            else "not applicable"
            if "because" in requirement and not code
            else "tested"
            if tests
            else "not tested"
            if code
            else "missing"
        )
        counts[state, requirement["level"]] += 1
        remark = requirement.get("missing") or requirement.get("because") or ""
        rows.append(
            f"| {clause} | {requirement['level']} | {requirement['text']} | {state}"
            f"{': ' + remark if remark else ''} | {code} | {tests} |"
        )
    return HEAD + summary(counts) + TABLE + "\n".join(rows) + "\n", problems


def summary(counts: dict[tuple[str, str], int]) -> str:
    """Number of requirements of each level in each state."""
    states = ["tested", "not tested", "not applicable", "missing"]
    levels = {
        "MUST, MUST NOT": ["MUST", "MUST NOT"],
        "SHOULD, SHOULD NOT, RECOMMENDED": ["SHOULD", "SHOULD NOT", "RECOMMENDED"],
        "without a keyword (must)": ["must"],
    }
    lines = ["| level | " + " | ".join(states) + " |", "|---|" + "--:|" * len(states)]
    for name, words in levels.items():
        numbers = [str(sum(counts[state, word] for word in words)) for state in states]
        lines.append(f"| {name} | " + " | ".join(numbers) + " |")
    return "\n".join(lines) + "\n"


HEAD = """# RFC 8684: requirements, code and tests

This page lists the requirements of RFC 8684, with the state of each, the code that implements it
and the tests that exercise it. `make rfc-coverage` generates it from the citations in the sources
and from [rfc/rfc8684.toml](rfc/rfc8684.toml), which paraphrases the requirements.

"""

TABLE = """
| § | level | requirement | state | code | tests |
|---|---|---|---|---|---|
"""


def main() -> int:
    """Write or check the page; the exit status."""
    sources = sorted(path for path in (ROOT / "crates").rglob("*.rs") if "target" not in path.parts)
    known = {
        rfc: [str(clause) for clause in clauses]
        for rfc, clauses in tomllib.loads((ROOT / "docs/rfc/clauses.toml").read_text()).items()
    }
    table = tomllib.loads((ROOT / "docs/rfc/rfc8684.toml").read_text())
    text, problems = page(table["requirement"], sources)
    problems += wrong_citations(sources, known)
    for problem in problems:
        print(f"rfc-coverage: {problem}", file=sys.stderr)
    if problems:
        return 1
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        print(
            "rfc-coverage: docs/rfc-coverage.md is out of date: make rfc-coverage", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
