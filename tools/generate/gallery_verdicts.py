"""Write the verdicts of the gallery into docs/gallery.md, docs/seeds.md and the entries' pages.

    python tools/generate/gallery_verdicts.py [--check]
    python tools/generate/gallery_verdicts.py --from site/ [--build COMMIT] [ID]...

The verdicts are kept in docs/gallery/verdicts.json. With --from, those of the named entries, or of
all entries that the folder has, are replaced by those of runs in a gallery's folder. Each is kept
with the entry's digest in tests/digests.toml: if that changes, the page calls the verdicts
superseded. With --check, the script changes no file, and fails if a page is out of date.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anabranch.gallery import catalogue, comparison, sensitivity, verdicts
from anabranch.gallery.verdicts import VerdictRecord
from anabranch.results.claims import judge
from anabranch.results.folder import PROVENANCE, load
from anabranch.words import counted

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RECORDS = DOCS / "gallery/verdicts.json"
DIGESTS = ROOT / "tests/digests.toml"
GALLERY, SEEDS = DOCS / "gallery.md", DOCS / "seeds.md"


def digests() -> Mapping[str, str]:
    """The digests of the entries' runs with this version."""
    found: Mapping[str, str] = tomllib.loads(DIGESTS.read_text(encoding="utf-8"))["gallery"]
    return found


def records(kept: Mapping[str, Any]) -> list[VerdictRecord]:
    """The kept records, in the order of the catalogue."""
    now = digests()
    return [
        replace(
            VerdictRecord.of_json(kept[name]["record"]),
            superseded=_superseded(kept[name], now[name]),
        )
        for name in catalogue.names()
        if name in kept
    ]


def _superseded(kept: Mapping[str, Any], digest: str) -> str:
    """The reason why kept verdicts are out of date; empty if they are not."""
    if kept["digest"] == digest:
        return ""
    return kept.get("superseded") or "These runs give other digests today."


def recorded(name: str, gallery: Path, build: str) -> VerdictRecord:
    """The record of an entry's runs in the folder of a gallery."""
    entry, folder = catalogue.entry(name), gallery / name
    results = load(folder)
    variants = sensitivity.variants(results, folder)
    judgements = [judge(claim, results, variants) for claim in entry.claims]
    judgements = comparison.judged(entry, judgements, results, folder)
    finished = (folder / PROVENANCE).stat().st_mtime
    date = datetime.fromtimestamp(finished, UTC).date().isoformat()
    return replace(verdicts.record(entry, judgements, results, folder), build=build, date=date)


def between(text: str, name: str, content: str) -> str:
    """A page's text with other content between two comments with a name.

    Raises:
        ValueError: if the page lacks one of the comments.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the page needs the lines {begin.strip()} and {end.strip()}")
    return f"{before}{begin}\n{content.strip()}\n\n{end}{after}"


def with_verdicts(text: str, conclusions: Mapping[str, str]) -> str:
    """The page of the sources' sentences, with the conclusions of the claims that its rows name.

    Raises:
        KeyError: if a row names a claim that has no conclusion.
    """
    lines = []
    for line in text.splitlines():
        cells = line.split(" | ")
        if len(cells) == 4 and cells[1] not in ("claims", "–"):
            cells[2] = " · ".join(conclusions[claim] for claim in cells[1].split(", "))
        lines.append(" | ".join(cells))
    return "\n".join(lines) + "\n"


def pages(kept: Mapping[str, Any]) -> dict[Path, str]:
    """The pages with the kept records."""
    found = records(kept)
    gallery = GALLERY.read_text(encoding="utf-8")
    gallery = between(gallery, "summary", summary(found))
    with_entries = [(catalogue.entry(each.entry), each) for each in found]
    gallery = between(gallery, "verdicts", verdicts.markdown(with_entries))
    conclusions = {
        claim.id: claim.conclusion.partition(";")[0] for each in found for claim in each.claims
    }
    seeds = with_verdicts(SEEDS.read_text(encoding="utf-8"), conclusions)
    return {GALLERY: gallery, SEEDS: seeds} | dict(map(page_of, found))


def summary(found: Iterable[VerdictRecord]) -> str:
    """Numbers of claims that hold on the source's system, on this engine, and on Linux."""
    compared = [each for each in found if each.on_systems]
    numbers = zip(*(each.on_systems for each in compared), strict=True)
    claims, source, engine, linux, lacking = map(sum, numbers)
    kernels = (
        "the source's own: [the original kernel](mptcp-org.md), over the links that the source used"
    )
    table = verdicts.table(
        ("system", "reproduced"),
        [
            (kernels, source),
            ("this engine, over clean links", engine),
            (f"today's Linux, which lacks the mechanism of {lacking} claims", linux),
        ],
        "lr",
    )
    conclusions = [claim.conclusion for each in compared for claim in each.claims]
    by_artefact = sum(each.startswith(comparison.BY_ARTEFACT) for each in conclusions)
    begin = (
        f"Of {claims} claims of {counted(len(compared), 'source')} that ran a kernel, each judged "
        "on three systems:"
    )
    artefact = (
        f"{counted(by_artefact, 'result')} {'holds' if by_artefact == 1 else 'hold'} only because "
        "of [an artefact of the emulation](gallery/mininet-truesize.md)."
    )
    return f"{begin}\n\n{table}\n\n{artefact}"


def verdicts_of(record: VerdictRecord) -> str:
    """The verdicts of an entry for its own page, with their date and build."""
    tier = "in full" if record.tier == "full" else f"in the {record.tier} tier"
    runs = ", ".join(filter(None, (record.system, f"build {record.build}")))
    line = (
        f"Judged {tier} on {record.date} ({runs}): {record.verdicts}. [All "
        f"values](../gallery.md#{record.entry}). The text of this page may have values of earlier "
        "builds."
    )
    return f"{line}\n\n> **Superseded.** {record.superseded}" if record.superseded else line


def page_of(record: VerdictRecord) -> tuple[Path, str]:
    """An entry's page with its verdicts."""
    page = DOCS / f"gallery/{record.entry}.md"
    return page, between(page.read_text(encoding="utf-8"), "verdicts", verdicts_of(record))


def main() -> int:
    """Record, write or check, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--from", dest="gallery", type=Path, metavar="DIR")
    parser.add_argument("--build", help="commit of the runs, if it is not the one checked out")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    kept = json.loads(RECORDS.read_text(encoding="utf-8"))
    if arguments.gallery:
        describe = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
        build = arguments.build or subprocess.check_output(describe, text=True).strip()
        found = [name for name in catalogue.names() if (arguments.gallery / name).is_dir()]
        for name in arguments.ids or found:
            record = recorded(name, arguments.gallery, build)
            kept[name] = {"digest": digests()[name], "record": record.as_json()}
        text = json.dumps(kept, indent=1, ensure_ascii=False)
        RECORDS.write_text(text + "\n", encoding="utf-8")
    stale = {page: text for page, text in pages(kept).items() if page.read_text("utf-8") != text}
    for page, text in stale.items():
        print(page.relative_to(ROOT))
        if not arguments.check:
            page.write_text(text, encoding="utf-8")
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
