"""Commands that run the user's own scenarios: run, sweep, compare."""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anabranch.cli.app import (
    CONGESTION_CONTROL,
    JSON,
    MACHINE,
    MOST_SEEDS,
    ON,
    PATH_MANAGER,
    PCAP,
    PCAP_LIMIT,
    QLOG,
    SCHEDULER,
    Machine,
    app,
    capture_of,
    count_option,
    enter_lab,
    import_drawing_early,
    out_option,
    overrides_of,
    print_report,
    require,
    seed_option,
    write_report,
)
from anabranch.errors import IntegrityError
from anabranch.files import require_other, require_writable
from anabranch.words import counted

if TYPE_CHECKING:
    from anabranch import _core
    from anabranch.live.hosts import Hosts
    from anabranch.live.run import Conditions
    from anabranch.results.folder import Results
    from anabranch.runs.run import Capture, Run
    from anabranch.scenarios.overrides import Overrides


class Stack(StrEnum):
    """The TCP stack of a host in a live run."""

    ENGINE = "engine"
    KERNEL = "kernel"


class CaptureAt(StrEnum):
    """The hosts at which packets are captured."""

    CLIENT = "client"
    SERVER = "server"
    BOTH = "both"


LIVE: Any = typer.Option("--live", help="Run Linux's own TCP, in real time (Linux only).")
CLIENT: Any = typer.Option(
    metavar="engine|kernel", help="TCP stack of the client with --live.  [default: kernel]"
)
SERVER: Any = typer.Option(
    metavar="engine|kernel", help="TCP stack of the server with --live.  [default: kernel]"
)


