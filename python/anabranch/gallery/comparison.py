"""The claims of an entry on systems other than the source's: this engine, and today's Linux.

With ``--full``, the cells that claims read also run on these systems, with the seeds of the quick
tier, and the same claims are judged on each. The runs are ordinary tasks of a batch in the folder
``systems``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from anabranch.batches.reduction import Task
from anabranch.gallery import further
from anabranch.gallery.entry import Entry, Tier
from anabranch.gallery.systems import ENGINE, Source
from anabranch.reports.table import Table
from anabranch.results.claims import Claim, Judgement, Verdict, judge
from anabranch.results.folder import Results

FOLDER = "systems"
COUNTED = (
    "claims",
    "reproduced on the source's system",
    "on this engine",
    "on Linux 6.12",
    "Linux lacks the mechanism",
)
"""The numbers of `counts` in words."""
BY_ARTEFACT = "reproduced by an artefact of the emulation"
"""The conclusion if a claim holds only with a fault of the source's system."""

_SYSTEM = "system"
"""The factor that names a system in the tables."""


def execute(entry: Entry, tier: Tier, results: Results, folder: Path, **running: Any) -> None:
    """Run the cells of an entry on the systems for comparison. Its own results are in a folder.

    `running` has the last two arguments of `batch.execute`.

    Raises:
        IntegrityError: if a connection failed or delivered wrong bytes.
    """
    seeds = range(1, min(tier.seeds, entry.quick.seeds) + 1)
    tasks = list(_tasks(entry, entry.source, tier, seeds, results)) if entry.source else []
    further.execute(entry, tier, seeds, tasks, results, folder / FOLDER, **running)


def _tasks(
    entry: Entry, source: Source, tier: Tier, seeds: Iterable[int], results: Results
) -> Iterator[Task]:
    read = set[str]().union(*(_cells_read(claim, results) for claim in entry.claims))
    cells = [cell for cell in entry.design(tier) if cell.key in read]
    for number, system in enumerate(source.compared):
        for cell in cells:
            for task in map(cell.task, seeds):
                if not system.lacks(task.scenario, source.studied):
                    scenario = system.scenario(task.scenario, source.studied)
                    yield further.task(task, number, scenario, **{_SYSTEM: system.name})


def _cells_read(claim: Claim, results: Results) -> set[str]:
    measures = [each.measure for each in claim.conditions]
    needs = [claim.precondition] if claim.precondition else []
    return further.cells_read([*measures, *needs], results)


def judged(
    entry: Entry, judgements: Sequence[Judgement], results: Results, folder: Path
) -> list[Judgement]:
    """The judgements, each with those of its claim on all systems.

    They stay as they are if the folder has no such runs, or they belong to other results.

    Raises:
        InputError: if their files are damaged.
    """
    others = further.loaded(results, folder / FOLDER)
    source = entry.source
    if source is None or others is None:
        return list(judgements)
    read = {claim.id: _cells_read(claim, results) for claim in entry.claims}
    on = {
        system.name: further.part(results, others, **{_SYSTEM: system.name})
        for system in source.compared
    }
    cells = {name: set(of_system.runs["cell"].unique()) for name, of_system in on.items()}

    def on_all(judgement: Judgement) -> dict[str, Judgement | None]:
        claim = judgement.claim
        compared = {
            name: judge(claim, of_system) if read[claim.id] <= cells[name] else None
            for name, of_system in on.items()
        }
        return {source.system.name: judgement, **compared}

    return [
        replace(each, systems=(systems := on_all(each)), conclusion=_conclusion(systems, source))
        for each in judgements
    ]


def _conclusion(systems: Mapping[str, Judgement | None], source: Source) -> str:
    """The verdicts on the source's systems and on this engine, in words."""
    verdicts = {
        system.name: found.verdict
        for system in (*source.systems, ENGINE)
        if (found := systems[system.name]) is not None
    }
    here = verdicts.pop(ENGINE.name)
    good, bad = Verdict.REPRODUCED, (Verdict.NOT_REPRODUCED, Verdict.PARTLY)
    for system in source.systems:
        without = verdicts.get(system.without_artefact, Verdict.OPEN)
        if verdicts.get(system.name) is good and without in bad:
            return BY_ARTEFACT
    there = set(verdicts.values())
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
    if not any(each.systems for each in judgements):
        return None
    rows = [
        (each.claim.id, *map(text, each.systems.values()), each.conclusion) for each in judgements
    ]
    return Table(("claim", *judgements[0].systems, "conclusion"), tuple(rows))


def counts(judgements: Sequence[Judgement]) -> tuple[int, ...]:
    """Numbers of claims, as in `COUNTED`: those that are judged on several systems.

    The source's system is the first one that the entry names.
    """
    systems = [list(each.systems.values()) for each in judgements if each.systems]
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
