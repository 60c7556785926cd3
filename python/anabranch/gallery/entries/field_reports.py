"""Public reports of slow Multipath TCP, with the model of Linux and with the engine's remedies."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim, for_each, named
from anabranch.gallery.entry import Cell, Entry, Tier, grid
from anabranch.gallery.measures import median
from anabranch.gallery.metrics import GOODPUT
from anabranch.gallery.shared.connections import flow, model_of_linux, network_path
from anabranch.gallery.shared.wifi_3g import M12
from anabranch.reports.figures import BLUE, GREEN, RED, Style
from anabranch.reports.table import Table
from anabranch.results.claims import Measure
from anabranch.results.folder import Factor, Results
from anabranch.scenarios.quantities import bits_per_second
from anabranch.scenarios.scenario import NetworkPath

TCP, LINUX, ENGINE = "TCP, fastest path", "Linux, MPTCP", "engine, MPTCP+M1,2"
STYLES = {TCP: Style(BLUE), LINUX: Style(RED, "s-"), ENGINE: Style(GREEN, "^-")}


@dataclass(frozen=True)
class FieldReport:
    """A public report."""

    key: str
    """Repository and number of the thread, and a case of it."""
    says: str
    """The situation and the reported numbers."""
    assumed: str
    """Assumptions about settings that the report does not state."""
    mbps: float
    """The reported goodput in Mbit/s of Multipath TCP over all paths."""
    paths: tuple[NetworkPath, ...]
    harmed: bool = True
    """Whether the goodput is less than that of the report's best path alone."""

    @property
    def thread(self) -> str:
        """Address of the thread."""
        repository, number = _KEY.findall(self.key)[0]
        return f"https://github.com/{_REPOSITORIES[repository]}/issues/{number}"

    @property
    def fastest(self) -> str:
        """Name of the path with the highest rate."""
        return max(self.paths, key=lambda path: bits_per_second(str(path.rate))).name


def _path(
    name: str, mbps: float, rtt_ms: float, limit: str, loss: str | None = None
) -> NetworkPath:
    return network_path(name, f"{mbps:g}Mbit/s", f"{rtt_ms / 2:g}ms", limit, loss=loss)


_KEY = re.compile(r"^([a-z-]+)-(\d+)")
_REPOSITORIES = {
    "net-next": "multipath-tcp/mptcp_net-next",
    "openmptcprouter": "Ysurac/openmptcprouter",
    "tcp-in-udp": "multipath-tcp/tcp-in-udp",
}


def _issue_381(rtt_ms: int, share: float) -> FieldReport:
    paths = f"100 Mbit/s, 10 ms and 2 Mbit/s, {rtt_ms} ms"
    return FieldReport(
        key=f"net-next-381-{rtt_ms}ms",
        says=f"Mininet: {paths} give {share * 100:.1f} % of TCP",
        assumed="delays are round trips; TCP has 96 Mbit/s; queues of 100 packets",
        mbps=round(96 * share, 1),
        harmed=share < 0.95,
        paths=(_path("fast", 100, 10, "100packets"), _path("slow", 2, rtt_ms, "100packets")),
    )


REPORTS = (
    _issue_381(1, 0.157),
    _issue_381(10, 0.266),
    _issue_381(25, 0.991),
    FieldReport(
        key="net-next-307",
        says="Ethernet alone 160 to 170 Mbit/s; with a busy WLAN of 1.7 kbit/s 60 to 70",
        assumed="Linux 6.12 instead of 5.15; Ethernet of 1 ms; WLAN of 1 Mbit/s, 20 ms, 5 % loss",
        mbps=65,
        paths=(_path("ethernet", 170, 1, "200packets"), _path("wlan", 1, 20, "500ms", "5%")),
    ),
    FieldReport(
        key="net-next-452",
        says="100 and 50 Mbit/s alone, 10 Mbit/s together",
        assumed="Linux 6.12 instead of 5.15; round trips of 20 and 60 ms; queues of 100 ms",
        mbps=10,
        paths=(_path("a", 100, 20, "100ms"), _path("b", 50, 60, "100ms")),
    ),
    FieldReport(
        key="openmptcprouter-3984",
        says="cable alone 800 Mbit/s; with 100 Mbit/s of 5G 400",
        assumed="round trips of 20 and 50 ms; queues of 50 and 200 ms; no tunnel, no slow CPU",
        mbps=400,
        paths=(_path("cable", 800, 20, "50ms"), _path("5g", 100, 50, "200ms")),
    ),
    FieldReport(
        key="openmptcprouter-3374",
        says="two lines of 900 Mbit/s give 800 Mbit/s; round trip 18 ms",
        assumed="queues of 30 ms; no tunnel, no slow CPU",
        mbps=800,
        paths=(_path("line1", 900, 18, "30ms"), _path("line2", 900, 18, "30ms")),
    ),
    FieldReport(
        key="openmptcprouter-1021",
        says="LTE of 120 and of 210 Mbit/s give 130 Mbit/s",
        assumed="round trips of 50 and 70 ms; queues of 150 ms; no tunnel, no slow CPU",
        mbps=130,
        paths=(_path("lte1", 120, 50, "150ms"), _path("lte2", 210, 70, "150ms")),
    ),
    FieldReport(
        key="openmptcprouter-1683",
        says="SIM cards of 25, 25 and 10 Mbit/s give 29 Mbit/s",
        assumed="round trips of 120, 120 and 200 ms; queues of 400 ms; 0.1 % loss; no tunnel",
        mbps=29,
        harmed=False,
        paths=(
            _path("sim1", 25, 120, "400ms", "0.1%"),
            _path("sim2", 25, 120, "400ms", "0.1%"),
            _path("sim3", 10, 200, "400ms", "0.1%"),
        ),
    ),
    FieldReport(
        key="tcp-in-udp-10",
        says="netem: 500 Mbit/s, 100 ms and 75 Mbit/s, 10 ± 10 ms give 515 Mbit/s; in UDP 195",
        assumed="round trips; queues of 1000 packets; not in UDP",
        mbps=515,
        harmed=False,
        paths=(
            _path("long", 500, 100, "1000packets"),
            replace(_path("short", 75, 10, "1000packets"), jitter="5ms"),
        ),
    ),
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
    marks = {curve: replace(STYLES[curve], form=STYLES[curve].marker) for curve in curves}
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

ENTRY = Entry(
    uncited=tuple(dict.fromkeys(report.thread for report in REPORTS)),
    constants={"reports": "\n".join(map(_row, REPORTS))},
    design=grid(_cell, report=REPORTS, curve=STYLES),
    claims=named(CLAIMS),
    drawings=PANELS,
    overview=_goodputs,
)