@app.command(
    "run", epilog="Example: anabranch run examples/wifi_3g.toml --set path.wifi.rate=20Mbit/s"
)
def run_scenarios(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="One or more scenarios (TOML).")
    ],
    seed: Annotated[int, seed_option("Random seed.")] = 1,
    seeds: Annotated[
        int | None, count_option("Number of seeds, starting at --seed.", 1, MOST_SEEDS)
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the scenario."),
    ] = None,
    scheduler: Annotated[str | None, SCHEDULER] = None,
    congestion_control: Annotated[str | None, CONGESTION_CONTROL] = None,
    path_manager: Annotated[str | None, PATH_MANAGER] = None,
    out: Annotated[Path | None, out_option("Write results and a report to this folder.")] = None,
    pcap: Annotated[Path | None, PCAP] = None,
    pcap_at: Annotated[
        CaptureAt | None,
        typer.Option(help="Host that captures.  [default: the sending side]"),
    ] = None,
    snap: Annotated[
        int | None, count_option("Keep this many bytes of each captured packet.", 1, 65_535)
    ] = None,
    pcap_limit: Annotated[str | None, PCAP_LIMIT] = None,
    qlog: Annotated[Path | None, QLOG] = None,
    live: Annotated[bool, LIVE] = False,
    client: Annotated[Stack | None, CLIENT] = None,
    server: Annotated[Stack | None, SERVER] = None,
    machine: Annotated[Machine | None, MACHINE] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Run your own scenarios.

    Prints goodput, delays, and the bytes that each path carried.

    With several files or --seeds, runs each file with each seed on all cores, and prints medians.

    Your own policy is a class in a Python file:

    \b
        --scheduler examples/my_scheduler.py:LowestRtt

    It applies to all Multipath TCP connections, or replaces the custom policies of a scenario that
    has some. docs/policies/your-own.md shows how to write one.
    """  # noqa: D301
    from anabranch.results.folder import require_outside
    from anabranch.runs.limits import seeds as successive

    overrides = overrides_of(settings, scheduler, congestion_control, path_manager)
    hosts = _hosts(live, client, server, machine)
    if out is not None:
        require_outside(out, files)
    if len(files) > 1 or seeds is not None:
        for option, output in (("--pcap", pcap), ("--qlog", qlog)):
            require(output is None, f"{option} needs a single scenario without --seeds")
        _run_several(files, overrides, successive(seed, seeds or 1), hosts, out, as_json)
        return
    for option, value in (("--pcap-at", pcap_at), ("--snap", snap)):
        require(pcap is not None or value is None, f"{option} needs --pcap")
    at: Any = None if pcap_at is None else pcap_at.value
    capture = capture_of(pcap, pcap_limit, at, snap)
    if pcap is not None:
        require_other(pcap, files)
    if qlog is not None:
        require_writable(qlog, [*files, *([] if pcap is None else [pcap])])
    with _logged(qlog, capture) as used:
        _run_one(files[0], overrides, seed, used, hosts, out, as_json)


@contextlib.contextmanager
def _logged(qlog: Path | None, capture: Capture | None) -> Iterator[Capture | None]:
    """The capture of a run, from which this writes the qlog file after the run.

    Without ``--pcap``, the capture is a temporary file.
    """
    if qlog is None:
        yield capture
        return
    from anabranch.analyze import analysis
    from anabranch.analyze import qlog as qlogs
    from anabranch.cli import console
    from anabranch.runs.run import Capture

    with tempfile.TemporaryDirectory(prefix="anabranch-", ignore_cleanup_errors=True) as folder:
        used = capture or Capture(Path(folder) / "run.pcapng", snap=qlogs.SNAP)
        yield used
        with console.reading("reading the capture") as advance:
            found = analysis.analyze(used.file, on_progress=advance)
        with console.working(f"writing {qlog.name}"):
            qlogs.save(found, qlog)


def _hosts(
    live: bool, client: Stack | None, server: Stack | None, machine: Machine | None
) -> Hosts | None:
    """The hosts of live runs; `None` in virtual time."""
    from anabranch.live import vm
    from anabranch.live.hosts import Hosts

    named = (client, server, machine)
    require(live or named == (None, None, None), "--client, --server and --in need --live")
    if not live:
        return None
    hosts = Hosts(client or Stack.KERNEL, server or Stack.KERNEL, machine or Machine.HERE)
    if not hosts.need_real_time:
        vm.kernel()
    return hosts


def _run_one(
    file: Path,
    overrides: Overrides,
    seed: int,
    capture: Capture | None,
    hosts: Hosts | None,
    out: Path | None,
    as_json: bool,
) -> None:
    from anabranch.batches.single import single
    from anabranch.cli import console
    from anabranch.live import support
    from anabranch.results.folder import writing
    from anabranch.scenarios import loading

    scenario = loading.of_file(file, overrides)
    if hosts is not None:
        support.require_possible(hosts, scenario)
    if hosts is not None and hosts.need_real_time:
        enter_lab()
    if capture is not None:
        capture.require_writable()
    console.caution(scenario, capture)
    with contextlib.ExitStack() as stack:
        if out is not None:
            stack.enter_context(writing(out))
        started = time.perf_counter()
        run, conditions = _made(scenario, seed, capture, hosts)
        _print_run(run, conditions, out, as_json)
        if out is not None:
            results = single(run, run.settings["name"], time.perf_counter() - started, conditions)
            results.save(out)
            write_report(results, out)
    if out is not None and not as_json:
        print_report(out)
    if conditions is not None and not conditions.valid:
        raise IntegrityError(
            f"{file}: the emulator was late too often; repeat the run on a less busy machine"
        )


def _made(
    scenario: _core.Scenario, seed: int, capture: Capture | None, hosts: Hosts | None
) -> tuple[Run, Conditions | None]:
    """Run a scenario in virtual time, or live if `hosts` are given."""
    from anabranch.cli import console
    from anabranch.runs.run import run_scenario

    file, duration_s = scenario.file, scenario.duration_ns / 1e9
    if hosts is None:
        with console.simulating(file, duration_s) as on_tick:
            run = run_scenario(scenario, seed, capture, on_tick)
        return run, None
    from anabranch.live.run import run_repeatedly

    real_time = hosts.need_real_time
    waiting = console.elapsing(file, duration_s) if real_time else console.working(file)
    with waiting:
        return run_repeatedly(scenario, seed, hosts, capture)


def _print_run(run: Run, conditions: Conditions | None, out: Path | None, as_json: bool) -> None:
    from anabranch.cli import console, tables

    if as_json:
        about = tables.run_json(run, conditions)
        about["report"] = None if out is None else str(out / "report.html")
        typer.echo(json.dumps(about, indent=2, ensure_ascii=False))
        return
    for table in tables.run(run, conditions):
        console.show(table)
    for line in tables.effort_of(run, conditions).splitlines():
        console.say(line)
    for policy in run.custom_policies:
        kind = policy.kind.replace("_", " ")
        console.say(f"{policy.connection} uses your own {kind} {policy.name}")
    if (bad := tables.bad_decisions(run)) is not None:
        console.say(f"note: {bad}")
    if run.pcap_full_ns is not None:
        console.say(f"the capture reached its limit {run.pcap_full_ns / 1e9:g} s into the run")


def _run_several(
    files: list[Path],
    overrides: Overrides,
    seeds: range,
    hosts: Hosts | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run each scenario with each seed, as a sweep whose only factor is the scenario."""
    from anabranch.batches import batch
    from anabranch.cli import console
    from anabranch.sweeps import several

    about, tasks = several.tasks(files, overrides, seeds, hosts)
    if hosts is not None and hosts.need_real_time:
        enter_lab()
    with _folder(out) as folder, console.progress(counted(len(tasks), "run")) as advance:
        if out is not None and hosts is None:
            import_drawing_early()
        results = batch.execute(about, tasks, folder, on_progress=advance)
    if out is not None:
        write_report(results, out)
    print_sweep(results, out, as_json=as_json)


