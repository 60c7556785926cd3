"""Commands about published results: list, reproduce, gallery, calibrate, report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli.app import (
    JSON,
    MACHINE,
    MOST_SEEDS,
    ON,
    STRICT,
    Machine,
    app,
    count_option,
    enter_lab,
    figure_of,
    out_option,
    place_option,
    print_file,
    print_judgements,
    require,
    seed_option,
    write_report,
)
from anabranch.errors import InputError, TooLateError
from anabranch.words import counted


def _entry_names() -> list[str]:
    """The names that shells complete."""
    from anabranch.gallery import catalogue

    return list(catalogue.names())


@app.command("list")
def list_entries() -> None:
    """List the experiments that can be reproduced.

    Names how long each takes on two cores: as `anabranch reproduce` runs it, and with --full.
    """
    from anabranch.cli import console, tables
    from anabranch.gallery import catalogue

    screen = console.stdout()
    for name in catalogue.names():
        entry = catalogue.entry(name)
        citation, _, paper = entry.references[0].partition(": ")
        quick, full = map(catalogue.duration, catalogue.SECONDS[name])
        claims = counted(len(entry.claims), "claim")
        screen.print(f"[bold]{name}[/bold]  {claims} · {quick}, with --full {full}")
        screen.print(tables.indented(entry.row.title))
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

    Prints the claims with their verdicts, and writes claims.json, report.html, the figure (SVG,
    PNG, PDF) and all data to a folder. After an interruption, the same command makes only the
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
    with console.progress(f"{chosen.id}, {counted(tier.seeds, 'seed')}") as advance:
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


@app.command(epilog="Example: anabranch calibrate --random 24 --seed 7 --in linux-vm")
def calibrate(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Your own scenarios (default: a fixed set)."),
    ] = None,
    random: Annotated[int | None, count_option("Draw this many scenarios.", 1, 10_000)] = None,
    seed: Annotated[int | None, seed_option("Seed of --random.  [default: 1]")] = None,
    failing: Annotated[
        bool, typer.Option("--failing", help="Let paths fail in the scenarios of --random.")
    ] = False,
    seeds: Annotated[
        int | None, count_option("Number of seeds of each run, starting at 1.", 1, MOST_SEEDS)
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Use five seeds (most of an hour).")] = False,
    machine: Annotated[Machine | None, MACHINE] = None,
    stack: Annotated[
        str | None,
        typer.Option("--stack", help="Compare with recorded runs of a stack: mptcp.org-0.89."),
    ] = None,
    out: Annotated[
        Path | None, out_option("Folder for the results.  [default: results/calibration...]")
    ] = None,
    strict: Annotated[bool, STRICT] = False,
) -> None:
    """Compare virtual time with Linux.

    Runs scenarios in virtual time and with Linux, and measures from the first byte how far
    completion times, goodput and delays differ. Prints all of them side by side, and the
    distribution of the deviations: median, 90th percentile and worst.

    The fixed set takes eleven minutes, mostly in real time. With several seeds, the report says
    which deviations are within Linux's own spread. The results folder has every scenario as a file
    for `anabranch run`.

    With --stack, the kernel is that of a published stack, whose runs were recorded. This takes half
    a minute, and needs no Linux.
    """
    if stack is not None:
        alone = not (files or random or seed is not None or seeds or full or machine or strict)
        alone = alone and not failing
        require(alone, "--stack has its own scenarios and seeds: leave out the other options")
        _compare_with_recorded(stack, out or Path(f"results/calibration-{stack}"))
        return
    from anabranch.calibration import entry as calibration
    from anabranch.calibration import words
    from anabranch.cli import console, tables
    from anabranch.cli.messages import complain
    from anabranch.gallery.reproduce import execute
    from anabranch.live import vm
    from anabranch.results.claims import Verdict
    from anabranch.results.folder import require_outside

    require(not (files and random), "--random draws scenarios: leave out the files")
    require(seed is None or random is not None, "--seed needs --random")
    require(not failing or random is not None, "--failing needs --random")
    require(seeds is None or not full, "--full means five seeds: leave out --seeds")
    where = machine or Machine.HERE
    chosen, folder, notes = calibration.chosen(files or (), random, seed, where, failing=failing)
    require_outside(out or folder, files or ())
    if where is Machine.HERE:
        enter_lab()
    else:
        vm.kernel()
    for note in notes:
        complain(f"note: {note}")
    tier = chosen.full if full else chosen.quick
    tier = replace(tier, seeds=seeds or tier.seeds)
    with console.progress(f"{chosen.id}, {counted(tier.seeds, 'seed')}") as advance:
        results = execute(chosen, tier, out or folder, on_progress=advance)
    judgements = write_report(results, out or folder)
    for title, table in words.tables(results).items():
        console.show(tables.of_report(table, title))
    for sentence in words.finding(results):
        console.say(sentence)
    print_judgements(results, judgements, out or folder)
    if strict and any(each.verdict is not Verdict.REPRODUCED for each in judgements):
        raise typer.Exit(1)


def _compare_with_recorded(stack: str, out: Path) -> None:
    """Compare the model of a stack with recorded runs of its kernel."""
    from anabranch.calibration import recorded
    from anabranch.cli import console, tables
    from anabranch.files import prepare_folder, write_whole

    require(
        stack in recorded.STACKS,
        f"--stack {stack}: no recorded runs; write one of: {', '.join(recorded.STACKS)}",
    )
    prepare_folder(out)
    with console.progress(f"calibration, {stack}") as advance:
        compared = recorded.compare(stack, advance)
    for title, table in recorded.tables(compared).items():
        console.show(tables.of_report(table, title))
    for sentence in recorded.finding(compared):
        console.say(sentence)
    write_whole(out, {"comparison.csv": recorded.frame(compared).write_csv().encode()})
    print_file("written", out / "comparison.csv")


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
            with console.progress(f"{entry.id}, {counted(tier.seeds, 'seed')}") as advance:
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
    print_file("site", out / site.INDEX)


@app.command("report", epilog="Example: anabranch report results/nsdi12-fig7 --figure figure.pdf")
def redraw(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of an earlier run.")],
    figure: Annotated[
        Path | None,
        place_option("--figure", "FILE", "Also write the figure to this .pdf, .pgf, .svg or .png."),
    ] = None,
) -> None:
    """Judge and draw earlier results again.

    The folder has the figure as figure.svg, figure.png and figure.pdf. A PGF figure, for LaTeX
    documents, needs LaTeX.
    """
    from polars.exceptions import PolarsError

    from anabranch.cli.runs import print_sweep
    from anabranch.files import prepare_file, write_file
    from anabranch.reports import pictures
    from anabranch.results.folder import load, writing

    form = None if figure is None else pictures.form_of(figure)
    results = load(folder)
    if figure is not None:
        prepare_file(figure)
    try:
        with writing(folder):
            judgements = write_report(results, folder)
        if figure is not None and form is not None:
            write_file(figure, pictures.rendered(figure_of(results), form))
    except PolarsError as error:  # a table lacks columns that a run writes
        first_line = str(error).splitlines()[0]
        raise InputError(f"{folder}: {first_line}; make the results again") from error
    if "sweep" in results.provenance:
        print_sweep(results, folder)
    else:
        print_judgements(results, judgements, folder)
    if figure is not None:
        print_file("figure", figure)
