"""Deviation of virtual time from Linux, in the same scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from anabranch.calibration import case, deviations, drawn, fixed, own, words
from anabranch.calibration import failing as failing_paths
from anabranch.calibration.case import Case
from anabranch.calibration.deviations import (
    BOUNDS,
    DELAY,
    ONE_PATH,
    OUTPUT,
    REGISTERED,
    STALL,
    TOGETHER,
    TWO_PATHS,
    ComparedScenario,
)
from anabranch.gallery import registry
from anabranch.gallery.claims import Quantity, Unnamed, claim
from anabranch.gallery.entry import Cell, Entry, Experiment, Tier
from anabranch.gallery.panels import Drawings
from anabranch.live.hosts import HERE
from anabranch.reports import figures
from anabranch.reports.figures import Style
from anabranch.results.claims import Measure
from anabranch.results.estimates import Estimate
from anabranch.results.folder import NothingMeasured, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ID = "calibration"
_STYLES = {
    (OUTPUT, ONE_PATH): Style(figures.BLUE),
    (OUTPUT, TWO_PATHS): Style(figures.GREEN, "o--"),
    (DELAY, TOGETHER): Style(figures.ORANGE, "o:"),
    (STALL, TOGETHER): Style(figures.RED, "o-."),
}
_LEAST_DRAWN = 0.1
"""Smaller deviations, in %, are drawn as this one on a logarithmic scale."""
_MOST_NAMED = 40
"""With more rows than this, a drawing names only the scenarios beyond a bound."""


# ---- claims ---------------------------------------------------------------------------------


def _claim(what: str, paths: str) -> Unnamed:
    return claim(
        Quantity("median of the deviations", _measure(what, paths, "median"), "median"),
        Quantity("90th percentile of the deviations", _measure(what, paths, "p90"), "p90"),
        what=what,
        row=REGISTERED[what],
        paths="one or two paths" if paths == TOGETHER else paths,
    )


def _measure(what: str, paths: str, statistic: str) -> Measure:
    """Measures a statistic of a distribution, whose scenarios are not a sample of seeds."""

    def measure(results: Results) -> Estimate:
        value = getattr(deviations.distribution(results, what, paths), statistic)
        return Estimate(value, value, value, deviations.seeds(results))

    return measure


CLAIMS = {
    "C1-one-path": _claim(OUTPUT, ONE_PATH),
    "C2-two-paths": _claim(OUTPUT, TWO_PATHS),
    "C3-one-path-delay": _claim(DELAY, ONE_PATH),
    "C4-two-paths-delay": _claim(DELAY, TWO_PATHS),
}
FAILING_CLAIMS = {
    "C5-stalls": _claim(STALL, TOGETHER),
    "C6-output-with-failures": _claim(OUTPUT, TOGETHER),
}
"""Claims about scenarios whose paths fail."""


# ---- figures --------------------------------------------------------------------------------


def _draw_distribution(results: Results, axes: Axes) -> None:
    """Draw the cumulative distributions of the absolute deviations."""
    for (what, paths), style in _STYLES.items():
        try:
            errors = deviations.distribution(results, what, paths).errors
        except NothingMeasured:
            continue
        label = what if paths == TOGETHER else f"{what}, {paths}"
        figures.share_of_settings(axes, np.maximum(errors, _LEAST_DRAWN), label, style)
    figures.plain_log_x(axes)
    axes.set(xlabel="absolute deviation from Linux (%)", ylabel="share of scenarios, cumulative")


def _draw_signed(paths: str, results: Results, axes: Axes) -> None:
    """Draw the signed deviations, with a row for each scenario."""
    rows = [each for each in deviations.compared(results) if each.paths == paths][::-1]
    rows = [each for each in rows if any(each.judged(what) for what in BOUNDS)]
    if not rows:
        raise NothingMeasured(f"no scenario over {paths}")
    colours = {OUTPUT: figures.BLUE, DELAY: figures.ORANGE, STALL: figures.RED}
    for what, colour in colours.items():
        pairs = [(each.judged(what), row) for row, each in enumerate(rows)]
        points = [(pair.off_by, row) for pair, row in pairs if pair]
        if points:
            axes.plot(*zip(*points, strict=True), "o", color=colour, label=what, markersize=4)
    axes.axvline(0, color=figures.GREY, linewidth=0.8)
    named = [(row, each.name) for row, each in enumerate(rows) if _is_named(each, len(rows))]
    axes.set_yticks([row for row, _ in named], [name for _, name in named], fontsize=5)
    axes.set_xlabel("deviation of virtual time from Linux (%)")


def _is_named(each: ComparedScenario, row_count: int) -> bool:
    if row_count <= _MOST_NAMED:
        return True
    pairs = {what: each.judged(what) for what in BOUNDS}
    return any(pair and BOUNDS[what][1].is_above(abs(pair.off_by)) for what, pair in pairs.items())


_PANELS: Drawings = {
    "Absolute deviation from Linux": _draw_distribution,
    **{
        f"Deviation in each scenario, {paths}": partial(_draw_signed, paths)
        for paths in (ONE_PATH, TWO_PATHS)
    },
}


# ---- the entry ------------------------------------------------------------------------------


def experiment_of(
    cases: Sequence[Case],
    scenarios: str,
    machine: str = HERE,
    claims: Mapping[str, Unnamed] = CLAIMS,
) -> Experiment:
    """The experiment that compares the engine with Linux in these scenarios.

    `scenarios` describes them in the report. Linux runs on `machine`. Everything but the cells
    follows from the results.
    """

    def cells(_tier: Tier) -> list[Cell]:
        pairs = [each.cells(machine) for each in cases]
        return [*(engine for engine, _ in pairs), *(linux for _, linux in pairs)]

    return Experiment(
        design=cells,
        named_claims=claims,
        drawings=_PANELS,
        overview=words.side_by_side,
        words={"least": _LEAST_DRAWN},
        measured_words=words.measured_words,
        finding=words.finding,
        summary=words.summary,
        uncited=("TCP and Multipath TCP of Linux, over the same emulated links.",),
        about={"duration": case.durations(cases), "scenarios": scenarios, "linux": machine},
    )


def entry_of(experiment: Experiment) -> Entry:
    """The calibration's entry with these scenarios."""
    return experiment.with_row(_ID, registry.entry(_ID))


