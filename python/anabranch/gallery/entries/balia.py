"""Peng, Walid, Hwang, Low 2016: BALIA, a balance of TCP-friendliness and responsiveness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from anabranch.gallery.bounds import BOUNDS
from anabranch.gallery.entries import conext12_olia, nsdi11_lia
from anabranch.gallery.entries.conext12_olia import (
    BALIA,
    LIA,
    MULTIPATH,
    OLIA,
    RATIOS,
    STYLES,
    TCP,
    UNCOUPLED,
    draw_users,
    goodput,
    leaves_more,
)
from anabranch.gallery.entries.nsdi11_lia import (
    RANDOM_LOSS,
    RED_QUEUE,
    SUBFLOWS,
    beside_tcp,
    shares,
)
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, key_of, parameters
from anabranch.gallery.metrics import GOODPUT
from anabranch.gallery.shared.bottlenecks import all_carried, red
from anabranch.gallery.shared.uncertain import LINKS, START
from anabranch.reports import figures, outages
from anabranch.reports.figures import Panel
from anabranch.results.claims import Claim, Condition, each
from anabranch.results.estimates import Estimate, Sample, estimate, mean, median
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Bulk, Change, Connection, NetworkPath, Scenario
from anabranch.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCENARIO_C = "scenario C"
IN_SCENARIO_C = {curve: STYLES[curve] for curve in (LIA, BALIA, OLIA)}
BESIDE_TCP = {curve: STYLES[curve] for curve in (BALIA, UNCOUPLED)}

STEP, STEADY = "step of capacity", "steady capacity"
BEFORE_MBPS, AFTER_MBPS = 4, 20
STEP_AT_S = 40
STEP_MEASURED_S = 100
"""The same in both tiers: the slowest algorithm needs most of this time."""
_PAYLOAD = 1432 / 1500
"""The part of a full packet that is data, beside headers, timestamps and a mapping."""

PENG = (
    "Q. Peng, A. Walid, J. Hwang, S. H. Low: Multipath TCP: Analysis, Design, and Implementation. "
    "IEEE/ACM Transactions on Networking, 2016."
)


at = Factors("curve", "network")
"""The factors of a cell with a step of capacity or with steady capacity."""


def cells(tier: Tier) -> list[Cell]:
    """One bottleneck with one to three subflows, scenario C, and a step of capacity."""
    shared = [
        beside_tcp(tier, curve, core, count)
        for core in (RANDOM_LOSS, RED_QUEUE)
        for count in SUBFLOWS
        for curve in BESIDE_TCP
    ]
    scenario_c = [
        replace(cell, factors={"network": SCENARIO_C, **cell.factors})
        for cell in conext12_olia.cells(tier)
        if cell.factors["curve"] in IN_SCENARIO_C
    ]
    steps = [_step(curve, network) for network in (STEP, STEADY) for curve in STYLES]
    return [*shared, *scenario_c, *steps]


def _step(curve: str, network: str) -> Cell:
    """Two paths. The second has less capacity until the step, or equal capacity throughout."""
    grows = network == STEP
    change = Change(at=f"{STEP_AT_S}s", rate=f"{AFTER_MBPS}Mbit/s")
    scenario = Scenario(
        name=f"{curve}, {network}",
        duration=f"{STEP_AT_S + STEP_MEASURED_S}s",
        warm_up=f"{STEP_AT_S}s",
        paths=(
            _path("one", AFTER_MBPS),
            _path("two", BEFORE_MBPS, change) if grows else _path("two", AFTER_MBPS),
        ),
        connections=(
            Connection(
                name="main", congestion_control=conext12_olia.CONTROL[curve], workload=Bulk()
            ),
        ),
    )
    return Cell(key_of(curve, network), scenario, at(curve, network))


def _path(name: str, mbps: int, *changes: Change) -> NetworkPath:
    """A path with a queue for the larger rate. Jitter makes seeds differ before the first drop."""
    return NetworkPath(
        name=name,
        rate=f"{mbps}Mbit/s",
        delay="50ms",
        limit="1000packets",
        jitter="1ms",
        queue=red(AFTER_MBPS * 1e6 * 0.1 / 12_000),
        changes=changes,
    )


def _seconds(steady: Any, stepped: Any, axis: int) -> Any:
    shortfall = np.median(steady, axis=axis) - np.median(stepped, axis=axis)
    return shortfall * STEP_MEASURED_S / ((AFTER_MBPS - BEFORE_MBPS) * _PAYLOAD)


def _goodputs(results: Results, curve: str) -> list[Sample]:
    return [results.values("goodput_mbps", **at(curve, network)) for network in (STEADY, STEP)]


def convergence_s(results: Results, curve: str) -> Estimate:
    """How long the added capacity would have been unused if then all of it were used at once, in s.

    This is the shortfall in bytes after the step, relative to a run with steady capacity, divided
    by the added capacity.

    Raises:
        NothingMeasured: if no run of the curve has a goodput.
    """
    return estimate(_seconds, *_goodputs(results, curve))


def _later(curve: str, other: str) -> Condition:
    """The condition that one algorithm converges no earlier than another."""

    def difference(a: Any, b: Any, c: Any, d: Any, axis: int) -> Any:
        return _seconds(a, b, axis) - _seconds(c, d, axis)

    def measure(results: Results) -> Estimate:
        return estimate(difference, *_goodputs(results, curve), *_goodputs(results, other))

    return Condition(
        f"convergence time, {curve} − {other}", measure, BOUNDS["E10.balia-responsive"]
    )


def _mean_share(results: Results, curve: str, core: str, count: int) -> Estimate:
    return mean(shares(results, curve, core, count))


def _fair(core: str) -> tuple[Condition, ...]:
    return each(
        f"mean share of BALIA with one, two and three subflows, {core}",
        (
            Condition(
                f"mean share of BALIA with {counted(count, 'subflow')}, {core}",
                partial(_mean_share, curve=BALIA, core=core, count=count),
                BOUNDS["E10.balia-fair"],
            )
            for count in SUBFLOWS
        ),
    )


_BESIDE = "beside one NewReno flow"

CLAIMS = (
    Claim(
        "E10.balia-random-loss",
        "With random loss, BALIA takes about the share of one TCP flow.",
        "Peng et al. 2016: TCP-friendliness; the range is ours",
        _fair(RANDOM_LOSS),
        all_carried,
        _BESIDE,
    ),
    Claim(
        "E10.balia-red",
        "At a RED queue, BALIA takes about the share of one TCP flow.",
        "Peng et al. 2016: TCP-friendliness; the range is ours",
        _fair(RED_QUEUE),
        all_carried,
        _BESIDE,
    ),
    Claim(
        "E10.balia-control",
        "Two uncoupled subflows take more than the share of one TCP flow (negative control).",
        "ours",
        tuple(
            Condition(
                f"mean share of two uncoupled subflows, {core}",
                partial(_mean_share, curve=UNCOUPLED, core=core, count=2),
                BOUNDS["E10.balia-control"],
            )
            for core in (RANDOM_LOSS, RED_QUEUE)
        ),
        all_carried,
        _BESIDE,
    ),
    Claim(
        "E10.balia-responsive",
        "BALIA takes up new capacity later than uncoupled subflows and sooner than OLIA.",
        "Peng et al. 2016: responsiveness; the step is ours",
        (_later(BALIA, UNCOUPLED), _later(OLIA, BALIA)),
        all_carried,
        f"second path grows from {BEFORE_MBPS} to {AFTER_MBPS} Mbit/s",
    ),
    Claim(
        "E10.balia-scenario-c-lia",
        "In scenario C, TCP users get at least as much goodput beside BALIA as beside LIA.",
        "Peng et al. 2016: friendliness; the check is ours",
        leaves_more(BALIA, LIA, BOUNDS["E10.balia-scenario-c"]),
        all_carried,
    ),
    Claim(
        "E10.balia-scenario-c-olia",
        "In scenario C, TCP users get at least as much goodput beside OLIA as beside BALIA.",
        "Peng et al. 2016: friendliness; the check is ours",
        leaves_more(OLIA, BALIA, BOUNDS["E10.balia-scenario-c"]),
        all_carried,
    ),
)


def _draw_step(results: Results, axes: Axes) -> None:
    lines = {}
    for curve, style in STYLES.items():
        samples = results.samples.filter(
            (pl.col("cell") == key_of(curve, STEP)) & (pl.col("path_name") == "two")
        )
        every = samples.gather_every(20)  # bins of 20 samples of 100 ms
        seconds = every["time_ns"].to_numpy() / 1e9
        rates = np.diff(every["subflow_bytes_received"].to_numpy()) * 8e-6 / np.diff(seconds)
        lines[curve] = (seconds[1:] - STEP_AT_S, rates, style)
    figures.series(axes, lines, "throughput of path two (Mbit/s)")
    axes.set_xlabel("time since the step (s)")
    axes.set_xlim(-10, STEP_MEASURED_S)
    axes.set_ylim(0)
    step = results.scenarios[key_of(next(iter(STYLES)), STEP)]
    outages.shade(axes, step, shift_s=STEP_AT_S)


def _draw_convergence(results: Results, axes: Axes) -> None:
    bars = {curve: ([convergence_s(results, curve)], style) for curve, style in STYLES.items()}
    figures.grouped_bars(axes, ["step"], bars)
    axes.set_ylabel("convergence time (s)")


def notes(results: Results) -> Sequence[str]:
    """Convergence times, shares beside TCP, and the goodput of TCP users in scenario C."""
    times = ", ".join(f"{curve} {convergence_s(results, curve).text('s')}" for curve in STYLES)
    means = [
        f"{core}, {curve}: "
        + ", ".join(f"{shares(results, curve, core, count).mean():.2f}" for count in SUBFLOWS)
        for core in (RANDOM_LOSS, RED_QUEUE)
        for curve in BESIDE_TCP
    ]
    users = [
        f"{ratio}: "
        + ", ".join(
            f"{curve} {median(goodput(results, TCP, curve, ratio)).text()}"
            for curve in IN_SCENARIO_C
        )
        for ratio in RATIOS
    ]
    return [
        f"Convergence times: {times}. A convergence time is the shortfall in bytes over the "
        f"{STEP_MEASURED_S} s after the step, relative to steady capacity, divided by the added "
        "capacity. RED drops packets at random, so single runs differ, those of OLIA the most.",
        "Let w be the window of the path that lags, and W = 3 w the window of the other path. In "
        "units of w / (w + W)², each acknowledgement on the path that lags adds 3 with LIA, 2.8 "
        "with BALIA and 1 with OLIA. OLIA adds more only once this path is its best path, by bytes "
        "sent without loss over RTT². The curve of OLIA therefore bends late.",
        f"Mean share with 1, 2 and 3 subflows — {'; '.join(means)}.",
        f"Mean goodput of TCP users in scenario C, in Mbit/s — {'; '.join(users)}.",
    ]


_PARAMETERS = parameters(f"""
    one bottleneck | 10 Mbit/s, 20 ms one way, as in nsdi11-lia | ours
    random loss | 0.5 %, queue of 400 packets | ours
    RED | from half to twice the bandwidth-delay product | ours
    scenario C | as in conext12-olia | CoNEXT'12; the numbers are ours
    step | two paths of {AFTER_MBPS} Mbit/s, 50 ms one way ± 1, RED; the second has {BEFORE_MBPS}
        Mbit/s for the first {STEP_AT_S} s | ours
    time after the step | {STEP_MEASURED_S} s in both tiers | ours
    workload, TCP | bulk; NewReno | ours
