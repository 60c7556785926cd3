"""The command that explains runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli.app import (
    CONGESTION_CONTROL,
    JSON,
    MOST_SEEDS,
    PATH_MANAGER,
    SCHEDULER,
    app,
    count_option,
    out_option,
    overrides_of,
    print_report,
    require,
    seed_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anabranch.analyze.given import Given
    from anabranch.explanations.explanation import Explanation
    from anabranch.explanations.target import RunToExplain
    from anabranch.explanations.what_if import WhatIf
    from anabranch.reports.table import Table


@app.command(
    epilog="Examples: anabranch explain examples/wifi_3g.toml --what-if  ·  "
    "anabranch explain client.pcapng  ·  anabranch explain ss.txt nstat.txt"
)
def explain(
    targets: Annotated[
        list[Path],
        typer.Argument(
            metavar="TARGET...",
            help="A scenario (TOML), a results folder, captures, or text of ss and nstat.",
        ),
    ],
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Predict what changes would help.")
    ] = False,
    seed: Annotated[
        int | None, seed_option("Random seed.  [default: 1, or the folder's first]")
    ] = None,
    seeds: Annotated[
        int | None,
        count_option("Pairs of runs for each change, with --what-if.  [default: 5]", 1, MOST_SEEDS),
    ] = None,
    cell: Annotated[
        str | None, typer.Option(metavar="NAME", help="Cell of a folder that has several.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the scenario."),
    ] = None,
    scheduler: Annotated[str | None, SCHEDULER] = None,
    congestion_control: Annotated[str | None, CONGESTION_CONTROL] = None,
    path_manager: Annotated[str | None, PATH_MANAGER] = None,
    out: Annotated[
        Path | None, out_option("Write a report, figures and tables to this folder.")
    ] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Explain why a connection is slow, and what would help.

    Makes the run in virtual time and accounts for every instant of every subflow and every byte
    that a path could have carried: sent, blocked by the receive window or the send buffer behind
    another path, limited by the congestion window, waiting for the application, and so on. The
    causes add up exactly.

    With --what-if, runs the scenario again with each scheduler, congestion control and remedy, with
    larger buffers, and without each path, with equal seeds.

    From captures near the sender (pcap or pcapng, also compressed; - is standard input), infers
    what each subflow did. Says so where a capture cannot show the reason. With --what-if, changes
    the twin of the capture (anabranch twin).

    From the output of ss -tiMm on the sending host (a .txt file, also of several snapshots), infers
    the same for Linux. The output of nstat -a adds fallbacks and refused joins.
    """
    from anabranch.analyze.given import readable
    from anabranch.explanations import target as naming
    from anabranch.explanations.target import Kind

    require(what_if or seeds is None, "--seeds needs --what-if")
    with readable(targets) as given:
        kind = naming.kind_of(given)
        if kind == Kind.RUN:
            overrides = overrides_of(settings, scheduler, congestion_control, path_manager)
            chosen = naming.of(given[0], seed, cell, overrides)
            _explain_run(chosen, seeds, out, as_json, what_if=what_if)
            return
        is_set = {
            "--seed": seed is not None, "--cell": cell is not None, "--set": bool(settings),
            "--scheduler": scheduler is not None, "--path-manager": path_manager is not None,
            "--congestion-control": congestion_control is not None,
            "--what-if": what_if and kind == Kind.TEXTS,
        }  # fmt: skip
        what = "a capture" if kind == Kind.CAPTURES else "the text of ss"
        for option, is_given in is_set.items():
            require(
                not is_given, f"{option}: {what} cannot be run again; name a scenario or a twin"
            )
        if kind == Kind.CAPTURES:
            predicted = _predict_twin(given, seeds) if what_if else None
            _explain_captures(given, out, as_json, predicted)
        else:
            _explain_sockets([each.path for each in given], out, as_json)


def _explain_run(
    chosen: RunToExplain, seeds: int | None, out: Path | None, as_json: bool, *, what_if: bool
) -> None:
    from anabranch.cli import console
    from anabranch.explanations.explanation import explanations

    pairs = _pairs(chosen, seeds) if what_if else None
    duration_s = chosen.scenario.duration_ns / 1e9
    with console.simulating(chosen.scenario.file, duration_s) as on_tick:
        run = chosen.run(on_tick)
    found = list(explanations(run))
    predicted = None if pairs is None else _predict(chosen, pairs)
    if out is not None:
        _save(found, out, predicted)
    if as_json:
        _print_json(found, predicted, out)
        return
    _print(found, predicted)
    if out is not None:
        print_report(out)


