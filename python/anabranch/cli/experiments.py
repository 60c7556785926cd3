"""Commands about published results: list, reproduce, gallery, calibrate, report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli.app import (
    JSON,
    MOST_SEEDS,
    ON,
    STRICT,
    app,
    count_option,
    enter_lab,
    out_option,
    print_judgements,
    write_report,
)
from anabranch.errors import InputError, TooLateError


def _entry_names() -> list[str]:
    """The names that shells complete."""
    from anabranch.gallery import catalogue

    return list(catalogue.names())


@app.command("list")
def list_entries() -> None:
    """List the experiments that can be reproduced."""
    from anabranch.cli import console, tables
    from anabranch.gallery import catalogue

    screen = console.stdout()
    for name in catalogue.names():
        entry = catalogue.entry(name)
        citation, _, paper = entry.references[0].partition(": ")
        count = len(entry.claims)
        screen.print(f"[bold]{name}[/bold]  {count} claim{'' if count == 1 else 's'}")
        screen.print(tables.indented(entry.title))
        source = paper or citation
        screen.print(tables.indented(source[:1].upper() + source[1:], "dim"))


@app.command(epilog="Example: anabranch reproduce nsdi12-fig7 --full --out results/full")
def reproduce(
    entry: Annotated[
        str, typer.Argument(metavar="ID", help="See: anabranch list", autocompletion=_entry_names)
    ],
    full: Annotated[
        bool, typer.Option("--full", help="Run at the paper's scale (minutes to an hour).")
    ] = False,
    seeds: Annotated[
        int | None, count_option("Number of seeds, starting at 1.", 1, MOST_SEEDS)
    ] = None,
    out: Annotated[
        Path | None, out_option("Folder for the results.  [default: results/ID]")
    ] = None,
    strict: Annotated[bool, STRICT] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Compare with this Linux in real time (minutes).")
    ] = False,
    on: Annotated[str | None, ON] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Run a published experiment and judge its claims.

    Prints the claims with their verdicts, and writes claims.json, report.html, figure.svg,
    figure.png and all data to a folder. After an interruption, the same command makes only the
    missing runs.
    """
    from anabranch.cli import console
    from anabranch.gallery import catalogue
    from anabranch.gallery.reproduce import execute
    from anabranch.results.claims import Verdict

    chosen = catalogue.live(entry) if live else catalogue.entry(entry)
    if chosen.is_live:
        enter_lab()
    tier = chosen.full if full else chosen.quick
    tier = replace(tier, seeds=seeds or tier.seeds)
    folder = out or Path("results") / chosen.id
    with console.progress(f"{chosen.id}, {tier.seeds} seeds") as advance:
        results = execute(chosen, tier, folder, on=on, on_progress=advance)
    judgements = write_report(results, folder)
    if as_json:
        about = {
            "entry": chosen.id,
            "tier": tier.name,
            "seeds": results.provenance["seeds"],
            "claims": [judgement.as_json() for judgement in judgements],
            "report": str(folder / "report.html"),
        }
        typer.echo(json.dumps(about, indent=2, ensure_ascii=False))
    else:
        print_judgements(results, judgements, folder)
    if strict and any(each.verdict is Verdict.NOT_REPRODUCED for each in judgements):
        raise typer.Exit(1)


@app.command(epilog="Example: anabranch calibrate --full --out results/calibration")
def calibrate(
    full: Annotated[
        bool, typer.Option("--full", help="Use more seeds and longer runs (over an hour).")
    ] = False,
    out: Annotated[Path, out_option("Folder for the results.")] = Path("results/calibration"),
) -> None:
    """Compare virtual time with this Linux.

    Runs a set of scenarios in virtual time and with this kernel, and measures how far the results
    differ.

    Takes eleven minutes, mostly in real time. Prints goodput and delays side by side, and writes a
    report like that of `anabranch reproduce`.
    """
    from anabranch.cli import console, tables
    from anabranch.gallery import catalogue
    from anabranch.gallery.entries import calibration
    from anabranch.gallery.reproduce import execute

    chosen = catalogue.entry(catalogue.CALIBRATION)
    enter_lab()
    tier = chosen.full if full else chosen.quick
    with console.progress(f"{chosen.id}, {tier.seeds} seeds") as advance:
        results = execute(chosen, tier, out, on_progress=advance)
    console.show(tables.side_by_side(calibration.side_by_side(results)))
    print_judgements(results, write_report(results, out), out)


@app.command("gallery", epilog="Example: anabranch gallery --full --out site/")
def make_gallery(
    entries: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...", help="Entries to run (default: all).", autocompletion=_entry_names
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Run at the papers' scale (hours).")] = False,
    out: Annotated[Path, out_option("Folder for the site.")] = Path("results"),
    on: Annotated[str | None, ON] = None,
) -> None:
    """Reproduce all experiments as a static site.

    Writes index.html, verdicts.md (the same verdicts as tables), and a folder for each entry, as
    `anabranch reproduce` does. Finished runs in these folders are not repeated.
    """
    from anabranch.cli import console, tables
    from anabranch.gallery import catalogue, site
    from anabranch.gallery.reproduce import execute
    from anabranch.reports import report

    chosen = [catalogue.entry(name) for name in entries or catalogue.names()]
    screen = console.stdout()
    if any(entry.is_live for entry in chosen):
        try:
            enter_lab()
        except InputError as error:
            if entries:
                raise
            console.say(f"live entries are left out: {error}")
            chosen = [entry for entry in chosen if not entry.is_live]
    exhibits = []
    for entry in chosen:
        tier = entry.full if full else entry.quick
        folder = out / entry.id
        try:
            with console.progress(f"{entry.id}, {tier.seeds} seeds") as advance:
                results = execute(entry, tier, folder, on=on, on_progress=advance)
        except TooLateError as error:
            console.say(f"{entry.id}: left out: {error}")
            continue
        with console.working(f"{entry.id}: drawing the report"):
            exhibits.append(site.exhibit(entry, results, folder))
        console.say(f"{entry.id}: {exhibits[-1].effort}")
    site.save(exhibits, out)
    rows = [
        (
            each.entry.id,
            ", ".join(f"{n} {verdict.words}" for verdict, n in report.counts(each.judgements)),
        )
        for each in exhibits
    ]
    console.show(tables.Grid("", ("entry", "claims"), rows))
    screen.print(f"site: {out / site.INDEX}", soft_wrap=True)


@app.command("report", epilog="Example: anabranch report results/nsdi12-fig7")
def redraw(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of an earlier run.")],
) -> None:
    """Judge and draw earlier results again."""
    from polars.exceptions import PolarsError

    from anabranch.cli.runs import print_sweep
    from anabranch.results.folder import load, writing

    results = load(folder)
    try:
        with writing(folder):
            judgements = write_report(results, folder)
    except PolarsError as error:  # a table lacks columns that a run writes
        first_line = str(error).splitlines()[0]
        raise InputError(f"{folder}: {first_line}; make the results again") from error
    if "sweep" in results.provenance:
        print_sweep(results, folder)
    else:
        print_judgements(results, judgements, folder)
