"""Grinnemo and Brunstrom 2015: Multipath TCP and the latency of cloud applications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise, product

import numpy as np
from matplotlib.axes import Axes

from anabranch.gallery.entry import Cell, Entry, Overview, Parameter, Tier
from anabranch.gallery.shared.wifi_3g import cell_key
from anabranch.reports import figures
from anabranch.reports.figures import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, Panel, Style
from anabranch.results.claims import Claim, Condition, each
from anabranch.results.estimates import Estimate, median
from anabranch.results.folder import Factor, NothingMeasured, Results
from anabranch.scenarios.scenario import (
    Connection,
    Distribution,
    NetworkPath,
    OnOff,
    RequestResponse,
    Scenario,
)

NETFLIX, NETFLIX_SMALL, MAPS, DOCS = "Netflix 1 MB", "Netflix 256 kB", "Maps", "Docs"
NETFLIXES = (NETFLIX, NETFLIX_SMALL)
HEAVY = (*NETFLIXES, MAPS)
APPLICATIONS = {
    NETFLIX: Style(BLUE, "-", "o"),
    NETFLIX_SMALL: Style(SKY, (0, (6, 1.5, 1, 1.5)), "^"),
    MAPS: Style(ORANGE, (0, (4, 1.5)), "s"),
    DOCS: Style(PURPLE, (0, (1, 1)), "x"),
}
TCP, MPTCP, BLEST, ECF = "TCP", "MPTCP", "MPTCP, BLEST", "MPTCP, ECF"
UNCOUPLED = "MPTCP, uncoupled CUBIC"
_CONTROL = {TCP: "cubic", UNCOUPLED: "cubic"}
_SCHEDULER = {MPTCP: "min_rtt", BLEST: "blest", ECF: "ecf"}
SCHEDULERS = {
    MPTCP: Style(RED, "-", "o"),
    BLEST: Style(GREEN, (0, (6, 1.5, 1, 1.5)), "^"),
    ECF: Style(BLUE, (0, (4, 1.5)), "s"),
}
RTTS_MS = (10, 40, 100, 200, 400)
LOSSES_PERCENT = (0, 2, 4)
SHORT_MS = 10
"""Round-trip time of path one where the two differ."""
LOSSY_RTTS_MS = RTTS_MS[:3]
"""Of equal paths, and of path two where they differ."""
BURSTS = {f"{segments} segments": segments for segments in (10, 20, 30, 40, 50)}
BURST_RTTS_MS = {10: GREEN, 40: ORANGE, 100: RED}
_SEGMENT_BYTES = 1400
_PERIOD_S = 3.0
"""Mean time from the start of a Netflix burst to the start of the next."""

GRINNEMO = (
    "K.-J. Grinnemo, A. Brunstrom: A First Study on Using MPTCP to Reduce Latency for Cloud Based "
    "Mobile Applications. IEEE, July 2015, pp. 64–69; and slides of the former."
)
HURTIG = (
    "P. Hurtig, K.-J. Grinnemo, A. Brunstrom, S. Ferlin, Ö. Alay, N. Kuhn: Low-Latency Scheduling "
    "in MPTCP. IEEE/ACM Transactions on Networking, 2019."
)


def _netflix(median_size: str) -> OnOff:
    return OnOff(
        burst_size=Distribution(kind="lognormal", median=median_size, sigma=0.3),
        interval=Distribution(kind="uniform", min="2s", max="4s"),
    )


def _burst(segments: int) -> OnOff:
    size = f"{segments * _SEGMENT_BYTES}B"
    return OnOff(burst_size=size, interval=Distribution(kind="uniform", min="1s", max="3s"))


_WORKLOADS: dict[str, OnOff | RequestResponse] = {
    NETFLIX: _netflix("1MB"),
    NETFLIX_SMALL: _netflix("256kB"),
    MAPS: RequestResponse(
        request_size="400B",
        responses=Distribution(kind="uniform", min=8, max=20),
        response_size=Distribution(kind="lognormal", median="16kB", sigma=0.23),
        think_time=Distribution(kind="exponential", mean="2s"),
    ),
    DOCS: OnOff(
        burst_size=Distribution(kind="uniform", min="100B", max="1000B"),
        interval=Distribution(kind="exponential", mean="0.5s"),
    ),
    **{name: _burst(segments) for name, segments in BURSTS.items()},
}


def at(
    application: str, curve: str, rtt_one: int, rtt_two: int, loss_percent: int = 0
) -> dict[str, Factor]:
    """The factors of a cell."""
    return {
        "application": application,
        "curve": curve,
        "rtt_one_ms": rtt_one,
        "rtt_two_ms": rtt_two,
        "loss_percent": loss_percent,
    }


_Setting = tuple[str, str, int, int, int]
"""Application, curve, round-trip times of the two paths in ms, loss in %."""


def _equal(
    applications: Iterable[str],
    rtts: Iterable[int],
    losses: Iterable[int] = (0,),
    curve: str = MPTCP,
) -> list[_Setting]:
    grid = product(applications, rtts, losses)
    return [(application, curve, rtt, rtt, loss) for application, rtt, loss in grid]


def _unequal(
    applications: Iterable[str],
    rtts: Iterable[int],
    losses: Iterable[int] = (0,),
    curve: str = MPTCP,
) -> list[_Setting]:
    grid = product(applications, rtts, losses)
    return [(application, curve, SHORT_MS, rtt, loss) for application, rtt, loss in grid]


def cells(tier: Tier) -> list[Cell]:
    """Every application over equal and unequal paths with and without loss; the burst grid."""
    settings = [
        *_equal(APPLICATIONS, RTTS_MS, LOSSES_PERCENT, TCP),
        *_equal(APPLICATIONS, RTTS_MS, LOSSES_PERCENT),
        *_equal((NETFLIX_SMALL,), LOSSY_RTTS_MS, LOSSES_PERCENT[1:], UNCOUPLED),
        *_unequal(APPLICATIONS, RTTS_MS[1:]),
        *_unequal(APPLICATIONS, LOSSY_RTTS_MS[1:], LOSSES_PERCENT[1:]),
        *_equal(BURSTS, (SHORT_MS,), curve=TCP),
    ]
    for curve in (BLEST, ECF):
        settings += _unequal(HEAVY, RTTS_MS[1:], curve=curve)
    for curve in (MPTCP, BLEST, ECF):
        settings += _unequal(BURSTS, BURST_RTTS_MS, curve=curve)
    return [_cell(tier, *setting) for setting in settings]


def _cell(tier: Tier, application: str, curve: str, one: int, two: int, loss: int) -> Cell:
    tcp = curve == TCP
    connection = Connection(
        name="main",
        paths=("one",) if tcp else None,
        protocol="tcp" if tcp else "mptcp",
        congestion_control=_CONTROL.get(curve, "lia"),
        hystart=False,
        scheduler=_SCHEDULER.get(curve),
        send_buffer="104857600B",
        receive_buffer="104857600B",
        nagle=False,
        workload=_WORKLOADS[application],
    )
    words = (application, curve, f"{one}-{two}ms", f"{loss}percent")
    scenario = Scenario(
        name=", ".join(words),
        duration=tier.duration,
        warm_up=tier.warm_up,
        paths=(_path("one", one, loss), _path("two", two, loss)),
        connections=(connection,),
    )
    return Cell(cell_key(*words), scenario, at(application, curve, one, two, loss))


def _path(name: str, rtt_ms: int, loss_percent: int) -> NetworkPath:
    return NetworkPath(
        name=name,
        rate="100Mbit/s",
        delay=f"{rtt_ms // 2}ms",
        limit="2500packets",
        loss=f"{loss_percent}%",
    )


def relative(
    results: Results, application: str, curve: str, one: int, two: int, loss: int = 0
) -> Estimate:
    """Median latency over that of TCP on path one, by seeds: both have the same bursts.

    Raises:
        NothingMeasured: if there is none.
    """
    return _paired(
        results, at(application, curve, one, two, loss), at(application, TCP, one, one, loss)
    )


def _paired(results: Results, above: dict[str, Factor], below: dict[str, Factor]) -> Estimate:
    pair = [results.values("delay_p50_ms", **factors) for factors in (above, below)]
    if pair[0].size != pair[1].size:
        raise NothingMeasured(f"not every seed has a latency: {above}")
    return median(pair[0] / pair[1])


def is_carried(results: Results, application: str, rtt: int, loss: int) -> bool:
    """Does TCP deliver a Netflix burst, on the mean, before the next one is due?

    Where it does not, bursts wait for bursts, and the latency grows with the length of the run.
    """
    if application not in NETFLIXES:
        return True
    try:
        delays = results.values("delay_mean_ms", **at(application, TCP, rtt, rtt, loss))
    except NothingMeasured:
        return False
    return float(np.median(delays)) < _PERIOD_S * 1e3


def _relative(
    words: str, settings: Iterable[_Setting], operator: str, threshold: float
) -> tuple[Condition, ...]:
    """One condition for each setting, judged if TCP carries the load there."""
    return each(
        words,
        (
            Condition(
                _words(*setting),
                partial(_relative_at, setting=setting),
                operator,
                threshold,
                applies=partial(_is_carried_at, setting=setting),
            )
            for setting in settings
        ),
    )


def _relative_at(results: Results, setting: _Setting) -> Estimate:
    return relative(results, *setting)


def _is_carried_at(results: Results, setting: _Setting) -> bool:
    application, _, rtt, _, loss = setting
    return is_carried(results, application, rtt, loss)


def _words(application: str, curve: str, one: int, two: int, loss: int) -> str:
    lossy = f", {loss} % loss" if loss else ""
    return f"{application}, {one}/{two} ms{lossy}: {curve} / TCP"


def _grows(words: str, applications: Iterable[str], rtts: Sequence[int]) -> tuple[Condition, ...]:
    """From each round-trip time of path two to the next, the latency does not fall."""
    steps = f"{SHORT_MS}/{rtts[0]} to {SHORT_MS}/{rtts[-1]} ms"
    return each(
        f"{words}: latency at each round-trip time of path two / at the one before, {steps}",
        (
            Condition(
                f"{application}: latency at {SHORT_MS}/{after} ms / at {SHORT_MS}/{before} ms",
                partial(
                    _paired,
                    above=at(application, MPTCP, SHORT_MS, after),
                    below=at(application, MPTCP, SHORT_MS, before),
                ),
                "≥",
                1.0,
            )
            for application in applications
            for before, after in pairwise(rtts)
        ),
    )


_EQUAL = f"{RTTS_MS[0]} to {RTTS_MS[-1]} ms on both paths"
_LOSSY = (
    f"{' and '.join(map(str, LOSSES_PERCENT[1:]))} % loss, "
    f"{', '.join(map(str, LOSSY_RTTS_MS))} ms on both paths"
)
_CARRIED = "wherever TCP carries the load"
"""Of Netflix: its bursts are the only ones that may be too large."""
_NETFLIX = "Netflix, both sizes of bursts"
_NETFLIX_AND_MAPS = f"{_NETFLIX}, and Maps"
_DOCS_EQUAL = (f"Docs: latency of MPTCP / TCP, {_EQUAL}", _equal((DOCS,), RTTS_MS))


def _both_paths_used(results: Results) -> str | None:
    """A precondition: with lowest RTT each path carried data of Netflix and Maps in every run."""
    for application in HEAVY:
        rows = results.runs.filter(
            (results.runs["application"] == application) & (results.runs["curve"] == MPTCP)
        )
        for path in ("share_one", "share_two"):
            if rows.is_empty() or not (rows[path] > 0).all():
                return f"{application}: not every run used both paths"
    return None


CLAIMS = (
    Claim(
        "E8.a-netflix",
        "With equal round-trip times and no loss, Netflix gains much.",
        "Grinnemo'15, abstract; the threshold is ours",
        _relative(
            f"{_NETFLIX}: latency of MPTCP / TCP, {_EQUAL}, {_CARRIED}",
            _equal(NETFLIXES, RTTS_MS),
            "≤",
            0.8,
        ),
        _both_paths_used,
    ),
    Claim(
        "E8.b-maps",
        "So does Google Maps.",
        "Grinnemo'15, abstract; the threshold is ours",
        _relative(f"Maps: latency of MPTCP / TCP, {_EQUAL}", _equal((MAPS,), RTTS_MS), "≤", 0.9),
        _both_paths_used,
    ),
    Claim(
        "E8.c-docs",
        "Google Docs gains little: the negative control.",
        "Grinnemo'15, abstract; the thresholds are ours",
        (*_relative(*_DOCS_EQUAL, "≥", 0.9), *_relative(*_DOCS_EQUAL, "≤", 1.1)),
    ),
    Claim(
        "E8.d-loss",
        "Netflix gains with a few per cent of loss, too.",
        "Grinnemo'15, abstract and conclusions; the threshold is ours",
        _relative(
            f"{_NETFLIX}: latency of MPTCP / TCP, {_LOSSY}, {_CARRIED}",
            _equal(NETFLIXES, LOSSY_RTTS_MS, LOSSES_PERCENT[1:]),
            "≤",
            0.9,
        ),
        _both_paths_used,
    ),
    Claim(
        "E8.e-docs-loss",
        "Docs does not lose by it.",
        "Grinnemo'15, slides; the threshold is ours",
        _relative(
            f"Docs: latency of MPTCP / TCP, {_LOSSY}",
            _equal((DOCS,), LOSSY_RTTS_MS, LOSSES_PERCENT[1:]),
            "≤",
            1.1,
        ),
    ),
    Claim(
        "E8.f-little-difference",
        "A limited difference of round-trip times leaves Netflix no worse.",
        "Grinnemo'15, conclusions; 10/40 ms and the threshold are ours",
        _relative(
            f"{_NETFLIX}: latency of MPTCP at 10/40 ms / TCP over 10 ms, {_CARRIED}",
            _unequal(NETFLIXES, (40,)),
            "≤",
            1.0,
        ),
        _both_paths_used,
    ),
    Claim(
        "E8.g-grows-with-ratio",
        "The larger the difference of round-trip times, the longer the latency.",
        "Grinnemo'15, conclusions; that every step counts is ours",
        _grows(_NETFLIX_AND_MAPS, HEAVY, RTTS_MS),
        _both_paths_used,
    ),
    Claim(
        "E8.h-large-difference",
        "A large difference makes latency worse than TCP's over the quicker path.",
        "Grinnemo'15, conclusions; 10/400 ms is ours",
        _relative(
            f"{_NETFLIX_AND_MAPS}: latency of MPTCP at 10/400 ms / TCP over 10 ms, {_CARRIED}",
            _unequal(HEAVY, RTTS_MS[-1:]),
            "≥",
            1.0,
        ),
        _both_paths_used,
    ),
    Claim(
        "E8.i-ecf",
        "A scheduler that looks at the difference avoids this: ECF.",
        "ours: Grinnemo'15 asks for such a scheduler",
        _relative(
            f"{_NETFLIX_AND_MAPS}: latency of {ECF} at 10/100 ms / TCP over 10 ms, {_CARRIED}",
            _unequal(HEAVY, (100,), curve=ECF),
            "≤",
            1.05,
        ),
        _both_paths_used,
    ),
    Claim(
        "E8.j-blest",
        "So does BLEST.",
        "ours: Grinnemo'15 asks for such a scheduler",
        _relative(
            f"{_NETFLIX_AND_MAPS}: latency of {BLEST} at 10/100 ms / TCP over 10 ms, {_CARRIED}",
            _unequal(HEAVY, (100,), curve=BLEST),
            "≤",
            1.05,
        ),
        _both_paths_used,
    ),
    Claim(
        "E8b.a-bursts-grow",
        "Short bursts take the longer, the larger the difference.",
        "grid: Hurtig et al. 2019; the check is ours",
        _grows("bursts of 10 to 50 segments", BURSTS, tuple(BURST_RTTS_MS)),
    ),
    Claim(
        "E8b.b-bursts-ecf",
        "ECF keeps short bursts from a slow path.",
        "ours, on the grid of Hurtig et al. 2019",
        _relative(
            f"bursts of 10 to 50 segments: latency of {ECF} at 10/100 ms / TCP over 10 ms",
            _unequal(BURSTS, (100,), curve=ECF),
            "≤",
            1.05,
        ),
    ),
)

_Curve = tuple[Sequence[_Setting], Style]
_RELATIVE = "median latency / TCP's over path one"


def _draw_relative(
    results: Results, axes: Axes, x: Sequence[int], curves: Mapping[str, _Curve], label: str
) -> None:
    """Curves of relative latency; `curves` gives a setting for each place of `x`."""
    for name, (settings, style) in curves.items():
        points = [relative(results, *setting) for setting in settings]
        figures.estimates(axes, x, points, name, style)
    figures.reference_line(axes, 1, "")
    axes.set(xlabel=label, ylabel=_RELATIVE)


def _draw_equal(results: Results, axes: Axes) -> None:
    curves = {
        application: (_equal((application,), RTTS_MS), style)
        for application, style in APPLICATIONS.items()
    }
    _draw_relative(results, axes, RTTS_MS, curves, "round-trip time of both paths (ms)")
    figures.plain_ticks(axes, RTTS_MS)
    axes.set_ylim(0)


def _over_ratio(application: str, curve: str) -> list[_Setting]:
    """At equal times the schedulers coincide, so only lowest RTT was run there."""
    return [(application, curve if rtt > SHORT_MS else MPTCP, SHORT_MS, rtt, 0) for rtt in RTTS_MS]


def _draw_unequal(results: Results, axes: Axes, curves: Mapping[str, _Curve]) -> None:
    _draw_relative(results, axes, RTTS_MS, curves, "round-trip time of path two (ms); one: 10 ms")
    figures.plain_ticks(axes, RTTS_MS)
    figures.plain_log_y(axes)
    axes.set_ylim(0.5)


def _draw_loss(results: Results, axes: Axes) -> None:
    pairs = [(rtt, rtt) for rtt in LOSSY_RTTS_MS] + [(SHORT_MS, rtt) for rtt in LOSSY_RTTS_MS[1:]]
    places = [(*pair, loss) for pair in pairs for loss in LOSSES_PERCENT[1:]]
    for index, (application, style) in enumerate(APPLICATIONS.items()):
        drawn = {
            place + 0.18 * (index - 1.5): relative(results, application, MPTCP, one, two, loss)
            for place, (one, two, loss) in enumerate(places)
            if is_carried(results, application, one, loss)
        }
        marks = Style(style.colour, "none", style.marker)
        figures.estimates(axes, list(drawn), list(drawn.values()), application, marks)
    figures.reference_line(axes, 1, "")
    names = [f"{one}/{two} ms, {loss} %" for one, two, loss in places]
    axes.set_xticks(range(len(places)), names, rotation=40, ha="right", fontsize=7)
    axes.set_ylabel(_RELATIVE)
    axes.set_ylim(0)


def _draw_bursts(results: Results, axes: Axes) -> None:
    curves: dict[str, _Curve] = {
        f"10/{rtt} ms, {words}": (
            _unequal(BURSTS, (rtt,), curve=curve),
            Style(colour, SCHEDULERS[curve].line, SCHEDULERS[curve].marker),
        )
        for rtt, colour in BURST_RTTS_MS.items()
        for curve, words in ((MPTCP, "lowest RTT"), (ECF, "ECF"))
    }
    _draw_relative(results, axes, list(BURSTS.values()), curves, "burst (segments of 1400 bytes)")
    axes.set_ylim(0)


def notes(results: Results) -> Sequence[str]:
    """Where the reversal lies, what was left out, and what the schedulers see."""

    def ratios(application: str, curve: str = MPTCP) -> str:
        values = (
            f"{relative(results, *setting).value:.2f}"
            for setting in _over_ratio(application, curve)
        )
        return f"{application} {' / '.join(values)}"

    def lossy(curve: str) -> str:
        settings = _equal((NETFLIX_SMALL,), LOSSY_RTTS_MS, LOSSES_PERCENT[1:], curve)
        return ", ".join(
            f"{relative(results, *setting).value:.2f}"
            for setting in settings
            if is_carried(results, NETFLIX_SMALL, setting[2], setting[4])
        )

    def mean_ms(curve: str, two: int) -> float:
        return float(np.median(results.values("delay_mean_ms", **at(DOCS, curve, SHORT_MS, two))))

    overloaded = [
        f"{application}, {rtt} ms, {loss} %"
        for application in NETFLIXES
        for rtt in RTTS_MS
        for loss in LOSSES_PERCENT
        if not is_carried(results, application, rtt, loss)
    ]
    docs_two = float(np.median(results.values("share_two", **at(DOCS, MPTCP, SHORT_MS, 40)))) * 100
    return [
        "Median latency over TCP's at 10/10, 10/40, 10/100, 10/200 and 10/400 ms: "
        f"{'; '.join(ratios(application) for application in HEAVY)}. Where it crosses 1 is only "
        "reported: the sources do not say where it does.",
        "After a pause of some retransmission timeouts each window is back at ten segments. A "
        "second path brings ten more in the first round trip, and so saves about one round trip "
        "of slow start. At 400 ms a pause is only a few timeouts long, windows stay larger, and "
        "how large depends on the pause.",
        "Lowest RTT sends what the quicker path's window does not take over the other one, where "
        "a segment takes its one-way delay: as soon as that is longer than TCP needs for the whole "
        "burst, the latency is that delay. In between it need not grow: 256 kB last long enough "
        "for two windows over a path of 40 ms, the second of which arrives after 60 ms, but only "
        "for one over a path of 100 ms, which is there after 50 ms.",
        f"Docs: a message of one segment needs no second path. Yet at 10/40 ms {docs_two:.0f} % "
        "of the bytes take path two. The receiver delays the acknowledgement of a single segment "
        "by 40 ms, so that path one is measured at 50 ms and path two, until it is used, at 40 ms. "
        f"The mean latency is {mean_ms(MPTCP, 40):.1f} ms instead of {mean_ms(TCP, SHORT_MS):.1f}; "
        "the median does not show it. Claims about Docs have no precondition on shares.",
        "Where random loss sets the windows, LIA takes over two paths what TCP takes over the "
        "better one: that is its design, even if no link is shared. What is left of the gain is "
        "slow start and recovery on two paths at a time. Over 10, 40 and 100 ms, each with 2 and "
        f"4 %, {NETFLIX_SMALL}: {lossy(MPTCP)} with LIA, {lossy(UNCOUPLED)} with uncoupled CUBIC.",
        "TCP does not carry the load, so that bursts wait for bursts and nothing is judged: "
        f"{'; '.join(overloaded)}.",
        f"ECF at the same differences: {'; '.join(ratios(each, ECF) for each in HEAVY)}. It "
        "reckons with the present window, which slow start doubles in every round trip, and so "
        "takes the quick path to be slower than it is.",
        f"BLEST: {'; '.join(ratios(each, BLEST) for each in HEAVY)}. It waits only if the quick "
        "path could fill the shared window of 100 MiB before a segment of the slow one is "
        "acknowledged. As it reckons with windows that double in every round trip, this is so "
        "from 10/200 ms on, but not where a burst's own queue has lengthened the quick path's.",
    ]


def _panels() -> tuple[Panel, ...]:
    unequal: dict[str, _Curve] = {
        application: (_over_ratio(application, MPTCP), style)
        for application, style in APPLICATIONS.items()
    }
    scheduled: list[dict[str, _Curve]] = [
        {curve: (_over_ratio(application, curve), style) for curve, style in SCHEDULERS.items()}
        for application in (NETFLIX, MAPS)
    ]
    return (
        Panel("Equal round-trip times", "Below 1 MPTCP is quicker than TCP; no loss.", _draw_equal),
        Panel(
            "Different round-trip times",
            "Over TCP on the path of 10 ms; lowest RTT, no loss.",
            partial(_draw_unequal, curves=unequal),
        ),
        Panel("Loss on both paths", "Where TCP carries the load.", _draw_loss),
        Panel(
            f"Schedulers, {NETFLIX}",
            "The three coincide; no loss.",
            partial(_draw_unequal, curves=scheduled[0]),
        ),
        Panel(f"Schedulers, {MAPS}", "No loss.", partial(_draw_unequal, curves=scheduled[1])),
        Panel("Bursts of 10 to 50 segments", "Lowest RTT and ECF; no loss.", _draw_bursts),
    )


ENTRY = Entry(
    id="grinnemo15-cloud-latency",
    title="Latency of cloud applications over two paths (2015)",
    question="Do bursts of video, map tiles and keystrokes arrive sooner over two paths than by "
    "TCP over the quicker one, with loss and with unequal round-trip times?",
    references=(GRINNEMO, HURTIG),
    parameters=(
        Parameter("paths", "two of 100 Mbit/s; RTT 10, 40, 100, 200, 400 ms", "Grinnemo'15"),
        Parameter("loss", "0, 2, 4 %, towards the receiver of the data", "rates: Grinnemo'15"),
        Parameter("unequal pairs", "10/40, 10/100, 10/200, 10/400 ms", "slides; last two ours"),
        Parameter("buffers", "104857600 bytes, send and receive", "Grinnemo'15"),
        Parameter("queue", "2500 packets: every burst fits, loss is what the cell says", "ours"),
        Parameter("Netflix", "burst of 1 MB or 256 kB (lognormal, σ 0.3) every 2 to 4 s", "ours"),
        Parameter("Maps", "8 to 20 tiles of about 16 kB for each pan, think time 2 s", "ours"),
        Parameter("Docs", "messages of 100 to 1000 B, exponential, mean 0.5 s", "ours"),
        Parameter("bursts", "10 to 50 segments at 10/10, 10/40, 10/100 ms", "Hurtig et al. 2019"),
        Parameter("bursts' segments and pauses", "1400 bytes; 1 to 3 s", "ours"),
        Parameter("latency", "median over bursts, messages or rounds", "ours: not defined there"),
        Parameter("congestion control", "TCP CUBIC, MPTCP coupled (LIA)", "Grinnemo'15"),
        Parameter("uncoupled control, with loss", "CUBIC on each path", "ours, to explain"),
        Parameter("HyStart", "off in both, so that slow start is the same", "ours"),
        Parameter("Nagle's algorithm", "off", "ours"),
        Parameter("DSS checksum", "none", "Grinnemo'15 had it on; these runs do not use it"),
        Parameter("scheduler", "lowest RTT; BLEST and ECF beside it", "Grinnemo'15; beside: ours"),
    ),
    quick=Tier("quick", seeds=10, measured_s=60),
    full=Tier("full", seeds=30, measured_s=100),
    cells=cells,
    claims=CLAIMS,
    panels=_panels(),
    overview=Overview(
        factors={
            "application": "application",
            "curve": "curve",
            "rtt_one_ms": "RTT one (ms)",
            "rtt_two_ms": "RTT two (ms)",
            "loss_percent": "loss (%)",
        },
        metrics={
            "delay_p50_ms": "median latency (ms)",
            "delay_mean_ms": "mean latency (ms)",
            "delay_p95_ms": "p95 latency (ms)",
        },
        path="two",
    ),
    notes=notes,
)
