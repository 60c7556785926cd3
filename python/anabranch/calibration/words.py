"""The deviations from Linux in words and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anabranch.calibration import case, deviations
from anabranch.calibration.case import VIRTUAL
from anabranch.calibration.deviations import (
    BOUNDS,
    COMPLETION,
    DELAY,
    OUTPUT,
    STALL,
    TOGETHER,
    DeviationDistribution,
    Pair,
)
from anabranch.gallery.shared import real_time
from anabranch.live.hosts import HERE
from anabranch.reports.table import Table
from anabranch.results.folder import Results

_SHORT = {OUTPUT: "goodput/time", DELAY: "median delay", STALL: "longest stall"}


def finding(results: Results) -> Sequence[str]:
    """The distribution of deviations, in a sentence for each quantity and number of paths."""
    return [_sentence(each) for each in deviations.distributions(results) if each.paths != TOGETHER]


def _sentence(found: DeviationDistribution) -> str:
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
    found = deviations.distributions(results)
    judged = [what for what in BOUNDS if any(each.what == what for each in found)]
    bounds = [
        f">{'/'.join(f'{BOUNDS[what][index].high:g}' for what in judged)} %" for index in (0, 1)
    ]
    headings = ("off by", "n", "median", "p90", "worst", *bounds)
    spread = ("in spread",) if several else ()
    rows = (_row(each, several) for each in found)
    return Table((*headings, *spread, "worst scenario"), tuple(rows))


def _row(found: DeviationDistribution, several: bool) -> tuple[str, ...]:
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


def stalls(results: Results) -> Table:
    """For each scenario whose paths fail: the longest stall in ms."""
    found = [(each.name, each.stall) for each in deviations.compared(results) if each.stall]
    rows = ((name, *_cells(pair)) for name, pair in found)
    return Table(("scenario", "virtual", "Linux", "off by"), tuple(rows))


def tables(results: Results) -> Mapping[str, Table]:
    """The tables for the terminal, with their titles: the distribution comes last."""
    whole = summary(results)
    narrow = Table(whole.headings[:-1], tuple(row[:-1] for row in whole.rows))
    found = {
        "Virtual time and Linux: goodput or completion time": outputs(results),
        "Virtual time and Linux: delays of blocks in ms": delays(results),
        "Virtual time and Linux: longest stall in ms": stalls(results),
        "Distribution, with the number of scenarios beyond the bounds": narrow,
    }
    return {title: table for title, table in found.items() if table.rows}


def side_by_side(results: Results) -> Table:
    """All scenarios with all metrics, for the report."""
    headings = ("goodput or completion", "Linux", "off by")
    tails = ("p50 (ms)", "Linux", "off by", "p95 (ms)", "Linux", "off by")
    stall = ("longest stall (ms)", "Linux", "off by")
    rows = tuple(
        (
            each.name,
            *_cells(each.output, _unit(each.output)),
            *_cells(each.delay),
            *_cells(each.tail),
            *_cells(each.stall),
        )
        for each in deviations.compared(results)
    )
    return Table(("scenario", *headings, *tails, *stall), rows)


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


def measured_words(results: Results) -> Mapping[str, str]:
    """The scenarios beyond the bounds, and what the comparison left out."""
    found = deviations.compared(results)
    unfinished = [each.name for each in found if each.is_unfinished]
    missing = [each.name for each in found if not any(each.judged(what) for what in BOUNDS)]
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
    return {"observations": "\n\n".join(texts)}


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
        texts.append(f"The {found.what} is off by more than {bound.high:g} % in: {listed}.")
    return texts


def _off(name: str, pair: Pair, several: bool) -> str:
    inside = ", within Linux's own spread" if several and pair.is_in_spread else ""
    return f"{name} ({_percent(pair.off_by, sign=True)}{inside})"
