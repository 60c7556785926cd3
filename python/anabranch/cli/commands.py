"""The command `anabranch`.

Exit status: 0 when the run completed; 1 with ``--strict`` when a claim is not reproduced or a
capture violates RFC 8684, or when a run broke a promise of the engine; 2 for bad input, with one
line on standard error, which follows the traceback if a policy of the user's own failed.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anabranch import _core
from anabranch.errors import AnabranchError, InputError, IntegrityError, PolicyError, TooLateError

if TYPE_CHECKING:
    from anabranch.results.claims import Judgement
    from anabranch.results.folder import Results

# What the commands need beyond this is imported when it is needed, so that help comes at once.

app = typer.Typer(
    name="anabranch",
    help="Multipath TCP that you can run, measure, explain and trust.",
    epilog="Example: anabranch reproduce nsdi12-fig7 --out results/nsdi12-fig7",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_MAX_SEED = 2**64 - 1


class Stack(StrEnum):
    """Whose TCP a host of a live run runs."""

    ENGINE = "engine"
    KERNEL = "kernel"


class Platform(StrEnum):
    """Where the engine's TCP parameters come from."""

    LINUX = "linux"
    RFC = "rfc"


_INTERRUPTED = 130

_ON: Any = typer.Option(
    "--on", metavar="dask://HOST:PORT", help="Run on a Dask cluster instead of all local cores."
)


def main() -> None:
    """Run the command line and exit."""
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: Sequence[str]) -> int:
    """Run the command line with these arguments and return the exit status."""
    warnings.showwarning = _warn
    try:
        status = app(list(arguments) or ["--help"], prog_name="anabranch", standalone_mode=False)
    except PolicyError as error:
        traceback.print_exception(error.__cause__, file=sys.stderr)
        return _complain(str(error), error.exit_status)
    except (AnabranchError, _core.ScenarioError) as error:
        return _complain(str(error), getattr(error, "exit_status", 2))
    except typer.TyperException as error:
        return _complain(f"{error.format_message()} (see: anabranch --help)", 2)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if status == _INTERRUPTED:
        return _complain("interrupted", _INTERRUPTED)
    return status if isinstance(status, int) else 0


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    _complain(str(message), 0)


def _complain(message: str, status: int) -> int:
    line = " ".join(message.split())
    print(f"anabranch: {line}", file=sys.stderr)
    return status


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"anabranch {_core.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


@app.command("list")
def list_entries() -> None:
    """List the published results that can be reproduced."""
    from rich.table import Table

    from anabranch.cli import console
    from anabranch.gallery import catalogue

    table = Table("entry", "claims", "title", "paper", box=None, pad_edge=False)
    for name in catalogue.names():
        entry = catalogue.entry(name)
        _, _, paper = entry.references[0].partition(": ")
        table.add_row(name, str(len(entry.claims)), entry.title, paper)
    console.stdout().print(table)


@app.command()
def policies() -> None:
    """List everything that a scenario chooses by name, with its parameters.

    Schedulers, remedies, congestion controls, path managers; hosts, queues, middleboxes and
    workloads.
    """
    from anabranch.cli import console

    screen = console.stdout()
    for table in console.policy_tables([*_core.policies(), *_core.parts()]):
        screen.print(table)
    screen.print(console.workload_table(json.loads(_core.json_schema())))
    screen.print("A policy of your own: docs/policies/your-own.md")


