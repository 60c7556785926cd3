"""The command that runs a program inside the emulated network."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anabranch.cli.app import (
    CONGESTION_CONTROL,
    PATH_MANAGER,
    PCAP,
    PCAP_LIMIT,
    SCHEDULER,
    app,
    capture_of,
    out_option,
    overrides_of,
    seed_option,
    write_report,
)
from anabranch.cli.runs import Stack
from anabranch.errors import InputError
from anabranch.files import require_other

if TYPE_CHECKING:
    from anabranch import _core
    from anabranch.live.shell import Shell, ShellOutcome
    from anabranch.runs.run import Capture

_DAY = "86400s"
_ENDING = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end the program and its connections."""


@app.command(
    epilog="Example: anabranch shell examples/wifi_3g.toml -- curl -O http://example.org/file"
)
def shell(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Scenario (TOML) whose paths are used.")
    ],
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="Program and its arguments.")
    ],
    client: Annotated[
        Stack | None,
        typer.Option(
            metavar="engine|kernel",
            help="TCP stack on the program's side.  [default: engine]",
        ),
    ] = None,
    seed: Annotated[int, seed_option("Random seed of the links.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the scenario."),
    ] = None,
    scheduler: Annotated[str | None, SCHEDULER] = None,
    congestion_control: Annotated[str | None, CONGESTION_CONTROL] = None,
    path_manager: Annotated[str | None, PATH_MANAGER] = None,
    out: Annotated[Path | None, out_option("Write results and a report to this folder.")] = None,
    pcap: Annotated[Path | None, PCAP] = None,
    pcap_limit: Annotated[str | None, PCAP_LIMIT] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Show neither the paths nor a summary.")
    ] = False,
) -> None:
    """Run any program inside the emulated network (Linux only).

    The engine carries every TCP connection of the program over the scenario's paths, in real time.
    UDP takes the first path.

    The scenario's first connection chooses scheduler, congestion control, remedies and buffers; its
    workload is not used. Services of this host are reachable on localhost, if they listened before
    the command started, and on 10.0.0.1.

    With --client kernel, the program's own sockets use the paths, and mptcpize makes them Multipath
    TCP.

    A terminal shows the paths below the program's output. Ctrl-] and a digit take a path down or
    up. Exits with the status of the program. Processes that it leaves behind end with it.

    SIGTERM ends the program and its connections within 5 s, keeps the results, and exits with 143.
    SIGHUP, of a terminal that closes, does the same and exits with 129.
    """
    from anabranch.scenarios import loading

    capture = capture_of(pcap, pcap_limit, "both")
    overrides = overrides_of(settings, scheduler, congestion_control, path_manager)
    scenario = loading.of_text(_endless(loading.read_text(file)), str(file), changes=overrides)
    if capture is not None:
        require_other(capture.file, [file])
        capture.require_writable()
    with contextlib.ExitStack() as stack:
        if out is not None:
            from anabranch.results.folder import writing

            stack.enter_context(writing(out))
        started = time.perf_counter()
        of = (client or Stack.ENGINE).value
        outcome = _made(scenario, seed, command, of, capture, quiet=quiet)
        if out is not None:
            _save(outcome, out, time.perf_counter() - started)
    if not quiet:
        _print(outcome, out)
    raise typer.Exit(outcome.status)


def hint(arguments: Sequence[str]) -> str:
    """Hint for an unknown option, which is probably the program's; empty for other commands."""
    if arguments[:1] != ["shell"] or "--" in arguments:
        return ""
    return "; put -- before the program: anabranch shell FILE -- COMMAND..."


def _endless(toml: str) -> str:
    """The scenario with a duration, which it may lack: a shell lasts as long as its program."""
    from anabranch.scenarios.loading import toml_in

    with contextlib.suppress(InputError):  # which the reader of scenarios reports
        if "duration" not in toml_in(toml, ""):
            return f'duration = "{_DAY}"\n{toml}'
    return toml


def _made(
    scenario: _core.Scenario,
    seed: int,
    command: list[str],
    client: str,
    capture: Capture | None,
    *,
    quiet: bool,
) -> ShellOutcome:
    from anabranch.live.shell import started

    screen = None
    if not quiet:
        from anabranch.cli.panel import screen_for

        screen = screen_for([path["name"] for path in scenario.settings["path"]])
    terminal = None if screen is None else screen.slave()
    shell = started(scenario, seed, command, client, terminal, capture)
    with shell as running, _interrupts(running) as received:
        if screen is not None:
            screen.follow(running)
        while not running.is_over:
            time.sleep(0.02)
        outcome = running.finish()
    ended_by = next((each for each in received if each in _ENDING), None)
    return outcome if ended_by is None else outcome._replace(status=128 + ended_by)


@contextlib.contextmanager
def _interrupts(running: Shell) -> Iterator[list[int]]:
    """Leave Ctrl-C to the program, which gets it as well, and end it at the other signals.

    A second signal ends everything at once. Yields the list of the signals.
    """
    received: list[int] = []

    def on_signal(number: int, _: object) -> None:
        received.append(number)
        if len(received) > 1:
            running.stop()
        elif number in _ENDING:
            running.terminate()

    before: dict[int, Any] = {
        each: handler
        for each in (signal.SIGINT, *_ENDING)
        if (handler := signal.getsignal(each)) is not signal.SIG_IGN
    }
    for each in before:
        signal.signal(each, on_signal)
    try:
        yield received
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _save(outcome: ShellOutcome, out: Path, wall_s: float) -> None:
    from anabranch.batches.single import single

    if outcome.run is None:
        return
    results = single(outcome.run, outcome.run.settings["name"], wall_s, outcome.conditions)
    results.save(out)
    write_report(results, out)


def _print(outcome: ShellOutcome, out: Path | None) -> None:
    """Print a summary on standard error: standard output belongs to the program."""
    from rich.console import Console

    from anabranch.cli import tables

    screen = Console(stderr=True, highlight=False)
    if outcome.run is None:
        screen.print("the program opened no TCP connection", style="dim")
        return
    for part in tables.paths(outcome.run).fitted(screen):
        screen.print(part)
    for line in tables.effort_of(outcome.run, outcome.conditions).splitlines():
        screen.print(line, soft_wrap=True, markup=False)
    if not outcome.conditions.valid:
        screen.print("note: the emulator was late too often; do not compare these numbers")
    if out is not None:
        screen.print(f"report: {out / 'report.html'}", soft_wrap=True, markup=False)
