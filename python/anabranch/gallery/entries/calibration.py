"""How far virtual time deviates from Linux, in the same scenarios."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from anabranch.gallery.entry import Cell, Entry, Parameter, Tier
from anabranch.gallery.shared import real_time
from anabranch.gallery.shared.calibration import case, deviations, drawn, fixed, own
from anabranch.gallery.shared.calibration.case import VIRTUAL, Case
from anabranch.gallery.shared.calibration.deviations import (
    BOUNDS,
    COMPLETION,
    DELAY,
    ONE_PATH,
    OUTPUT,
    TOGETHER,
    TWO_PATHS,
    Compared,
    Distribution,
    Pair,
)
from anabranch.live.hosts import HERE
from anabranch.reports import figures
from anabranch.reports.figures import Panel, Style
from anabranch.reports.report import Table
from anabranch.results.claims import Claim, Condition, Measure
from anabranch.results.estimates import Estimate
from anabranch.results.folder import NothingMeasured, Results

_ID = "calibration"
_STYLES = {
    (OUTPUT, ONE_PATH): Style(figures.BLUE),
    (OUTPUT, TWO_PATHS): Style(figures.GREEN, "--"),
    (DELAY, TOGETHER): Style(figures.ORANGE, ":"),
}
_LEAST_DRAWN = 0.1
"""Smaller deviations, in %, are drawn as this one on a logarithmic scale."""
_SHORT = {OUTPUT: "goodput/time", DELAY: "median delay"}
_MOST_NAMED = 40
"""With more rows than this, a drawing names only the scenarios beyond a bound."""


# ---- claims ---------------------------------------------------------------------------------


def _claim(name: str, what: str, paths: str) -> Claim:
    return Claim(
        name,
        f"Over {paths}, the {what} in virtual time is close to that of Linux.",
        "ours",
        tuple(
            Condition(f"{words} of the deviations", measure, "≤", bound, "%")
            for words, measure, bound in zip(
                ("median", "90th percentile"),
                (_measure(what, paths, lambda found: found.median),
                 _measure(what, paths, lambda found: found.p90)),
                BOUNDS[what],
                strict=True,
            )
        ),
        where=f"{what}, {paths}",
    )  # fmt: skip


def _measure(what: str, paths: str, statistic: Callable[[Distribution], float]) -> Measure:
    """Measures a statistic of a distribution, whose scenarios are not a sample of seeds."""

    def measure(results: Results) -> Estimate:
        value = statistic(deviations.distribution(results, what, paths))
        return Estimate(value, value, value, deviations.seeds(results))

    return measure


CLAIMS = (
    _claim("C1-one-path", OUTPUT, ONE_PATH),
    _claim("C2-two-paths", OUTPUT, TWO_PATHS),
    _claim("C3-one-path-delay", DELAY, ONE_PATH),
    _claim("C4-two-paths-delay", DELAY, TWO_PATHS),
)


# ---- the distribution in words and tables -----------------------------------------------------


def finding(results: Results) -> Sequence[str]:
    """The distribution of deviations, in a sentence for each quantity and number of paths."""
    return [_sentence(each) for each in deviations.distributions(results) if each.paths != TOGETHER]


def _sentence(found: Distribution) -> str:
    name, worst = found.worst
    many = len(found.scenarios)
    return (
        f"Over {found.paths}, the {found.what} is off by {_percent(found.median)} in the median of "
        f"{many} scenario{'' if many == 1 else 's'}, by {_percent(found.p90)} at the 90th "
        f"percentile, and by {_percent(worst, sign=True)} at worst ({name})."
    )


def summary(results: Results) -> Table:
    """The distribution of absolute deviations: a row for each quantity and number of paths."""
    several = deviations.seeds(results) > 1
    bounds = [
        f"> {output:g}/{delay:g} %"
        for output, delay in zip(BOUNDS[OUTPUT], BOUNDS[DELAY], strict=True)
    ]
    headings = ("off by", "n", "median", "p90", "worst", *bounds)
    spread = ("in spread",) if several else ()
    rows = (_row(each, several) for each in deviations.distributions(results))
    return Table((*headings, *spread, "worst scenario"), tuple(rows))


def _row(found: Distribution, several: bool) -> tuple[str, ...]:
    name, worst = found.worst
    far = [found.beyond(bound) for bound in BOUNDS[found.what]]
    inside = [str(sum(pair.is_in_spread for _, pair in each)) for each in far]
    return (
        f"{_SHORT[found.what]}, {found.paths}",
        str(len(found.scenarios)),
        _percent(found.median),
        _percent(found.p90),
        _percent(worst, sign=True),
        *(str(len(each)) for each in far),
        *([", ".join(inside)] if several else []),
        name,
    )


def outputs(results: Results) -> Table:
    """For each scenario: goodput or completion time in virtual time and of Linux."""
    found = [(each, each.output) for each in deviations.compared(results) if each.output]
    rows = ((each.name, *_cells(pair, _unit(pair))) for each, pair in found)
    return Table(("scenario", "virtual", "Linux", "off by"), tuple(rows))


def delays(results: Results) -> Table:
    """For each scenario with blocks: median and 95th percentile of their delays in ms."""
    found = [each for each in deviations.compared(results) if each.delay]
    headings = ("scenario", "p50", "Linux", "off by", "p95", "Linux", "off by")
    rows = ((each.name, *_cells(each.delay), *_cells(each.tail)) for each in found)
    return Table(headings, tuple(rows))


def tables(results: Results) -> Mapping[str, Table]:
    """The tables for the terminal, with their titles: the distribution comes last."""
    whole = summary(results)
    narrow = Table(whole.headings[:-1], tuple(row[:-1] for row in whole.rows))
    found = {
        "Virtual time and Linux: goodput or completion time": outputs(results),
        "Virtual time and Linux: delays of blocks in ms": delays(results),
        "Distribution, with the number of scenarios beyond the bounds": narrow,
    }
    return {title: table for title, table in found.items() if table.rows}


def side_by_side(results: Results) -> Table:
    """All scenarios with all metrics, for the report."""
    headings = ("goodput or completion", "Linux", "off by")
    tails = ("p50 (ms)", "Linux", "off by", "p95 (ms)", "Linux", "off by")
    rows = tuple(
        (
            each.name,
            *_cells(each.output, _unit(each.output)),
            *_cells(each.delay),
            *_cells(each.tail),
        )
        for each in deviations.compared(results)
    )
    return Table(("scenario", *headings, *tails), rows)


def _unit(pair: Pair | None) -> str:
    return " s" if pair and pair.metric == COMPLETION else " Mbit/s"


def _cells(pair: Pair | None, unit: str = "") -> tuple[str, str, str]:
    if pair is None:
        return "–", "–", "–"
    virtual, linux = (f"{_digits(value)}{unit}" for value in pair.middle)
    return virtual, linux, _percent(pair.off_by, sign=True)


def _digits(value: float) -> str:
    """A number with three digits or more."""
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3}f}"


def _percent(value: float, *, sign: bool = False) -> str:
    digits = 1 if abs(value) < 10 else 0
    rounded = round(value, digits) or 0.0  # not -0.0
    return f"{rounded:{'+' if sign and rounded else ''}.{digits}f} %"


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
    rows = [each for each in rows if each.output or each.delay]
    if not rows:
        raise NothingMeasured(f"no scenario over {paths}")
    colours = {OUTPUT: figures.BLUE, DELAY: figures.ORANGE}
    for what, colour in colours.items():
        pairs = [(each.judged(what), row) for row, each in enumerate(rows)]
        points = [(pair.off_by, row) for pair, row in pairs if pair]
        if points:
            axes.plot(*zip(*points, strict=True), "o", color=colour, label=what, markersize=4)
    axes.axvline(0, color=figures.GREY, linewidth=0.8)
    named = [(row, each.name) for row, each in enumerate(rows) if _is_named(each, len(rows))]
    axes.set_yticks([row for row, _ in named], [name for _, name in named], fontsize=5)
    axes.set_xlabel("deviation of virtual time from Linux (%)")


def _is_named(each: Compared, row_count: int) -> bool:
    if row_count <= _MOST_NAMED:
        return True
    pairs = {what: each.judged(what) for what in BOUNDS}
    return any(pair and abs(pair.off_by) > BOUNDS[what][1] for what, pair in pairs.items())


_PANELS = (
    Panel(
        "Absolute deviation from Linux",
        f"Each step is a scenario. Deviations below {_LEAST_DRAWN:g} % are drawn as "
        f"{_LEAST_DRAWN:g} %.",
        _draw_distribution,
    ),
    *(
        Panel(
            f"Deviation in each scenario, {paths}",
            "A point on the line is a perfect match with Linux. A longer completion time and a "
            "higher goodput are both to the right.",
            partial(_draw_signed, paths),
        )
        for paths in (ONE_PATH, TWO_PATHS)
    ),
)


# ---- notes ----------------------------------------------------------------------------------


def notes(results: Results) -> Sequence[str]:
    """The scenarios beyond the bounds, and what the comparison left out."""
    found = deviations.compared(results)
    unfinished = [each.name for each in found if each.is_unfinished]
    missing = [each.name for each in found if each.output is None and each.delay is None]
    failed = results.runs.filter("failed")["cell"].unique(maintain_order=True).to_list()
    texts = [*_beyond(results), _repeating(results)]
    if unfinished:
        texts.append(
            f"A transfer did not finish in every run, so its goodput is compared: "
            f"{'; '.join(unfinished)}."
        )
    if missing:
        texts.append(f"Nothing could be compared: {'; '.join(missing)}.")
    if failed:
        texts.append(f"A connection failed: {', '.join(failed)}.")
    if results.runs["hosts"].is_in([VIRTUAL, case.linux_on(HERE)]).all():
        texts.append(real_time.lateness(results))
    else:
        texts.append(
            "Linux ran in a virtual machine whose clock stands still while anything computes, so "
            "the emulator was never late."
        )
    return texts


def _repeating(results: Results) -> str:
    machine = results.provenance.get("linux", HERE)
    where = "" if machine == HERE else f" --in {machine}"
    return (
        "The folder scenarios has each scenario twice, with the same text. `anabranch run "
        f"scenarios/NAME_engine.toml` and `anabranch run scenarios/NAME_linux.toml --live{where}` "
        "repeat its runs."
    )


def _beyond(results: Results) -> Sequence[str]:
    """The scenarios beyond the bound of the 90th percentile, worst first."""
    texts = []
    several = deviations.seeds(results) > 1
    for found in deviations.distributions(results):
        bound = BOUNDS[found.what][1]
        far = sorted(found.beyond(bound), key=lambda each: -abs(each[1].off_by))
        if found.paths != TOGETHER or not far:
            continue
        listed = "; ".join(_off(name, pair, several) for name, pair in far)
        texts.append(f"The {found.what} is off by more than {bound:g} % in: {listed}.")
    return texts


def _off(name: str, pair: Pair, several: bool) -> str:
    inside = ", within Linux' own spread" if several and pair.is_in_spread else ""
    return f"{name} ({_percent(pair.off_by, sign=True)}{inside})"


# ---- the entry ------------------------------------------------------------------------------


def entry_of(cases: Sequence[Case], scenarios: str, machine: str = HERE) -> Entry:
    """The entry that compares the engine with Linux in these scenarios.

    `scenarios` describes them in the report. Linux runs on `machine`. Everything but the cells
    follows from the results.
    """

    def cells(_tier: Tier) -> list[Cell]:
        pairs = [each.cells(machine) for each in cases]
        return [*(engine for engine, _ in pairs), *(linux for _, linux in pairs)]

    longest = round(max(each.duration_s for each in cases))
    return Entry(
        id=_ID,
        title="Virtual time compared with Linux",
        question="The engine simulates in virtual time what Linux does. How far is it from Linux, "
        "from the first byte of a connection?",
        references=("TCP and Multipath TCP of Linux, over the same emulated links.",),
        parameters=_PARAMETERS,
        quick=Tier("quick", seeds=1, measured_s=longest, warm_up_s=0),
        full=Tier("full", seeds=5, measured_s=longest, warm_up_s=0),
        cells=cells,
        claims=CLAIMS,
        panels=_PANELS,
        overview=side_by_side,
        notes=notes,
        finding=finding,
        summary=summary,
        about={"duration": case.durations(cases), "scenarios": scenarios, "linux": machine},
    )


def chosen(
    files: Sequence[Path], count: int | None, seed: int | None, machine: str
) -> tuple[Entry, Path, Sequence[str]]:
    """The entry of these files, of `count` drawn scenarios, or of the fixed set.

    Also the default folder of its results, and notes for the user.

    Raises:
        ScenarioError: if a scenario is wrong.
        InputError: if a file cannot be read, or Linux cannot run its scenario.
    """
    where = "" if machine == HERE else f"-{machine}"
    if count is not None:
        seed = 1 if seed is None else seed
        entry = entry_of(drawn.cases(count, seed), f"{count} drawn from seed {seed}", machine)
        return entry, Path(f"results/{_ID}-seed-{seed}{where}"), ()
    if files:
        cases = own.cases(files)
        entry = entry_of(cases, ", ".join(map(str, files)), machine)
        note = own.unlike_linux(cases)
        return entry, Path(f"results/{_ID}-own{where}"), [note] if note else ()
    return entry_of(fixed.cases(), _FIXED, machine), Path(f"results/{_ID}{where}"), ()


_FIXED = "the fixed set"
_PARAMETERS = (
    Parameter(
        "what is compared",
        "the completion time of a transfer; the goodput of endless data and blocks; the median "
        "delay of blocks; all from the first byte, unless a scenario has a warm-up",
        "ours",
    ),
    Parameter(
        "bounds",
        "goodput and completion time: 3 % in the median of the scenarios and 8 % at the 90th "
        "percentile; delay: 5 % and 12 %",
        "ours",
    ),
    Parameter(
        "buffers",
        "the size that a program requests from Linux, or autotuned if none is stated",
        "ours: the same scenario file for all hosts",
    ),
    *(each for each in real_time.PARAMETERS if each.name == "real time"),
)

ENTRY = entry_of(fixed.cases(), _FIXED)