@app.command(epilog="Example: anabranch reproduce nsdi12-fig7 --full --out results/full")
def reproduce(
    entry: Annotated[str, typer.Argument(metavar="ID", help="See: anabranch list")],
    full: Annotated[
        bool, typer.Option("--full", help="At the size of the paper; takes minutes to an hour.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Number of seeds, from 1 on.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results.  [default: results/ID]")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a claim is not reproduced.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="In real time, beside this Linux' own; takes minutes.")
    ] = False,
    on: Annotated[str | None, _ON] = None,
) -> None:
    """Run a published experiment and judge its claims, one by one.

    Prints a table of claims, and writes claims.json, report.html, figure.svg, figure.png and all
    data to a folder. After an interruption the same command makes only the runs that are missing.
    """
    from anabranch.cli import console
    from anabranch.gallery import catalogue
    from anabranch.gallery.reproduce import execute
    from anabranch.results.claims import Verdict

    chosen = catalogue.live(entry) if live else catalogue.entry(entry)
    if chosen.is_live:
        _enter_lab()
    tier = chosen.full if full else chosen.quick
    tier = replace(tier, seeds=seeds or tier.seeds)
    folder = out or Path("results") / chosen.id
    with console.progress(f"{chosen.id}, {tier.seeds} seeds") as advance:
        results = execute(chosen, tier, folder, on=on, on_progress=advance)
    judgements = _write_report(results, folder)
    _print_judgements(results, judgements, folder)
    if strict and any(each.verdict is Verdict.NOT_REPRODUCED for each in judgements):
        raise typer.Exit(1)


@app.command(epilog="Example: anabranch calibrate --full --out results/calibration")
def calibrate(
    full: Annotated[
        bool, typer.Option("--full", help="More seeds, longer runs; takes more than an hour.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "results/calibration"
    ),
) -> None:
    """Run a set of scenarios in virtual time and with this Linux, and say how far they differ.

    Takes eleven minutes, most of it in real time. Prints goodput and delays side by side, and
    writes a report as `anabranch reproduce` does.
    """
    from anabranch.cli import console
    from anabranch.gallery import catalogue
    from anabranch.gallery.entries import calibration
    from anabranch.gallery.reproduce import execute

    chosen = catalogue.entry(catalogue.CALIBRATION)
    _enter_lab()
    tier = chosen.full if full else chosen.quick
    with console.progress(f"{chosen.id}, {tier.seeds} seeds") as advance:
        results = execute(chosen, tier, out, on_progress=advance)
    console.stdout().print(console.side_by_side(calibration.side_by_side(results)))
    _print_judgements(results, _write_report(results, out), out)


@app.command("gallery", epilog="Example: anabranch gallery --full --out site/")
def make_gallery(
    entries: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Only these; by default all.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="At the size of the papers; takes hours.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder of the site.")] = Path("results"),
    on: Annotated[str | None, _ON] = None,
) -> None:
    """Reproduce every entry, and make one static site of all reports.

    Writes index.html, verdicts.md (the same as tables), and a folder for each entry, as
    `anabranch reproduce` does. Runs that the folders hold already are not made again.
    """
    from rich.table import Table

    from anabranch.cli import console
    from anabranch.gallery import catalogue, site
    from anabranch.reports import report

    chosen = [catalogue.entry(name) for name in entries or catalogue.names()]
    screen = console.stdout()
    if any(entry.is_live for entry in chosen):
        try:
            _enter_lab()
        except InputError as error:
            if entries:
                raise
            screen.print(f"without entries in real time: {error}", soft_wrap=True)
            chosen = [entry for entry in chosen if not entry.is_live]
    exhibits = []
    for entry in chosen:
        tier = entry.full if full else entry.quick
        try:
            exhibits.append(site.exhibit(entry, tier, out / entry.id, console.progress, on=on))
        except TooLateError as error:
            screen.print(f"{entry.id}: left out: {error}", soft_wrap=True, highlight=False)
            continue
        screen.print(f"{entry.id}: {exhibits[-1].effort}", soft_wrap=True, highlight=False)
    site.save(exhibits, out)
    table = Table("entry", "claims", box=None, pad_edge=False)
    for each in exhibits:
        words = (f"{count} {verdict.words}" for verdict, count in report.counts(each.judgements))
        table.add_row(each.entry.id, ", ".join(words))
    screen.print(table)
    screen.print(f"site: {out / site.INDEX}", soft_wrap=True)


