"""The gallery as a static site: an index of all experiments, next to their result folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.gallery import comparison, reproduce
from anabranch.gallery.entry import Entry
from anabranch.reports import finding, pictures, report
from anabranch.reports.page import template
from anabranch.results.claims import Judgement
from anabranch.results.folder import Results, write_whole
from anabranch.results.provenance import describe_host, effort
from anabranch.words import counted

INDEX, VERDICTS = reproduce.INDEX, reproduce.VERDICTS


@dataclass(frozen=True)
class Exhibit:
    """An entry with its judgements and the provenance of its runs."""

    entry: Entry
    judgements: Sequence[Judgement]
    provenance: Mapping[str, Any]

    @property
    def finding(self) -> list[str]:
        """The finding, in two sentences."""
        return finding.of_claims(self.judgements, self.entry.headline)

    @property
    def command(self) -> str:
        """The command that repeats the runs."""
        full = " --full" if self.provenance["tier"] == "full" else ""
        return f"anabranch reproduce {self.entry.id}{full}"

    @property
    def effort(self) -> str:
        """The number of seeds and the time that the runs took."""
        return f"{counted(len(self.provenance['seeds']), 'seed')}: {effort(self.provenance)}"


def exhibit(entry: Entry, results: Results, folder: Path) -> Exhibit:
    """Judge and draw an entry's results in their folder.

    Raises:
        InputError: if the folder cannot be written.
        IntegrityError: if a connection failed or delivered wrong bytes.
    """
    judgements = reproduce.save_entry(entry, results, folder, in_gallery=True)
    picture = pictures.rendered(pictures.thumbnail(entry.panels[0], results), "svg")
    write_whole(folder, {"thumbnail.svg": picture})
    return Exhibit(entry, judgements, results.provenance)


def save(exhibits: Sequence[Exhibit], folder: Path) -> None:
    """Write the index and the Markdown tables of verdicts, next to the folders of the entries.

    Raises:
        InputError: if the folder cannot be written.
    """
    about = describe_host()
    page = template("index.html").render(
        papers=_by_paper(exhibits),
        counts=report.counts([each for one in exhibits for each in one.judgements]),
        **{name: about[name] for name in ("command", "version", "commit")},
    )
    write_whole(folder, {INDEX: page.encode(), VERDICTS: markdown(exhibits).encode()})


def _by_paper(exhibits: Sequence[Exhibit]) -> list[tuple[str, list[Exhibit]]]:
    papers: dict[str, list[Exhibit]] = {}
    for each in exhibits:
        papers.setdefault(each.entry.references[0], []).append(each)
    return list(papers.items())


def markdown(exhibits: Sequence[Exhibit]) -> str:
    """The verdicts and the cost of the runs, as tables in Markdown."""
    lines = _on_systems(exhibits)
    lines += [
        "| entry | claims | seeds | runs | wall s | CPU s | version |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for each in exhibits:
        about = each.provenance
        verdicts = ", ".join(
            f"{n} {verdict.words}" for verdict, n in report.counts(each.judgements)
        )
        numbers = (
            len(about["seeds"]),
            len(about["runs"]),
            f"{about['wall_all_s']:,.0f}",
            f"{about['cpu_s']:,.0f}",
        )
        version = f"{about['version']}, {about['commit'] or 'unknown commit'}"
        cells = (f"[{each.entry.id}](#{each.entry.id})", verdicts, *numbers, version)
        lines.append(_row(cells))
    for each in exhibits:
        lines += ["", f"## {each.entry.id}", "", f"{each.entry.question} `{each.command}`", ""]
        lines += ["| claim | statement | measured | verdict |", "|---|---|---|---|"]
        lines += [
            _row((one.claim.id, one.claim.statement, one.measured, _verdict(one)))
            for one in each.judgements
        ]
    return "\n".join(lines) + "\n"


def _on_systems(exhibits: Sequence[Exhibit]) -> list[str]:
    """A table of the reproduced claims on three systems; empty without runs on other systems."""
    found = {each.entry.id: comparison.counts(each.judgements) for each in exhibits}
    compared = {name: numbers for name, numbers in found.items() if numbers[0]}
    if not compared:
        return []
    total = map(sum, zip(*compared.values(), strict=True))
    lines = [
        _row(("entry", *comparison.COUNTED)),
        _row(("---", *["--:"] * len(comparison.COUNTED))),
    ]
    lines += [_row((f"[{name}](#{name})", *numbers)) for name, numbers in compared.items()]
    return [*lines, _row(("all", *total)), ""]


def _verdict(judgement: Judgement) -> str:
    """The conclusion over all systems or the verdict, and the changes that overturn it."""
    robust = "" if not judgement.overturned_by else f"; not robust: {judgement.sensitivity}"
    return (judgement.conclusion or judgement.verdict.words) + robust


def _row(cells: Sequence[Any]) -> str:
    return f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |"
