"""Commands that run no scenario: analyze, conform, doctor, policies, schema."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anabranch import _core
from anabranch.cli.app import JSON, QLOG, app, enter_lab, out_option, print_report, require
from anabranch.errors import InputError, unknown
from anabranch.files import require_writable

if TYPE_CHECKING:
    from anabranch.analyze.analysis import Analysis


@app.command("help", epilog="Example: anabranch help sweep")
def show_help(
    context: typer.Context,
    command: Annotated[
        str | None, typer.Argument(metavar="[COMMAND]", help="Command to explain.")
    ] = None,
) -> None:
    """Show the help of anabranch, or of a command."""
    parent = context.parent
    assert parent is not None, "a command has its group as parent"
    group: Any = parent.command
    if command is None:
        typer.echo(group.get_help(parent))
        return
    found = group.commands.get(command)
    if found is None:
        raise unknown("help: unknown command", command, group.commands)
    typer.echo(found.get_help(type(context)(found, info_name=command, parent=parent)))


@app.command()
def policies() -> None:
    """List policies, queues and workloads.

    Lists everything that a scenario selects by name, with its parameters: schedulers, remedies,
    congestion controls, path managers, hosts, queues, middleboxes and workloads.
    """
    from anabranch.cli import console, tables

    screen = console.stdout()
    for line in tables.policies([*_core.policies(), *_core.parts()]):
        screen.print(line)
    for line in tables.workloads(json.loads(_core.json_schema())):
        screen.print(line)
    screen.print("Write your own policy: docs/policies/your-own.md")


class File(StrEnum):
    """A kind of file that has a schema."""

    SCENARIO = "scenario"
    PLAN = "plan"


@app.command(epilog="Example: anabranch schema > scenario.schema.json")
def schema(
    file: Annotated[
        File, typer.Argument(metavar="[scenario|plan]", help="Kind of file.")
    ] = File.SCENARIO,
) -> None:
    """Print the JSON Schema of scenario or plan files.

    Editors use it to complete and check files whose first line is

    \b
        #:schema ./scenario.schema.json
    """  # noqa: D301
    from anabranch.sweeps.schema import PLAN

    if file is File.PLAN:
        typer.echo(json.dumps(PLAN, indent=2))
    else:
        typer.echo(_core.json_schema())


@app.command()
def doctor() -> None:
    """Check whether this host supports live runs and shells."""
    from anabranch.cli import console, tables
    from anabranch.live import lab

    if not lab.is_inside():
        raise typer.Exit(lab.enter(["doctor"]))
    found = lab.doctor()
    for line in tables.capabilities(found):
        console.stdout().print(line)
    possible = not any(each["required"] and each["problem"] for each in found)
    console.stdout().print(f"live runs are {'possible' if possible else 'not possible'} here")
    lacks = any(each["name"] in lab.OF_SHELLS and each["problem"] for each in found)
    console.stdout().print(f"anabranch shell is {'not ' if lacks else ''}possible here")
    if not possible:
        raise typer.Exit(1)


@app.command(epilog="Example: anabranch analyze client.pcapng server.pcap --out results/capture")
def analyze(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Captures: pcapng or pcap, also compressed (.gz, .zst); - is standard input.",
        ),
    ],
    out: Annotated[
        Path | None, out_option("Write tables, drawings and a report to this folder.")
    ] = None,
    csv: Annotated[
        bool, typer.Option("--csv", help="Write tables as CSV instead of Parquet (with --out).")
    ] = False,
    qlog: Annotated[Path | None, QLOG] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Exit with 1 if a packet violates the RFC or could not be judged."
        ),
    ] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Explain a capture: connections and violations.

    Reconstructs the Multipath TCP connections in packet captures, and lists violations of RFC 8684.

    Reads captures from runs (--pcap), tcpdump and Wireshark, also of several interfaces. Merges
    several files by time. Counts the packets that it cannot read. If a file is damaged, shows the
    packets before the damage and exits with 2.
    """
    from anabranch.analyze import analysis
    from anabranch.analyze import qlog as qlogs
    from anabranch.cli import console

    require(out is not None or not csv, "--csv needs --out, the folder for the tables")
    if qlog is not None:
        require_writable(qlog, files)
    with console.reading(files[0].name if len(files) == 1 else f"{len(files)} files") as advance:
        found = analysis.analyze(*files, on_progress=advance)
    if not as_json:
        _print_analysis(found)
    if out is not None:
        _save(found, out, csv=csv)
    if qlog is not None:
        with console.working(f"writing {qlog.name}"):
            qlogs.save(found, qlog)
    if as_json:
        _print_json(found, out)
    elif out is not None:
        print_report(out)
    damages = found.files.filter(found.files["damage"].is_not_null())
    if not damages.is_empty():
        raise InputError(
            "; ".join(f"{name}: {what}" for name, what in damages["file", "damage"].rows())
        )
    if strict and (found.violations.height or found.not_judged):
        raise typer.Exit(1)


def _print_analysis(found: Analysis) -> None:
    from anabranch.analyze import report as analyze_report
    from anabranch.cli import console, tables

    for table in tables.analysis(found):
        console.show(table)
    for note in found.notes:
        console.say(f"note: {note}")
    console.say(analyze_report.verdict(found))
    for line in analyze_report.packets_of_violations(found):
        console.say(f"packets in Wireshark: {line}")


def _print_json(found: Analysis, out: Path | None) -> None:
    from anabranch.analyze import report as analyze_report

    about = analyze_report.as_json(found)
    about["report"] = None if out is None else str(out / "report.html")
    typer.echo(json.dumps(about, indent=2, ensure_ascii=False))


def _save(found: Analysis, out: Path, *, csv: bool) -> None:
    from anabranch.analyze import report as analyze_report
    from anabranch.cli import console
    from anabranch.results.folder import writing

    with writing(out):
        found.save(out, csv=csv)
        with console.reading("drawing") as advance:
            analyze_report.save(found, out, advance)


def _platform(written: str) -> str:
    names = [str(each["name"]) for each in _core.parts() if each["kind"] == "host"]
    if written not in names:
        raise typer.BadParameter(f"{written} is not one of {', '.join(names)}")
    return written


@app.command(epilog="Example: anabranch conform conformance/ --live")
def conform(
    scripts: Annotated[
        list[Path],
        typer.Argument(metavar="FILE|DIR...", help="Scripts (.pkt) or folders of scripts."),
    ],
    live: Annotated[
        bool, typer.Option("--live", help="Test this host's kernel instead of the engine.")
    ] = False,
    platform: Annotated[
        str | None,
        typer.Option(
            parser=_platform,
            metavar="HOST",
            help="TCP parameters of the engine; overrides the scripts. `anabranch policies` lists "
            "the hosts.",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print all segments and calls in script notation.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Play packet scripts against a TCP stack.

    Checks every segment that the stack sends.

    The engine runs in virtual time. With --live, the kernel runs behind a TUN device in a network
    namespace. Exits with 1 if a script fails. docs/conformance.md describes the script language.
    """
    from anabranch import conformance

    files = conformance.find(scripts)
    if live:
        enter_lab()
    results = []
    for file in files:
        results.append(conformance.run(file, live=live, platform=platform))
        if not as_json:
            typer.echo(conformance.text(results[-1], verbose=verbose))
    typer.echo(conformance.to_json(results) if as_json else conformance.summary(results))
    if any(result.verdict == "failed" for result in results):
        raise typer.Exit(1)
