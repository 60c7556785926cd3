"""Reproduce an entry: execute its runs, judge its claims, write its report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from anabranch.batches import batch
from anabranch.gallery import comparison, further, sensitivity
from anabranch.gallery.entry import Entry, Overview, Tier
from anabranch.gallery.systems import Source
from anabranch.reports import finding
from anabranch.reports.report import Report, overview_row
from anabranch.reports.table import Table
from anabranch.results.claims import Judgement, judge
from anabranch.results.folder import Results
from anabranch.runs.executors import Progress
from anabranch.words import listed

INDEX, VERDICTS = "index.html", "verdicts.md"
"""The files of a gallery, next to the folders of its entries."""


def execute(
    entry: Entry,
    tier: Tier,
    folder: Path,
    *,
    on: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Results:
    """Run all cells of an entry with seeds 1 to `tier.seeds`, and write the results to a folder.

    The full tier also runs the variants of the sensitivity bands, and the cells on other systems.

    Raises:
        IntegrityError: if a connection failed or delivered wrong bytes.
    """
    _ = entry.parameter_table(), entry.panels  # mistakes in them should be found before the runs
    seeds = range(1, tier.seeds + 1)
    about = {**further.about(entry, tier, seeds), **entry.about}
    if entry.source:
        about["system"] = entry.source.system.name
    tasks = [cell.task(seed) for cell in entry.cells(tier) for seed in seeds]
    results = batch.execute(about, tasks, folder, on=on, on_progress=on_progress)
    if tier.name == entry.full.name:
        for more in (sensitivity, comparison):
            more.execute(entry, tier, results, folder, on=on, on_progress=on_progress)
    return results


def save_entry(
    entry: Entry, results: Results, folder: Path, *, in_gallery: bool | None = None
) -> list[Judgement]:
    """Judge an entry's claims, write its report, and return the judgements.

    In a gallery, the report links back to the gallery's index. With `in_gallery=None`, the folder
    counts as part of a gallery if the index exists.

    Raises:
        InputError: if the folder cannot be written.
    """
    if in_gallery is None:
        in_gallery = all((folder / ".." / name).is_file() for name in (INDEX, VERDICTS))
    variants = sensitivity.variants(results, folder)
    judgements = [judge(claim, results, variants) for claim in entry.claims]
    judgements = comparison.judged(entry, judgements, results, folder)
    Report(
        id=entry.id,
        title=entry.row.title,
        question=entry.row.question,
        results=results,
        panels=entry.panels,
        finding=_finding(entry, results, judgements),
        summary=entry.summary(results) if entry.summary else None,
        judgements=judgements,
        bands=_bands(entry, varied=bool(variants)),
        systems=comparison.table(judgements),
        judged_on=_judged_on(entry.source) if entry.source else "",
        parameters=[(each.name, each.value, each.source) for each in entry.parameter_table()],
        references=entry.references,
        notes=entry.notes(results),
        overview=_overview_table(results, entry.overview)
        if isinstance(entry.overview, Overview)
        else entry.overview(results),
        index=f"../{INDEX}" if in_gallery else None,
    ).save(folder)
    return judgements


def _judged_on(source: Source) -> str:
    """The system on which claims are judged, and what the source says of its own."""
    fault = (
        " It has a fault of netem, which lets delayed segments take up no memory, so some results "
        "may hold only because of it: see mininet-truesize. With --full, the claims are also "
        "judged without this fault."
    )
    return (
        f"{source.says} This report has the runs and verdicts of this project's model of such a "
        f"system: {source.system.name}.{fault if source.system.without_artefact else ''}"
    )


def _bands(entry: Entry, *, varied: bool) -> str:
    """The parameters that the bands vary, or the reason for which there are no bands."""
    if entry.row.not_varied_because:
        return f"This experiment has no bands: {entry.row.not_varied_because}."
    uncertain = listed(entry.uncertain_parameters)
    if not varied:
        return f"With --full, claims also have bands: their range if {uncertain} change by ± 10 %."
    return (
        f"A band is the range of the value if {uncertain} change by ± 10 %, one at a time, with "
        f"{len(sensitivity.SEEDS)} seeds. It also contains the noise of these seeds."
    )


def _finding(entry: Entry, results: Results, judgements: list[Judgement]) -> list[str]:
    if entry.finding is None:
        return finding.of_claims(judgements, entry.row.headline)
    return [*entry.finding(results), finding.count(judgements)]


def _overview_table(results: Results, overview: Overview) -> Table:
    """All combinations of factors with their metrics, as medians over runs with intervals."""
    metrics = [metric.column for metric in overview.metrics]
    in_units = results.runs.with_columns(
        pl.col(metric.column) * metric.scale for metric in overview.metrics if metric.scale != 1
    )
    headings = [
        *overview.factors.values(),
        *(metric.heading for metric in overview.metrics),
        f"{overview.path} carried",
    ]
    rows = []
    for _, runs in in_units.group_by(*overview.factors, maintain_order=True):
        shares = [f"share_{overview.path}"]
        rows.append(overview_row(runs, list(overview.factors), metrics, shares))
    return Table(tuple(headings), tuple(rows))
