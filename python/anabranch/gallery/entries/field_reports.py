"""Public reports of slow Multipath TCP, with the model of Linux and with the engine's remedies."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from anabranch.errors import InputError
from anabranch.forms import BOOLEAN, NUMBER, TEXT, row
from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim, for_each
from anabranch.gallery.data import rows_of
from anabranch.gallery.entry import Cell, Experiment, Tier, grid
from anabranch.gallery.measures import median
from anabranch.gallery.metrics import GOODPUT
from anabranch.gallery.shared.connections import flow, model_of_linux
from anabranch.gallery.shared.wifi_3g import M12
from anabranch.reports.figures import BLUE, GREEN, RED, Style
from anabranch.reports.table import Table
from anabranch.results.claims import Measure
from anabranch.results.folder import Factor, Results
from anabranch.scenarios.quantities import bits_per_second
from anabranch.scenarios.scenario import NetworkPath

TCP, LINUX, ENGINE = "TCP, fastest path", "Linux, MPTCP", "engine, MPTCP+M1,2"
STYLES = {TCP: Style(BLUE), LINUX: Style(RED, "s-"), ENGINE: Style(GREEN, "^-")}


def _fastest(paths: tuple[NetworkPath, ...]) -> NetworkPath:
    return max(paths, key=lambda path: bits_per_second(str(path.rate)))


def _paths(place: str, given: Any) -> tuple[NetworkPath, ...]:
    try:
        paths = tuple(NetworkPath(**path) for path in given)
        _fastest(paths)
    except (TypeError, ValueError) as error:
        raise InputError(f"{place} has to be a list of paths, as in a scenario: {error}") from error
    return paths


@dataclass(frozen=True)
class FieldReport:
    """A public report."""

    thread: Annotated[str, TEXT]
    """Address of the thread."""
    says: Annotated[str, TEXT]
    """The situation and the reported numbers."""
    assumed: Annotated[str, TEXT]
    """Assumptions about settings that the report does not state."""
    mbps: Annotated[float, NUMBER]
    """The reported goodput in Mbit/s of Multipath TCP over all paths."""
    paths: Annotated[tuple[NetworkPath, ...], _paths]
    harmed: Annotated[bool, BOOLEAN] = True
    """Whether the goodput is less than that of the report's best path alone."""
    key: str = ""
    """Repository and number of the thread, and a case of it."""

    @property
    def fastest(self) -> str:
        """Name of the path with the highest rate."""
        return _fastest(self.paths).name


ROW = row(FieldReport)
REPORTS = tuple(
    replace(report, key=key) for key, report in rows_of("field_reports.toml", ROW).items()
)


def at(curve: str, report: FieldReport) -> dict[str, Factor]:
    """The factors of a cell."""
    return {"curve": curve, "report": report.key}


def _cell(tier: Tier, curve: str, report: FieldReport) -> Cell:
    connections = {
        TCP: model_of_linux(paths=(report.fastest,)),
        LINUX: model_of_linux(scheduler="linux"),
        ENGINE: flow(remedies=M12),
    }
    return tier.cell(
        at(curve, report),
        report.paths,
        connections[curve],
        words=(report.key, curve),
        description=f"{report.thread}: {report.says}. Assumed: {report.assumed}",
    )


def _over_tcp(curve: str, report: FieldReport) -> Measure:
    return GOODPUT.ratio(at(curve, report), at(TCP, report))


def _part(curve: str, report: FieldReport, mbps: float) -> Measure:
    """The goodput of a curve as a part of a rate."""
    return median(GOODPUT.values(at(curve, report)), 1 / mbps)


CLAIMS = {
    "FR.harmed": claim(
        for_each(
            f"goodput, {LINUX} / {TCP}, {{.key}}",
            (report for report in REPORTS if report.harmed),
            partial(_over_tcp, LINUX),
            f"goodput, {LINUX} / {TCP}, every report of harm",
        )
    ),
    "FR.cured": claim(
        for_each(
            f"goodput, {ENGINE} / {TCP}, {{.key}}",
            REPORTS,
            partial(_over_tcp, ENGINE),
            f"goodput, {ENGINE} / {TCP}, every report",
        )
    ),
    **{
        f"FR.{report.key}": claim(
            Quantity(
                f"goodput in virtual time / reported, {report.mbps:g} Mbit/s",
                _part(LINUX, report, report.mbps),
            ),
            row="FR.as-reported",
            says=report.says,
            thread=report.thread,
        )
        for report in REPORTS
    },
}


def _over_reports(
    measure: Callable[[str, FieldReport], Measure], y: str, *curves: str, **look: Any
) -> panels.Draw:
    """Points of each report, side by side."""
    marks = {curve: replace(STYLES[curve], fmt=STYLES[curve].marker) for curve in curves}
    look |= {"places": [report.key for report in REPORTS], "turned": 60}
    return panels.points(dict(enumerate(REPORTS)), measure, marks, "", y, **look)


def _goodputs(results: Results) -> Table:
    """Goodput of each report and curve."""

    def row(report: FieldReport) -> tuple[str, ...]:
        goodputs = (GOODPUT.median(at(curve, report))(results).text() for curve in STYLES)
        return (report.key, f"{report.mbps:g}", *goodputs)

    headings = ("report", "reported (Mbit/s)", *(f"{curve} (Mbit/s)" for curve in STYLES))
    return Table(headings, tuple(map(row, REPORTS)))


def _sum_mbps(report: FieldReport) -> float:
    return sum(bits_per_second(str(path.rate)) for path in report.paths) / 1e6


def _row(report: FieldReport) -> str:
    """The row of the table of parameters."""
    return f"{report.key} | {report.says} | the report. Assumed: {report.assumed}"


PANELS = {
    "Goodput of each report": _over_reports(
        lambda curve, report: _part(curve, report, _sum_mbps(report)),
        "goodput / sum of the rates",
        *STYLES,
        top=1,
        stated=[(place, report.mbps / _sum_mbps(report)) for place, report in enumerate(REPORTS)],
    ),
    "Compared with TCP": _over_reports(
        _over_tcp, "goodput / that of TCP", LINUX, ENGINE, log=True, lines={1: ""}
    ),
}

EXPERIMENT = Experiment(
    uncited=tuple(dict.fromkeys(report.thread for report in REPORTS)),
    words={"reports": "\n".join(map(_row, REPORTS))},
    design=grid(_cell, report=REPORTS, curve=STYLES),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=_goodputs,
)