def chosen(
    files: Sequence[Path],
    count: int | None,
    seed: int | None,
    machine: str,
    *,
    failing: bool = False,
) -> tuple[Entry, Path, Sequence[str]]:
    """The entry of these files, of `count` drawn scenarios, or of the fixed set.

    With `failing`, paths fail in the drawn scenarios.

    Also the default folder of its results, and notes for the user.

    Raises:
        ScenarioError: if a scenario is wrong.
        InputError: if a file cannot be read, or Linux cannot run its scenario.
    """
    where = "" if machine == HERE else f"-{machine}"
    if count is not None:
        seed = 1 if seed is None else seed
        if failing:
            described = f"{count} with failures drawn from seed {seed}"
            cases = _on(machine, failing_paths.cases(count, seed))
            entry = entry_of(experiment_of(cases, described, machine, FAILING_CLAIMS))
            return entry, Path(f"results/{_ID}-failing-seed-{seed}{where}"), ()
        cases = _on(machine, drawn.cases(count, seed))
        entry = entry_of(experiment_of(cases, f"{count} drawn from seed {seed}", machine))
        return entry, Path(f"results/{_ID}-seed-{seed}{where}"), ()
    if files:
        cases = own.cases(files)
        entry = entry_of(experiment_of(cases, ", ".join(map(str, files)), machine))
        note = own.unlike_linux(cases)
        return entry, Path(f"results/{_ID}-own{where}"), [note] if note else ()
    entry = entry_of(experiment_of(_on(machine, fixed.cases()), _FIXED, machine))
    return entry, Path(f"results/{_ID}{where}"), ()


def _on(machine: str, cases: Iterable[case.Case]) -> list[case.Case]:
    return [each.for_machine(machine) for each in cases]


_FIXED = "the fixed set"
EXPERIMENT = experiment_of(fixed.cases(), _FIXED)
