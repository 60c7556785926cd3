"""The command that advises on buffers, paths and policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from anabranch.runs import limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from anabranch import _core
    from anabranch.advice.goals import Goals
    from anabranch.advice.search import Advice


@app.command(
    epilog="Examples: anabranch advise examples/wifi_3g.toml --for throughput=2,latency  ·  "
    "anabranch advise --path 8Mbit/s,20ms,54packets --path 2Mbit/s,150ms,loss=0.5%"
)
def advise(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="[SCENARIO]", help="A scenario (TOML).")
    ] = None,
    paths: Annotated[
        list[str] | None,
        typer.Option(
            "--path",
            metavar="RATE,RTT[,QUEUE][,loss=P]",
            help="A path, instead of a scenario. Repeat it for each path. Default queue: 100 ms.",
        ),
    ] = None,
    aims: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            metavar="GOAL[=WEIGHT],...",
            help="Goals: throughput, latency, failover.  [default: throughput]",
        ),
    ] = None,
    seed: Annotated[int, seed_option("First random seed.")] = 1,
    seeds: Annotated[int, count_option("Seeds of each prediction.", 1, MOST_SEEDS)] = 5,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the scenario."),
    ] = None,
    scheduler: Annotated[str | None, SCHEDULER] = None,
    congestion_control: Annotated[str | None, CONGESTION_CONTROL] = None,
    path_manager: Annotated[str | None, PATH_MANAGER] = None,
    out: Annotated[
        Path | None, out_option("Write a report and the advised scenarios to this folder.")
    ] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Advise on buffers, congestion control, paths and scheduler.

    Gives two answers. The first is what Linux can do, with the commands. Its predictions come from
    the model of Linux. The second is what anabranch's engine can do, with all of its schedulers and
    remedies.

    For each, searches the settings in virtual time, and predicts goodput and delay before and
    after. Also predicts the common rule for buffers: twice the sum of the rates times the longest
    round-trip time.

    Goals: throughput is goodput, latency the 95th percentile of the delay of blocks, failover the
    longest pause after a path fails silently. With several goals, the weighted geometric mean of
    the improvements counts.
    """
    from anabranch.advice import goals, report, subject

    require((scenario is None) != (not paths), "name a scenario, or paths with --path")
    require(not (paths and settings), "--set changes a scenario; change the values of --path")
    chosen = goals.parsed(aims or ["throughput"])
    overrides = overrides_of(settings, scheduler, congestion_control, path_manager)
    if scenario is None:
        asked = subject.of_paths(paths or [], overrides)
    else:
        asked = subject.of_file(scenario, overrides)
    advices, rule = _search(asked, chosen, limits.seeds(seed, seeds))
    about = asked.settings
    if out is not None:
        _save(advices, chosen, rule, about, out)
    if as_json:
        values = report.as_json(advices, chosen, rule, about)
        values["report"] = None if out is None else str(out / "report.html")
        typer.echo(json.dumps(values, indent=2, ensure_ascii=False))
        return
    _print(advices, chosen, rule)
    if out is not None:
        print_report(out)


def _search(asked: _core.Scenario, chosen: Goals, seeds: Sequence[int]) -> tuple[list[Advice], int]:
    from anabranch.advice import search
    from anabranch.cli import console

    with console.progress("advise") as advance:
        return search.advise(asked, chosen, seeds, advance)


def _save(
    advices: Sequence[Advice], chosen: Goals, rule: int, about: Mapping[str, Any], out: Path
) -> None:
    from anabranch.advice import report
    from anabranch.results.folder import writing

    with writing(out):
        report.save(advices, chosen, rule, about, out)


def _print(advices: Sequence[Advice], chosen: Goals, rule: int) -> None:
    from anabranch.advice import report
    from anabranch.advice.search import LINUX
    from anabranch.cli import console, tables

    for each in advices:
        console.say(report.finding(each))
    console.say("")
    for each in advices:
        console.show(tables.of_report(report.table(each), each.stack))
        if each.stack == LINUX:
            _print_commands(each)
            _print_stalls(each)
    console.say(report.about(advices, chosen, rule))


def _print_stalls(advice: Advice) -> None:
    from anabranch.advice import report
    from anabranch.cli import console, tables

    if not advice.stalls:
        return
    console.show(tables.of_report(report.stalls(advice), "Linux: pause after a path fails"))
    for each in report.setting_commands(advice):
        typer.echo(f"# {each.place}")
        typer.echo("\n".join(each.lines) + "\n")


def _print_commands(advice: Advice) -> None:
    from anabranch.advice import report
    from anabranch.cli import console

    shown, notes = report.linux_commands(advice)
    if not shown:
        return
    for place in shown:
        typer.echo(f"# {place.place}")
        typer.echo("\n".join(place.lines) + "\n")
    for note in notes:
        console.say(note)
    typer.echo("")