def _own_option(kind: str) -> Any:
    return typer.Option(metavar="FILE.py:CLASS", help=f"A {kind} of your own.")


@app.command(
    "run", epilog="Example: anabranch run examples/wifi_3g.toml --seed 7 --pcap trace.pcapng"
)
def run_scenario(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="A scenario.")],
    seed: Annotated[int, typer.Option(min=0, max=_MAX_SEED, help="Of all randomness.")] = 1,
    pcap: Annotated[
        Path | None, typer.Option(help="Write a capture of all links (pcapng) here.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write results and a report here.")] = None,
    scheduler: Annotated[str | None, _own_option("scheduler")] = None,
    congestion_control: Annotated[str | None, _own_option("congestion control")] = None,
    path_manager: Annotated[str | None, _own_option("path manager")] = None,
    live: Annotated[
        bool, typer.Option("--live", help="In real time (Linux); takes as long as it lasts.")
    ] = False,
    client: Annotated[Stack, typer.Option(help="With --live: whose TCP it runs.")] = Stack.KERNEL,
    server: Annotated[Stack, typer.Option(help="With --live: whose TCP it runs.")] = Stack.KERNEL,
) -> None:
    """Run a scenario and print goodput, delays, and what every path carried.

    A policy of your own goes to the connections that the scenario gives an "own:NAME", or if it
    gives none, to all Multipath TCP connections: --scheduler examples/my_scheduler.py:LowestRtt
    """
    from anabranch.batches.single import single
    from anabranch.cli import console
    from anabranch.reports import single_run
    from anabranch.results.folder import prepare_folder
    from anabranch.runs.run import read_scenario, run_toml
    from anabranch.scenarios import own

    toml = read_scenario(file)
    chosen = own.Chosen(scheduler, congestion_control, path_manager)
    if live and chosen != own.Chosen(None, None, None):
        raise InputError("--live: policies of your own run in virtual time only")
    toml, made_by = chosen.put_into(toml, str(file))
    if live or out is not None:
        _core.validate(toml, str(file))
    if live:
        _enter_lab()
    if out is not None:
        prepare_folder(out)
    started = time.perf_counter()
    capture = None if pcap is None else str(pcap)
    conditions = None
    if live:
        from anabranch.live.run import run_toml as run_live

        stacks = (client.value, server.value)
        run, conditions = run_live(toml, str(file), seed, stacks, capture)
    else:
        run = run_toml(toml, str(file), seed, capture, made_by)
    screen = console.stdout()
    for table in console.run_tables(run):
        screen.print(table)
    screen.print(console.effort_of(run, conditions))
    for policy in run.own_policies:
        screen.print(f"{policy.connection}: {policy.kind} {policy.name} of your own")
    if out is not None:
        results = single(run, run.settings["name"], time.perf_counter() - started, conditions)
        results.save(out)
        single_run.save(results, out)
        screen.print(f"report: {out / 'report.html'}", soft_wrap=True)
    if conditions is not None and not conditions.valid:
        raise IntegrityError(
            f"{file}: the emulator was late too often; repeat on a quieter machine"
        )


def _enter_lab() -> None:
    """Start the command again where live runs are possible, unless it has been."""
    from anabranch.live import lab

    if not lab.is_inside():
        raise typer.Exit(lab.enter(sys.argv[1:]))
    lab.settle_in()


@app.command()
def doctor() -> None:
    """Try what live runs need on this host, and say what is missing and how to get it."""
    from rich.table import Table

    from anabranch.cli import console
    from anabranch.live import lab

    if not lab.is_inside():
        raise typer.Exit(lab.enter(["doctor"]))
    table = Table("works", "capability", "for", "why not", "what to do", box=None, pad_edge=False)
    found = lab.doctor()
    for each in found:
        works = each["problem"] is None
        missing = "" if works else each["remedy"]
        table.add_row(
            "yes" if works else "NO", each["name"], each["purpose"], each["problem"], missing
        )
    screen = console.stdout()
    screen.print(table)
    possible = not any(each["required"] and each["problem"] for each in found)
    screen.print(f"live runs are {'possible' if possible else 'not possible'} here")
    if not possible:
        raise typer.Exit(1)


