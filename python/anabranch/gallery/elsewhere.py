"""The claims of an entry on other systems: that of the source, and today's Linux.

With ``--full``, the cells that claims read also run on the systems that the entry's `source` names,
and the same claims are judged on each. The runs are ordinary tasks of a batch in the folder
``systems``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from anabranch.batches.reduction import Task
from anabranch.gallery import further
from anabranch.gallery.entry import Entry, Tier
from anabranch.gallery.systems import Source
from anabranch.reports.table import Table
from anabranch.results.claims import Claim, Judgement, Verdict, judge
from anabranch.results.folder import Results

FOLDER = "systems"
ENGINE = "this engine"
"""The system of the entry's own runs."""

COUNTED = (
    "claims",
    "reproduced on the source's system",
    "on this engine",
    "on Linux 6.12",
    "Linux lacks the mechanism",
)
"""The numbers of `counts` in words."""

_SYSTEM = "system"
"""The factor that names a system in the tables."""


def execute(entry: Entry, tier: Tier, results: Results, folder: Path, **running: Any) -> None:
    """Run the cells of an entry on the other systems. Its own results are in a folder.

    `running` has the last two arguments of `batch.execute`.

    Raises:
        IntegrityError: if a connection failed or delivered wrong bytes.
    """
    seeds = range(1, tier.seeds + 1)
    tasks = list(_tasks(entry, entry.source, tier, seeds, results)) if entry.source else []
    further.execute(entry, tier, seeds, tasks, results, folder / FOLDER, **running)


def _tasks(
    entry: Entry, source: Source, tier: Tier, seeds: Iterable[int], results: Results
) -> Iterator[Task]:
    read = set[str]().union(*(_cells_read(claim, results) for claim in entry.claims))
    cells = [cell for cell in entry.cells(tier) if cell.key in read]
    for number, system in enumerate(source.all_systems):
        for cell in cells:
            for task in map(cell.task, seeds):
                scenario = system.scenario(task.scenario, source.studied)
                if scenario is not None:
                    yield further.task(task, number, scenario, **{_SYSTEM: system.name})


def _cells_read(claim: Claim, results: Results) -> set[str]:
    measures = [each.measure for each in claim.conditions]
    needs = [claim.precondition] if claim.precondition else []
    return further.cells_read([*measures, *needs], results)


def judged(
    entry: Entry, judgements: Sequence[Judgement], results: Results, folder: Path
) -> list[Judgement]:
    """The judgements, each with the judgements of its claim on the other systems.

    They stay as they are if the folder has no such runs, or they belong to other results.

    Raises:
        InputError: if their files are damaged.
    """
    others = further.loaded(results, folder / FOLDER)
    if entry.source is None or others is None:
        return list(judgements)
    read = {claim.id: _cells_read(claim, results) for claim in entry.claims}
    on = {
        system.name: further.part(results, others, **{_SYSTEM: system.name})
        for system in entry.source.all_systems
    }
    cells = {name: set(of_system.runs["cell"].unique()) for name, of_system in on.items()}

    def elsewhere(claim: Claim) -> dict[str, Judgement | None]:
        return {
            name: judge(claim, of_system) if read[claim.id] <= cells[name] else None
            for name, of_system in on.items()
        }

    compared = [replace(each, elsewhere=elsewhere(each.claim)) for each in judgements]
    return [replace(each, conclusion=_conclusion(each, entry.source)) for each in compared]


def _conclusion(judgement: Judgement, source: Source) -> str:
    """The verdicts on the source's systems and on this engine, in words."""
    verdicts = {
        system.name: found.verdict
        for system in source.systems
        if (found := judgement.elsewhere[system.name]) is not None
    }
    good, bad = Verdict.REPRODUCED, (Verdict.NOT_REPRODUCED, Verdict.PARTLY)
    for system in source.systems:
        without = verdicts.get(system.without_artefact, Verdict.OPEN)
        if verdicts.get(system.name) is good and without in bad:
            return "reproduced by an artefact of the emulation"
    here, there = judgement.verdict, set(verdicts.values())
    if good in there:
        return here.words if here is good else "reproduced on the source's system only"
    if Verdict.OPEN in there or here is Verdict.OPEN:
        return Verdict.OPEN.words
    if here is good:
        return "reproduced, but not on the source's system"
    if here is Verdict.NOT_APPLICABLE or not there:
        return here.words
    return f"{here.words}, nor on the source's system"


def table(judgements: Sequence[Judgement]) -> Table | None:
    """The verdicts on each system, side by side; `None` without runs on other systems."""
    if not any(each.elsewhere for each in judgements):
        return None
    verdicts = [_on_all(each) for each in judgements]
    rows = [
        (each.claim.id, *map(text, on_all.values()), each.conclusion)
        for each, on_all in zip(judgements, verdicts, strict=True)
    ]
    return Table(("claim", *verdicts[0], "conclusion"), tuple(rows))


def _on_all(judgement: Judgement) -> dict[str, Judgement | None]:
    """The judgements on the systems of the source, this engine, and today's Linux."""
    *sources, linux = judgement.elsewhere.items()
    return dict([*sources, (ENGINE, judgement), linux])


def counts(judgements: Sequence[Judgement]) -> tuple[int, ...]:
    """Numbers of claims, as in `COUNTED`: those that are judged on several systems.

    The source's system is the first one that the entry names.
    """
    systems = [list(_on_all(each).values()) for each in judgements if each.elsewhere]
    compared = [(each[0], each[-2], each[-1]) for each in systems]
    reproduced = (
        sum(each is not None and each.verdict is Verdict.REPRODUCED for each in column)
        for column in zip(*compared, strict=True)
    )
    return (len(compared), *reproduced, sum(linux is None for *_, linux in compared))


def text(judgement: Judgement | None) -> str:
    """A verdict, with the value that decided it."""
    if judgement is None:
        return "lacks the mechanism"
    if not judgement.conditions:
        return judgement.verdict.words
    deciding = judgement.deciding
    value = deciding.estimate.text(deciding.condition.bound.unit)
    return f"{judgement.verdict.words}: {value}"