def _explain_captures(
    files: list[Given], out: Path | None, as_json: bool, predicted: WhatIf | None
) -> None:
    from anabranch.analyze import analysis, given
    from anabranch.cli import console, tables
    from anabranch.explanations import capture, report
    from anabranch.results.folder import writing

    with console.reading(given.title(files)) as advance:
        analysed = analysis.analyze(*files, on_progress=advance)
    found = list(capture.explanations(analysed))
    if out is not None:
        with writing(out):
            report.save_captures(found, analysed, out, predicted)
    if as_json:
        about = report.captures_json(found, analysed, predicted)
        about["report"] = None if out is None else str(out / "report.html")
        typer.echo(json.dumps(about, indent=2, ensure_ascii=False))
        return
    for each in found:
        for sentence in each.finding():
            console.say(sentence)
        console.say("")
        console.show(tables.of_report(capture.table(each), "", 2))
    for note in report.capture_notes(analysed):
        console.say(f"note: {note}")
    if predicted is not None:
        _print_prediction(predicted)
    if out is not None:
        print_report(out)


def _predict_twin(files: list[Given], seeds: int | None) -> WhatIf:
    """The predictions for the twin of the connection that carried most."""
    from dataclasses import replace

    from anabranch.analyze.given import title
    from anabranch.cli.twin import fitted_to
    from anabranch.explanations.target import RunToExplain
    from anabranch.scenarios import loading
    from anabranch.twins import comparison
    from anabranch.twins.scenario import to_toml

    fitted = fitted_to(files, None)
    name = title(files)
    comparison.require_twin(fitted, name)
    # A prediction is for other losses than those of the capture.
    toml = to_toml(fitted.twin, "twin", draws=True)
    twin = RunToExplain(loading.of_text(toml, name), 1)
    return replace(_predict(twin, _pairs(twin, seeds)), captured_mbps=fitted.twin.seen.goodput_mbps)


def _explain_sockets(files: list[Path], out: Path | None, as_json: bool) -> None:
    from anabranch.cli import console, tables
    from anabranch.explanations import socket_report
    from anabranch.results.folder import writing

    report = socket_report.read(files)
    if out is not None:
        with writing(out):
            socket_report.save(report, out)
    if as_json:
        about = report.json()
        about["report"] = None if out is None else str(out / "report.html")
        typer.echo(json.dumps(about, indent=2, ensure_ascii=False))
        return
    for each in report.found:
        console.say(" ".join(each.finding()))
        console.say("")
        console.show(tables.of_report(socket_report.states(each), "", 2))
        console.show(tables.of_report(socket_report.subflows(each), ""))
    counters = socket_report.counters(report)
    if counters is not None and counters.rows:
        console.show(tables.of_report(counters, ""))
    for note in report.notes():
        console.say(f"note: {note}")
    if out is not None:
        print_report(out)


def _pairs(chosen: RunToExplain, seeds: int | None) -> Sequence[int]:
    """The seeds of the pairs of runs that predict the effect of a change."""
    from anabranch.explanations import what_if
    from anabranch.runs import limits

    return limits.seeds(chosen.seed, seeds or what_if.SEEDS)


def _predict(chosen: RunToExplain, pairs: Sequence[int]) -> WhatIf:
    from anabranch.cli import console
    from anabranch.explanations import what_if

    with console.progress("what if") as advance:
        return what_if.predict(chosen.scenario, pairs, advance)


def _save(found: Sequence[Explanation], out: Path, predicted: WhatIf | None) -> None:
    from anabranch.cli import console
    from anabranch.explanations import report
    from anabranch.results.folder import writing

    with writing(out), console.working("drawing the report"):
        report.save(found, out, predicted)


def _print_json(found: Sequence[Explanation], predicted: WhatIf | None, out: Path | None) -> None:
    from anabranch.explanations import report

    about = report.as_json(found, predicted)
    about["report"] = None if out is None else str(out / "report.html")
    typer.echo(json.dumps(about, indent=2, ensure_ascii=False))


def _delays(explanation: Explanation) -> Table:
    from anabranch.explanations import report

    table = report.delays(explanation)
    assert table is not None, "an explanation with delays has a table of them"
    return table


def _print(found: Sequence[Explanation], predicted: WhatIf | None) -> None:
    from anabranch.cli import console, tables
    from anabranch.explanations import report

    for each in found:
        for sentence in each.finding():
            console.say(sentence)
        console.say("")
        console.show(tables.of_report(report.causes(each), "", 2))
        console.say(each.buffers())
        console.say("")
        if each.delays is not None:
            console.say(each.delays.finding())
            console.say("")
            console.show(tables.of_report(_delays(each), ""))
    if predicted is not None:
        _print_prediction(predicted)


def _print_prediction(predicted: WhatIf) -> None:
    from anabranch.cli import console, tables

    console.say(predicted.finding())
    console.say("")
    console.show(tables.predictions(predicted))
    console.say(predicted.about())