@app.command(
    "sweep", epilog="Example: anabranch sweep examples/sweep_wifi_3g.toml --out results/sweep"
)
def run_sweep(
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN.toml", help="Base scenario, seeds and factors.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results.  [default: results/NAME]")
    ] = None,
    on: Annotated[str | None, _ON] = None,
) -> None:
    """Run a scenario under all combinations of factors, with several seeds each.

    After an interruption the same command makes only the runs that are missing, and so it does
    when the plan has changed.
    """
    from anabranch.cli import console
    from anabranch.sweeps import plan as sweep_plan
    from anabranch.sweeps.sweep import sweep

    planned = sweep_plan.read(plan)
    folder = out or Path("results") / planned.name
    with console.progress(planned.name) as advance:
        results = sweep(planned, folder, on=on, on_progress=advance)
    _write_report(results, folder)
    _print_sweep(results, folder)


@app.command(epilog="Example: anabranch compare results/sweep --by scheduler min_rtt ecf")
def compare(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR [DIR]", help="Two results, or one with --by.")
    ],
    by: Annotated[
        tuple[str, str, str] | None,
        typer.Option(metavar="FACTOR A B", help="Compare two levels of a factor."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the comparison as JSON here.")] = None,
) -> None:
    """Compare runs with the same seeds, pair by pair: what changes from A to B.

    Prints medians of the paired differences with 95 % bootstrap intervals.
    """
    from anabranch.cli import console
    from anabranch.results.folder import load
    from anabranch.sweeps import compare as comparing

    if len(folders) != (2 if by is None else 1):
        raise InputError("compare: name two folders, or one folder and --by FACTOR A B")
    loaded = [load(folder) for folder in folders]
    if by is None:
        names = (str(folders[0]), str(folders[1]))
        comparison = comparing.folders(loaded[0], loaded[1], names)
    else:
        comparison = comparing.levels(loaded[0], *by)
    screen = console.stdout()
    screen.print(f"A: {comparison.a}\nB: {comparison.b}", markup=False)
    screen.print(console.table(comparison.table(), "Medians of paired differences"))
    for words in (*comparison.changed, *(f"note: {note}" for note in comparison.notes)):
        screen.print(words, markup=False, soft_wrap=True)
    if out is not None:
        comparison.save(out)


@app.command("report", epilog="Example: anabranch report results/nsdi12-fig7")
def redraw(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of an earlier run.")],
) -> None:
    """Judge and draw again from a folder of results, without running anything."""
    from anabranch.results.folder import load, prepare_folder

    results = load(folder)
    prepare_folder(folder)
    judgements = _write_report(results, folder)
    if "sweep" in results.provenance:
        _print_sweep(results, folder)
    else:
        _print_judgements(results, judgements, folder)


@app.command(epilog="Example: anabranch analyze client.pcapng server.pcap --out results/capture")
def analyze(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Captures: pcapng or pcap.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write tables, drawings and a report here.")
    ] = None,
    csv: Annotated[
        bool, typer.Option("--csv", help="With --out: tables as CSV instead of Parquet.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if anything violates RFC 8684.")
    ] = False,
) -> None:
    """Reconstruct the Multipath TCP connections of captures, and say what violates RFC 8684.

    Any capture will do: of a run (--pcap), of tcpdump or Wireshark, of several interfaces. Several
    files are merged by time. Exit status: 2 too if a file is damaged; what comes before the damage
    is shown all the same.
    """
    from anabranch.analyze import analysis
    from anabranch.analyze import report as analyze_report
    from anabranch.cli import console
    from anabranch.results.folder import prepare_folder

    if out is not None:
        prepare_folder(out)
    with console.reading(files[0].name if len(files) == 1 else f"{len(files)} files") as advance:
        found = analysis.analyze(*files, on_progress=advance)
    screen = console.stdout()
    for table in console.analysis_tables(found):
        screen.print(table)
    for note in found.notes:
        screen.print(f"note: {note}", markup=False, soft_wrap=True)
    count = found.violations.height
    screen.print(f"{count or 'no'} violation{'' if count == 1 else 's'} of RFC 8684")
    if out is not None:
        found.save(out, csv=csv)
        with console.reading("drawing") as advance:
            analyze_report.save(found, out, advance)
        screen.print(f"report: {out / 'report.html'}", soft_wrap=True)
    damages = found.files.filter(found.files["damage"].is_not_null())
    if not damages.is_empty():
        raise InputError(
            "; ".join(f"{name}: {what}" for name, what in damages["file", "damage"].rows())
        )
    if strict and count:
        raise typer.Exit(1)