""")

ENTRY = Entry(
    id="balia",
    title="Balanced linked adaptation (BALIA): shares and a step of capacity (2016)",
    question="Is BALIA as friendly to TCP as coupled congestion control should be? Does it take up "
    "new capacity sooner than OLIA?",
    references=(PENG, conext12_olia.KHALILI),
    parameters=_PARAMETERS,
    quick=Tier("quick", seeds=5, measured_s=150, warm_up_s=20),
    full=Tier("full", seeds=20, measured_s=300, warm_up_s=20),
    cells=cells,
    uncertain_parameters={**LINKS, **START},
    claims=CLAIMS,
    panels=(
        Panel(
            "A step of capacity",
            f"Path two grows from {BEFORE_MBPS} to {AFTER_MBPS} Mbit/s. First seed, bins of 2 s.",
            _draw_step,
        ),
        Panel(
            "Convergence time",
            "The shortfall in bytes after the step, divided by the added capacity.",
            _draw_convergence,
        ),
        *(
            Panel(
                f"One bottleneck, {core}",
                "At one half, Multipath TCP takes the share of one TCP flow.",
                partial(nsdi11_lia.draw_shares, core=core, styles=BESIDE_TCP),
            )
            for core in (RANDOM_LOSS, RED_QUEUE)
        ),
        Panel(
            "Scenario C, TCP users",
            "Goodput of the users that have only the shared link.",
            partial(draw_users, users=TCP, styles=IN_SCENARIO_C),
        ),
        Panel(
            "Scenario C, multipath users",
            "Goodput of the users that also have a link of their own.",
            partial(draw_users, users=MULTIPATH, styles=IN_SCENARIO_C),
        ),
    ),
    overview=Overview(
        {
            "network": "network",
            "subflows": "subflows",
            "ratio": "multipath users, relative to TCP users",
            "curve": "congestion control",
        },
        (GOODPUT.called("goodput of all connections"),),
        "two",
    ),
    notes=notes,
)
