"""The verdicts of an entry's runs as a record that outlives them, and as tables in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from anabranch.gallery import comparison, further, sensitivity
from anabranch.gallery.entry import Entry
from anabranch.results.claims import Judgement, Verdict
from anabranch.results.folder import Results

_ORDER = [each.words for each in Verdict]


@dataclass(frozen=True)
class ClaimRecord:
    """The verdict on one claim."""

    id: str
    measured: str
    """The numbers on the system that is judged."""
    verdict: str
    elsewhere: Mapping[str, str]
    """Verdict and deciding value on each other system; empty if the entry has no other system."""
    conclusion: str
    """The verdicts on all systems in words, or the verdict. Changes that overturn it follow."""


@dataclass(frozen=True)
class VerdictRecord:
    """The verdicts on all claims of an entry, with the provenance of its runs."""

    entry: str
    system: str
    """The source's system, on which the claims are judged; empty if the source ran no kernel."""
    tier: str
    seeds: int
    runs: int
    """Number of runs on the judged system, without those of the bands."""
    cpu_s: int
    """Processor time of all runs in s; 0 if it is not known."""
    build: str
    claims: Sequence[ClaimRecord]
    date: str = ""
    on_systems: Sequence[int] = ()
    """Numbers of claims, as in `comparison.COUNTED`; empty without runs on other systems."""
    superseded: str = ""
    """The reason why the record is out of date; empty if it is not."""

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> VerdictRecord:
        """The record that `as_json` wrote."""
        claims = [ClaimRecord(**claim) for claim in found["claims"]]
        return cls(**{**found, "claims": claims, "on_systems": tuple(found["on_systems"])})

    def as_json(self) -> dict[str, Any]:
        """The record as an object of JSON."""
        return asdict(self)

    @property
    def verdicts(self) -> str:
        """The number of claims with each verdict, in words."""
        found = Counter(claim.verdict for claim in self.claims)
        return ", ".join(f"{found[words]} {words}" for words in _ORDER if found[words])


def record(
    entry: Entry, judgements: Sequence[Judgement], results: Results, folder: Path
) -> VerdictRecord:
    """The verdicts of results in their folder, without a date.

    Raises:
        InputError: if files of the folder are damaged.
    """
    about = results.provenance
    folders = (folder / sensitivity.FOLDER, folder / comparison.FOLDER)
    others = [found.provenance for each in folders if (found := further.loaded(results, each))]
    cpu_s = sum(each["cpu_s"] for each in (about, *others))
    compared = any(each.systems for each in judgements)
    return VerdictRecord(
        entry=entry.id,
        system=entry.source.system.name if entry.source else "",
        tier=about["tier"],
        seeds=len(about["seeds"]),
        runs=len(about["runs"]),
        cpu_s=round(cpu_s),
        build=f"{about['version']}, {about['commit'] or 'unknown commit'}",
        claims=[_claim(each) for each in judgements],
        on_systems=comparison.counts(judgements) if compared else (),
    )


def _claim(judgement: Judgement) -> ClaimRecord:
    _, *others = judgement.systems.items() or [("", None)]
    robust = f"; not robust: {judgement.sensitivity}" if judgement.overturned_by else ""
    return ClaimRecord(
        id=judgement.claim.id,
        measured=judgement.measured,
        verdict=judgement.verdict.words,
        elsewhere={name: comparison.text(found) for name, found in others},
        conclusion=(judgement.conclusion or judgement.verdict.words) + robust,
    )


def markdown(found: Sequence[tuple[Entry, VerdictRecord]]) -> str:
    """The verdicts of all entries, as tables in Markdown."""
    records = [record for _, record in found]
    compared = [each for each in records if each.on_systems]
    parts = [table(_OVERVIEW, map(_overview, records), "lllrrrl")]
    if compared:
        total = map(sum, zip(*(each.on_systems for each in compared), strict=True))
        rows = [(_link(each.entry), *each.on_systems) for each in compared]
        parts.append(table(("entry", *comparison.COUNTED), [*rows, ("all", *total)], "lrrrrr"))
    return "\n\n".join([*parts, *(_section(*each) for each in found)]) + "\n"


_OVERVIEW = ("entry", "claims", "judged on", "seeds", "runs", "CPU s", "measured")


def _overview(record: VerdictRecord) -> Sequence[Any]:
    seeds = record.seeds if record.tier == "full" else f"{record.seeds} ({record.tier})"
    measured = ", ".join(filter(None, (record.date, record.build)))
    state = " (superseded)" if record.superseded else ""
    cpu_s = f"{record.cpu_s:,}" if record.cpu_s else "–"
    cells = (record.verdicts, record.system or "–", seeds, record.runs, cpu_s)
    return _link(record.entry), *cells, measured + state


def _section(entry: Entry, record: VerdictRecord) -> str:
    statements = {claim.id: claim.statement for claim in entry.claims}
    full = " --full" if record.tier == "full" else ""
    parts = [
        f"## {record.entry}",
        f"{entry.row.question} `anabranch reproduce {record.entry}{full}`",
    ]
    if record.superseded:
        parts.append(f"> **Superseded.** {record.superseded}")
    elsewhere = any(claim.elsewhere for claim in record.claims)
    measured = f"measured on: {record.system}" if record.system else "measured"
    headings = ["claim", "statement", measured, "verdict"]
    if elsewhere:
        headings[3:] = ["on other systems", "conclusion"]
    rows = []
    for claim in record.claims:
        others = "; ".join(f"{name}: {text}" for name, text in claim.elsewhere.items())
        cells = [claim.id, statements[claim.id], claim.measured]
        rows.append([*cells, *([others] if elsewhere else []), claim.conclusion])
    parts.append(table(headings, rows, "l" * len(headings)))
    return "\n\n".join(parts)


def _link(entry: str) -> str:
    return f"[{entry}](#{entry})"


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], align: str) -> str:
    """A table in Markdown. `align` has a letter for each column: ``l`` or ``r``."""
    rule = "|" + "|".join({"l": "---", "r": "--:"}[each] for each in align) + "|"
    return "\n".join([_row(headings), rule, *map(_row, rows)])


def _row(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |"