@contextlib.contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """The folder for results; without one, a temporary folder."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="anabranch-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@app.command(
    "sweep", epilog="Example: anabranch sweep examples/sweep_wifi_3g.toml --out results/sweep"
)
def run_sweep(
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN.toml", help="Base scenario, seeds and factors.")
    ],
    scheduler: Annotated[str | None, SCHEDULER] = None,
    congestion_control: Annotated[str | None, CONGESTION_CONTROL] = None,
    path_manager: Annotated[str | None, PATH_MANAGER] = None,
    out: Annotated[
        Path | None, out_option("Folder for the results.  [default: results/NAME]")
    ] = None,
    on: Annotated[str | None, ON] = None,
    live: Annotated[bool, LIVE] = False,
    client: Annotated[Stack | None, CLIENT] = None,
    server: Annotated[Stack | None, SERVER] = None,
    machine: Annotated[Machine | None, MACHINE] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Run a scenario over factors and seeds.

    Runs every combination of factors with several seeds. A policy that an option names belongs to
    the base scenario; write several into the plan, as values of a factor.

    After an interruption or a change to the plan, the same command makes only the missing runs.
    """
    from anabranch.cli import console
    from anabranch.results.folder import require_outside
    from anabranch.sweeps import sweep as sweeps
    from anabranch.sweeps.plan import Plan

    with console.working("reading the plan"):
        policies = overrides_of((), scheduler, congestion_control, path_manager)
        planned = Plan.read(plan, policies)
        hosts = _hosts(live, client, server, machine)
        if hosts is not None:
            sweeps.tasks_of(planned, hosts)
    if hosts is not None and hosts.need_real_time:
        enter_lab()
    folder = out or Path("results") / planned.name
    require_outside(folder, [Path(str(planned.scenario))])
    if hosts is None:
        import_drawing_early()
    with console.progress(planned.name) as advance:
        results = sweeps.sweep(planned, folder, on=on, hosts=hosts, on_progress=advance)
    write_report(results, folder)
    print_sweep(results, folder, as_json=as_json)


@app.command(epilog="Example: anabranch compare results/sweep --by scheduler min_rtt ecf")
def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR [DIR]", help="Two results folders, or one with --by."),
    ],
    by: Annotated[
        tuple[str, str, str] | None,
        typer.Option(metavar="FACTOR A B", help="Compare two levels of a factor."),
    ] = None,
    out: Annotated[Path | None, out_option("Write the comparison to this JSON file.")] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Compare runs in pairs with equal seeds.

    Prints the medians of the paired differences with 95 % bootstrap intervals.
    """
    from anabranch.cli import console, tables
    from anabranch.results.folder import FILES, load
    from anabranch.sweeps import compare as comparing

    require(
        len(folders) == (2 if by is None else 1),
        "compare: name two folders, or one folder with --by FACTOR A B",
    )
    loaded = [load(folder) for folder in folders]
    if out is not None:
        require_writable(out, [folder / name for folder in folders for name in FILES])
    if by is None:
        names = (str(folders[0]), str(folders[1]))
        comparison = comparing.folders(loaded[0], loaded[1], names)
    else:
        comparison = comparing.levels(loaded[0], *by)
    if out is not None:
        comparison.save(out)
    if as_json:
        typer.echo(comparison.to_json())
        return
    screen = console.stdout()
    console.say(f"A: {comparison.a}\nB: {comparison.b}")
    console.say(f"{tables.pairs(comparison)}\n")
    for title, table in comparison.tables():
        console.show(tables.of_report(table, title))
    if comparison.changed:
        screen.print("The scenarios differ in:")
    for change in comparison.changed:
        screen.print(tables.indented(change))
    for note in comparison.notes:
        console.say(f"note: {note}")


def print_sweep(results: Results, folder: Path | None, *, as_json: bool = False) -> None:
    """Print a sweep: every cell with medians over its seeds."""
    from anabranch.cli import console, tables
    from anabranch.results.provenance import effort
    from anabranch.sweeps import report as sweep_report

    if as_json:
        about = tables.sweep_json(results)
        about["report"] = None if folder is None else str(folder / "report.html")
        typer.echo(json.dumps(about, indent=2, ensure_ascii=False))
        return
    cells = results.runs["cell"].n_unique()
    if folder is None or cells <= sweep_report.MAX_CELLS_SHOWN:
        summary = sweep_report.summary(results)
        names = len(sweep_report.name_columns(results))
        title = "Medians over seeds [95 % interval]"
        console.show(tables.of_report(summary, title, names, may_omit=True))
    else:
        console.say(f"{counted(cells, 'cell')}: see the report, or read {folder / 'runs.parquet'}")
    if sweep_report.all_seeds_alike(results):
        console.say("all seeds gave the same numbers: nothing in the scenario is random")
    console.say(effort(results.provenance))
    if folder is not None:
        print_report(folder)
