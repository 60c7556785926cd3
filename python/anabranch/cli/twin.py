"""The command that makes the twin of a captured connection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli.app import (
    JSON,
    MOST_SEEDS,
    app,
    count_option,
    out_option,
    place_option,
    print_file,
    print_report,
)

if TYPE_CHECKING:
    from anabranch.analyze.given import Given
    from anabranch.twins.fit import Fitted


@app.command(
    epilog="Example: anabranch twin server.pcap --out twin.toml && anabranch explain twin.toml"
)
def twin(
    captures: Annotated[
        list[Path],
        typer.Argument(
            metavar="CAPTURE...",
            help="Captures of one connection, at its sender; - is standard input.",
        ),
    ],
    out: Annotated[Path | None, out_option("Write the scenario to this file (TOML).")] = None,
    report: Annotated[
        Path | None,
        place_option("--report", "PATH", "Write a report and its figure to this folder."),
    ] = None,
    seeds: Annotated[
        int | None,
        count_option(
            "Runs to compare with the capture, if they differ.  [default: 5]", 1, MOST_SEEDS
        ),
    ] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Make the scenario that explains a captured connection.

    Estimates each path's rate, delay, queue, losses and jitter, the buffers of both hosts, and the
    pattern of writes, from captures near the sender (pcap or pcapng, also compressed). Then runs
    the scenario in virtual time, and says how far it is from the capture: goodput, what each path
    carried, round-trip times, and data out of order.

    If the best scenario misses goodput by more than 10 %, or the share of a path by more than 10
    points, says so, writes nothing, and exits with 1.

    The scenario file names the uncertainty of each value. Change it to see what would help, or let
    `anabranch explain CAPTURE --what-if` do that.
    """
    from anabranch.analyze import given
    from anabranch.cli import console, tables
    from anabranch.files import prepare_file, prepare_folder, write_file
    from anabranch.results.folder import writing
    from anabranch.twins import comparison
    from anabranch.twins import report as reporting

    if out is not None:
        prepare_file(out, captures)
    if report is not None:
        prepare_folder(report)
    with given.readable(captures) as files:
        fitted = fitted_to(files, seeds)
    names = [each.name for each in files]
    is_twin = comparison.failure(fitted) is None
    if out is not None and is_twin:
        write_file(out, fitted.toml.encode())
    if report is not None and is_twin:
        with writing(report), console.working("drawing the report"):
            reporting.save(fitted, names, report)
    if as_json:
        about = comparison.as_json(fitted, names)
        about["report"] = str(report / "report.html") if report is not None and is_twin else None
        typer.echo(json.dumps(about, indent=2, ensure_ascii=False))
    else:
        for sentence in comparison.finding(fitted):
            console.say(sentence)
        console.say("")
        console.show(tables.of_report(comparison.paths(fitted), "Paths of the twin"))
        console.show(tables.of_report(comparison.table(fitted), "Compared with the capture"))
        for note in fitted.twin.seen.notes:
            console.say(f"note: {note}")
    comparison.require_twin(fitted, given.title(files))
    if out is not None and not as_json:
        print_file("scenario", out)
    if report is not None and not as_json:
        print_report(report)


def fitted_to(files: list[Given], seeds: int | None) -> Fitted:
    """The twin of the connection in captures, with progress on standard error."""
    from anabranch.analyze.given import title
    from anabranch.cli import console
    from anabranch.twins import fit, observed

    name = title(files)
    with console.reading(name) as advance:
        seen = observed.read(files, advance)
    with console.progress("twin") as told:
        return fit.fit(seen, name, f"twin of {files[0].stem}", seeds or fit.SEEDS, told)
