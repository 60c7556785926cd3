"""Explanations of runs and captures: `anabranch.explain`, `anabranch.advise` and `anabranch.twin`.

Tables are polars frames, and sentences are those of the command line.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from anabranch.advice import goals as aims
from anabranch.advice import report, search, subject
from anabranch.advice.search import ENGINE, LINUX, Advice
from anabranch.analyze.given import Given, readable, title
from anabranch.errors import InputError
from anabranch.explanations import drawing, target, what_if
from anabranch.explanations.explanation import Explanation, explanations
from anabranch.explanations.what_if import WhatIf
from anabranch.files import prepare_file, write_file
from anabranch.reports import notebook
from anabranch.runs import limits
from anabranch.runs.executors import Progress
from anabranch.scenarios.scenario import Scenario
from anabranch.twins import comparison, fit, observed
from anabranch.twins import drawing as twin_drawing
from anabranch.twins.fit import Fitted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_File = str | os.PathLike[str]
OnProgress = Callable[[Progress], None] | None


@dataclasses.dataclass(frozen=True, repr=False)
class Explained:
    """Reasons why the connections of a run were not faster, as `anabranch.explain` returns them.

    Attributes:
        parts: An explanation for each connection and direction. Its `name` is that of the
            connection, and `goodput_mbps` and `capacity_mbps` are in Mbit/s over the whole run.
        predicted: The predictions of ``what_if=True``.
    """

    parts: tuple[Explanation, ...]
    predicted: WhatIf | None = None

    def finding(self) -> list[str]:
        """The sentences of the command: what was lost, the largest cause, and what would help."""
        sentences = [sentence for each in self.parts for sentence in each.finding()]
        sentences += [each.delays.finding() for each in self.parts if each.delays is not None]
        return [*sentences, *([] if self.predicted is None else [self.predicted.finding()])]

    def causes(self) -> pl.DataFrame:
        """The capacity that was not used for new data, with a row for each cause, largest first.

        Columns: ``connection``, ``path`` (``"all"`` for causes that belong to no path), ``cause``,
        ``behind`` (the path of the subflow that blocked), ``mbps`` (in Mbit/s), and ``share`` (part
        of the path's capacity, from 0 to 1). The rows of a connection add up to its capacity minus
        its goodput.
        """
        rows = [
            {
                "connection": each.name,
                "path": loss.path,
                "cause": loss.cause.words,
                "behind": loss.behind,
                "mbps": loss.mbps,
                "share": loss.share,
            }
            for each in self.parts
            for loss in each.losses
        ]
        schema = {
            **dict.fromkeys(("connection", "path", "cause", "behind"), pl.String),
            **dict.fromkeys(("mbps", "share"), pl.Float64),
        }
        return pl.DataFrame(rows, schema=schema)

    def states(self) -> pl.DataFrame:
        """Time in s that each subflow spent in each state.

        Columns: ``connection``, ``path``, ``subflow``, ``state``, ``behind`` and ``seconds``.
        """
        return pl.concat(
            [
                each.states().select(pl.lit(each.name).alias("connection"), "*")
                for each in self.parts
            ]
        )

    def blocks(self) -> pl.DataFrame:
        """Parts of the delays of data blocks, in ms, with a row for each block.

        Columns: ``connection``, ``block``, ``delay_ms``, its parts (``send_wait_ms``,
        ``retransmission_ms``, ``queueing_ms``, ``transmission_ms``, ``propagation_ms``,
        ``out_of_order_ms``, ``unknown_ms``), ``path``, and ``behind``. Empty without blocks.
        """
        found = [each.delays.blocks for each in self.parts if each.delays is not None]
        return pl.concat(found) if found else pl.DataFrame()

    def predictions(self) -> pl.DataFrame:
        """Predicted effect of each change: medians of paired differences, with 95 % intervals.

        Columns: ``change``, ``linux`` (whether Linux can do it), ``goodput_gain`` (part of the
        present goodput), ``goodput_mbps``, ``delay_p50_ms`` and ``delay_p95_ms`` with their ends
        ``…_low`` and ``…_high``. Empty without ``what_if=True``.
        """
        return pl.DataFrame() if self.predicted is None else self.predicted.frame()

    def plot(self, part: int = 0) -> Figure:
        """Draw the states of the subflows over time, above what fills the send window.

        `part` is the index in `parts`.
        """
        return drawing.draw(drawing.of_run(self.parts[part]))

    def __repr__(self) -> str:
        return f"<Explained: {' '.join(self.finding())}>"

    def _repr_html_(self) -> str:
        return notebook.page(" ".join(self.finding()), self.causes(), self.plot())


@dataclasses.dataclass(frozen=True, repr=False)
class Advised:
    """Settings that suit a scenario, as `anabranch.advise` returns them.

    Attributes:
        linux: The advice for Linux. Its `now`, `rule` and `best` are predictions: of the present
            settings, of buffers by the common rule, and of the best settings that were found.
        engine: The same for anabranch's engine.
        rule_bytes: The buffer of the common rule, 2·ΣBW·RTTmax, in bytes.
    """

    linux: Advice
    engine: Advice
    rule_bytes: int

    def finding(self) -> list[str]:
        """The advice for Linux and for the engine, a sentence each."""
        return [report.finding(each) for each in (self.linux, self.engine)]

    def predictions(self) -> pl.DataFrame:
        """Predicted effect of the present settings, the rule and the advice, with 95 % intervals.

        Columns: ``stack``, ``settings`` (``"now"``, ``"rule"`` or ``"advice"``), ``changes``, the
        factor ``improvement`` over the present settings, ``goodput_mbps``, ``delay_p95_ms`` and,
        with the goal failover, ``pause_s``. Each number has its ends ``…_low`` and ``…_high``.
        """
        rows = []
        for advice in (self.linux, self.engine):
            for each in (advice.now, advice.rule, advice.best):
                row: dict[str, Any] = {
                    "stack": advice.stack,
                    "settings": each.name,
                    "changes": each.words,
                }
                for key, value in {"improvement": each.gain, **each.values}.items():
                    row |= {
                        key: None if value is None else value.value,
                        f"{key}_low": None if value is None else value.low,
                        f"{key}_high": None if value is None else value.high,
                    }
                rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)

    def commands(self) -> dict[str, list[str]]:
        """The commands for Linux, by the place at which to enter them."""
        shown, _ = report.linux_commands(self.linux)
        return {each.place: [*each.lines] for each in shown}

    def toml(self, *, linux: bool = False) -> str:
        """The advised scenario as TOML, for the engine or for Linux."""
        return (self.linux if linux else self.engine).advised.scenario.to_toml()

    def __repr__(self) -> str:
        return f"<Advised: {' '.join(self.finding())}>"

    def _repr_html_(self) -> str:
        return notebook.page(" ".join(self.finding()), self.predictions())


@dataclasses.dataclass(frozen=True, repr=False)
class Twin:
    """The scenario that explains a capture, as `anabranch.twin` returns it.

    Attributes:
        files: The captures.
    """

    fitted: Fitted
    files: tuple[Path, ...]

    @property
    def toml(self) -> str:
        """The scenario as TOML, with the uncertainty of each value in comments."""
        return self.fitted.toml

    def finding(self) -> list[str]:
        """Findings from the capture, and the twin's distance from it."""
        return comparison.finding(self.fitted)

    def comparison(self) -> pl.DataFrame:
        """The twin's runs compared with the capture, with a row for each quantity.

        Columns: ``quantity``, ``path``, ``unit``, ``capture``, ``twin`` (median over the runs), and
        the runs' ``least`` and ``largest`` value.
        """
        names = [str(each) for each in self.files]
        values = comparison.as_json(self.fitted, names)["comparison"]
        return pl.DataFrame(values, infer_schema_length=None)

    def save(self, file: _File) -> None:
        """Write the scenario to a TOML file.

        Raises:
            InputError: if the file cannot be written.
        """
        path = Path(file)
        prepare_file(path)
        write_file(path, self.toml.encode())

    def plot(self) -> Figure:
        """Draw the twin and the capture."""
        return twin_drawing.draw(self.fitted)

    def __repr__(self) -> str:
        return f"<Twin: {' '.join(self.finding())}>"

    def _repr_html_(self) -> str:
        return notebook.page(" ".join(self.finding()), self.comparison(), self.plot())


def explain(
    scenario: Scenario | _File,
    seed: int | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    cell: str | None = None,
    what_if: bool = False,
    seeds: int = what_if.SEEDS,
    on_progress: OnProgress = None,
) -> Explained:
    """Explain why the connections of a scenario are not faster, and what would help.

    Makes the run in virtual time, and accounts for every byte that the paths could have carried::

        found = anabranch.explain("wifi_3g.toml", what_if=True)
        print(found.finding())
        found.causes()       # Mbit/s that each cause took
        found.predictions()  # what each change would bring

    Args:
        scenario: A scenario, the name of its TOML file, or a folder with results.
        seed: Random seed of the run; by default 1, or the first one of the folder.
        settings: Keys of the scenario to change, as in `anabranch.run`.
        cell: The cell of a folder that has several.
        what_if: Whether to predict what other schedulers, congestion controls, remedies, buffers
            and paths would change.
        seeds: Number of pairs of runs for each prediction.
        on_progress: Called with the progress of the predictions.

    Raises:
        ScenarioError: if the scenario is wrong.
        InputError: if a file cannot be read, or this version makes other runs than the folder has.
        PolicyError: if the user's own policy raised an exception.
    """
    chosen = _target(scenario, seed, cell, settings)
    pairs = limits.seeds(chosen.seed, seeds if what_if else 1)
    parts = tuple(explanations(chosen.run()))
    if not what_if:
        return Explained(parts)
    return Explained(parts, _predicted(chosen, pairs, on_progress))


def _target(
    scenario: Scenario | _File,
    seed: int | None,
    cell: str | None,
    settings: Mapping[str, Any] | None,
) -> target.RunToExplain:
    if isinstance(scenario, Scenario):
        return target.of_object(scenario, 1 if seed is None else seed, settings)
    given = Given(os.fspath(scenario), Path(scenario))
    if target.kind_of([given]) != target.Kind.RUN:
        raise InputError(
            f"{given.name}: neither a scenario nor a results folder; make a capture's twin with "
            "anabranch.twin, or use the command anabranch explain"
        )
    return target.of(Path(scenario), seed, cell, settings=settings)


def _predicted(chosen: target.RunToExplain, pairs: range, on_progress: OnProgress) -> WhatIf:
    return what_if.predict(chosen.scenario, pairs, on_progress)


def advise(
    scenario: Scenario | _File,
    goals: str | Sequence[str] = "throughput",
    *,
    seed: int = 1,
    seeds: int = 5,
    settings: Mapping[str, Any] | None = None,
    on_progress: OnProgress = None,
) -> Advised:
    """Advise on buffers, congestion control, paths and scheduler, for Linux and for the engine.

    Searches the settings in virtual time (a minute or more), and predicts their effect::

        advice = anabranch.advise("wifi_3g.toml", "throughput=2,latency")
        print(advice.finding())
        advice.predictions()  # goodput in Mbit/s and delay in ms, before and after
        advice.commands()     # what to enter on Linux

    Args:
        scenario: A scenario, or the name of its TOML file.
        goals: ``"throughput"`` (goodput), ``"latency"`` (95th percentile of the delay of blocks)
            and ``"failover"`` (longest pause after a path fails), each perhaps with a weight.
        seed: First seed of the predictions.
        seeds: Number of seeds of each prediction.
        settings: Keys of the scenario to change, as in `anabranch.run`.
        on_progress: Called with the progress of all runs.

    Raises:
        ScenarioError: if the scenario is wrong.
        InputError: if a file cannot be read, or a goal is unknown or cannot be measured.
        PolicyError: if the user's own policy raised an exception.
    """
    chosen = aims.parsed([goals] if isinstance(goals, str) else goals)
    found = _target(scenario, seed, None, settings)
    asked = subject.with_blocks(found.scenario)
    advices, rule = search.advise(asked, chosen, limits.seeds(seed, seeds), on_progress)
    by_stack = {each.stack: each for each in advices}
    return Advised(by_stack[LINUX], by_stack[ENGINE], rule)


def twin(
    captures: _File | Sequence[_File], *, seeds: int = fit.SEEDS, on_progress: OnProgress = None
) -> Twin:
    """Make the scenario that explains a captured connection.

    Estimates each path's rate, delay, queue and losses, the buffers and the writes, from captures
    near the sender, and compares runs of the scenario with the capture::

        made = anabranch.twin("server.pcap")
        print(made.finding())
        made.save("twin.toml")
        anabranch.explain("twin.toml", what_if=True)

    Args:
        captures: One or several files of one connection: pcap or pcapng, perhaps compressed.
            ``"-"`` is standard input.
        seeds: Number of runs to compare with the capture, if they differ.
        on_progress: Called with the progress of each set of runs.

    Raises:
        InputError: if a capture cannot be read, or does not show enough to measure a path.
    """
    several = [captures] if isinstance(captures, (str, os.PathLike)) else [*captures]
    with readable(several) as files:
        seen = observed.read(files)
    made = fit.fit(seen, title(files), f"twin of {files[0].stem}", seeds, on_progress)
    return Twin(made, tuple(map(Path, several)))