@app.command(epilog="Example: anabranch conform conformance/ --live")
def conform(
    scripts: Annotated[
        list[Path], typer.Argument(metavar="FILE.pkt|DIR...", help="Scripts, or folders of them.")
    ],
    live: Annotated[
        bool, typer.Option("--live", help="Test this host's kernel instead of the engine.")
    ] = False,
    platform: Annotated[
        Platform | None,
        typer.Option(help="TCP parameters of the engine, whatever the scripts say."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print all segments and calls, as a script.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Play packet scripts and judge every segment that the stack sends.

    The engine runs in virtual time, the kernel behind a TUN device in a network namespace. Exits
    with 1 if a script fails. docs/conformance.md describes the language.
    """
    from anabranch import conformance

    files = conformance.find(scripts)
    if live:
        _enter_lab()
    name = None if platform is None else platform.value
    results = []
    for file in files:
        results.append(conformance.run(file, live=live, platform=name))
        if not as_json:
            typer.echo(conformance.text(results[-1], verbose=verbose))
    typer.echo(conformance.to_json(results) if as_json else conformance.summary(results))
    if any(result.verdict == "failed" for result in results):
        raise typer.Exit(1)


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, with all keys and their defaults."""
    typer.echo(_core.json_schema())


def _write_report(results: Results, folder: Path) -> list[Judgement]:
    from anabranch.gallery import catalogue
    from anabranch.gallery.reproduce import save_entry
    from anabranch.reports import single_run
    from anabranch.sweeps import report as sweep_report

    if "sweep" in results.provenance:
        sweep_report.save(results, folder)
        return []
    if results.provenance["entry"] is None:
        single_run.save(results, folder)
        return []
    return save_entry(catalogue.entry(results.provenance["entry"]), results, folder)


def _print_judgements(results: Results, judgements: Sequence[Judgement], folder: Path) -> None:
    from anabranch.cli import console
    from anabranch.results.provenance import effort

    screen = console.stdout()
    if judgements:
        screen.print(console.claims_table(judgements))
        screen.print(effort(results.provenance))
    screen.print(f"report: {folder / 'report.html'}", soft_wrap=True)


def _print_sweep(results: Results, folder: Path) -> None:
    from anabranch.cli import console
    from anabranch.results.provenance import effort
    from anabranch.sweeps import report as sweep_report

    screen = console.stdout()
    cells = results.runs["cell"].n_unique()
    if cells <= sweep_report.MAX_CELLS_SHOWN:
        screen.print(
            console.table(sweep_report.summary(results), "Medians over seeds [95 % interval]")
        )
    else:
        screen.print(f"{cells} cells: see the report, or read {folder / 'runs.parquet'}")
    if sweep_report.all_seeds_alike(results):
        screen.print("every seed gave the same numbers: nothing in the scenario is random")
    screen.print(effort(results.provenance))
    screen.print(f"report: {folder / 'report.html'}", soft_wrap=True)
