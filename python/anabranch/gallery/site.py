"""The gallery as a static site: an index of all experiments, next to their result folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.files import write_whole
from anabranch.gallery import reproduce, verdicts
from anabranch.gallery.entry import Entry
from anabranch.reports import finding, pictures, report
from anabranch.reports.page import template
from anabranch.results.claims import Judgement
from anabranch.results.folder import Results
from anabranch.results.provenance import describe_host, effort
from anabranch.words import counted

INDEX, VERDICTS = reproduce.INDEX, reproduce.VERDICTS


@dataclass(frozen=True)
class Exhibit:
    """An entry with its judgements and the provenance of its runs."""

    entry: Entry
    judgements: Sequence[Judgement]
    provenance: Mapping[str, Any]
    record: verdicts.VerdictRecord

    @property
    def finding(self) -> list[str]:
        """The finding, in two sentences."""
        return finding.of_claims(self.judgements, self.entry.row.headline)

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
    record = verdicts.record(entry, judgements, results, folder)
    return Exhibit(entry, judgements, results.provenance, record)


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
    tables = verdicts.markdown([(each.entry, each.record) for each in exhibits])
    write_whole(folder, {INDEX: page.encode(), VERDICTS: tables.encode()})


def _by_paper(exhibits: Sequence[Exhibit]) -> list[tuple[str, list[Exhibit]]]:
    papers: dict[str, list[Exhibit]] = {}
    for each in exhibits:
        papers.setdefault(each.entry.references[0], []).append(each)
    return list(papers.items())
