"""Claims of the gallery on the systems of their sources, on this engine, and on today's Linux.

    python studies/systems.py [--seeds 3] [--json docs/results/systems.json] [ID]...
    python studies/systems.py --gallery site/ [--json docs/results/systems.json] [ID]...

Runs the quick tier of each entry whose source ran a kernel, or of the named entries, on every
system. With `--gallery`, it reads a gallery that `anabranch gallery --full` made, and runs nothing.
`--json` replaces the results of all entries. All entries take hours on two cores, most of them for
conext13-design and csws14-schedulers-bulk.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from measured import update

from anabranch.gallery import catalogue, comparison, reproduce
from anabranch.gallery.entry import Entry
from anabranch.results.claims import Judgement, judge
from anabranch.results.folder import load


def judged(entry: Entry, seeds: int) -> list[Judgement]:
    """The claims of an entry on all systems."""
    tier = replace(entry.quick, seeds=seeds)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        results = reproduce.execute(entry, tier, folder)
        comparison.execute(entry, tier, results, folder)
        own = [judge(claim, results) for claim in entry.claims]
        return comparison.judged(entry, own, results, folder)


def found(entry: Entry, gallery: Path) -> list[Judgement]:
    """The claims of an entry on all systems, as a gallery has them.

    Raises:
        SystemExit: if the gallery has no runs of the entry on other systems.
    """
    folder = gallery / entry.id
    results = load(folder)
    own = [judge(claim, results) for claim in entry.claims]
    judgements = comparison.judged(entry, own, results, folder)
    if not all(each.systems for each in judgements):
        raise SystemExit(f"{folder} has no runs on other systems")
    return judgements


def row(entry: Entry, judgement: Judgement) -> list[str]:
    """A claim with its verdicts on all systems, and the conclusion."""
    *sources, engine, linux = judgement.systems.items()
    on_source = "; ".join(f"{name}: {comparison.text(found)}" for name, found in sources)
    others = [comparison.text(found) for _, found in (engine, linux)]
    name = f"[{judgement.claim.id}](../gallery/{entry.id}.md)"
    return [name, on_source, *others, judgement.conclusion]


def main() -> None:
    """Run, print and perhaps record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--gallery", type=Path, metavar="DIR")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    names = arguments.ids or catalogue.names()
    rows: list[list[str]] = []
    counted: list[tuple[int, ...]] = []
    claims: list[list[str]] = []
    for entry in filter(lambda entry: entry.source, map(catalogue.entry, names)):
        judgements = (
            found(entry, arguments.gallery) if arguments.gallery else judged(entry, arguments.seeds)
        )
        numbers = comparison.counts(judgements)
        counted.append(numbers)
        claims += [row(entry, each) for each in judgements]
        print(entry.id, *numbers, flush=True)
        for each in claims[-len(judgements) :]:
            print("  ", " | ".join(each), flush=True)
        rows.append([f"[{entry.id}](../gallery/{entry.id}.md)", *map(str, numbers)])
    total = ["all", *(str(sum(column)) for column in zip(*counted, strict=True))]
    if arguments.json:
        options = ["--gallery site/"] if arguments.gallery else []
        command = " ".join(["python studies/systems.py", *options, *arguments.ids])
        update(arguments.json, "counts", [*rows, total], command)
        update(arguments.json, "claims", claims, command)


if __name__ == "__main__":
    main()
