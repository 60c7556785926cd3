"""Lim et al., CoNEXT 2017: ECF, a scheduler that leaves the end of a transfer to the fast path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from anabranch.gallery.bounds import BOUNDS
from anabranch.gallery.entry import Cell, Entry, Overview, Tier, key_of, parameters
from anabranch.gallery.metrics import IDLE_RESTARTS, MEAN, OUT_OF_ORDER
from anabranch.gallery.shared.measures import distance
from anabranch.gallery.shared.uncertain import LINKS
from anabranch.reports import figures
from anabranch.reports.figures import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, Panel, Style
from anabranch.results.claims import Claim, Condition, each
from anabranch.results.estimates import Estimate, Sample, estimate, median, ratio_of_medians
from anabranch.results.folder import Factor, NothingMeasured, Results
from anabranch.scenarios.scenario import Connection, NetworkPath, RequestResponse, Scenario
from anabranch.words import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEFAULT, BLEST, ECF = "lowest RTT", "BLEST", "ECF"
OTIAS, STTF, DAPS = "OTIAS", "STTF", "DAPS"
STYLES = {
    DEFAULT: Style(RED, "-", "o"),
    BLEST: Style(GREEN, (0, (6, 1.5, 1, 1.5)), "^"),
    ECF: Style(BLUE, (0, (4, 1.5)), "s"),
    OTIAS: Style(ORANGE, (0, (2, 1)), "D"),
    STTF: Style(PURPLE, (0, (1, 1)), "x"),
    DAPS: Style(SKY, (0, (6, 1.5, 1, 1.5)), "v"),
}
_SCHEDULER = {
    DEFAULT: "min_rtt",
    BLEST: "blest",
    ECF: "ecf",
    OTIAS: "otias",
    STTF: "sttf",
    DAPS: "daps",
}

STREAM, DOWNLOAD = "stream", "download"
UNEQUAL = "0.3 + 8.6"
SYMMETRIC = {"0.3 + 0.3": 0.5, "4.2 + 4.2": 8.0, "8.6 + 8.6": 16.0}
"""Rates of WiFi and LTE in Mbit/s, and the rate of a video that nearly fills both."""
VIDEO_MBPS = (0.5, 1.0, 2.0, 4.0, 8.0)
JUDGED_MBPS = 8.0
"""Nearly the capacity of both paths, 0.3 and 8.6 Mbit/s."""
CHUNK_S = 5
_QUEUE = "30packets"
DOWNLOADS = ("1 + 10", "10 + 1")
SIZES_KIB = (64, 128, 256, 512, 1024, 2048)

LIM = (
    "Y. Lim, E. M. Nahum, D. Towsley, R. J. Gibbens: ECF: An MPTCP Path Scheduler to Manage "
    "Heterogeneous Paths. CoNEXT 2017."
)


def at(curve: str, workload: str, rates: str, amount: float) -> dict[str, Factor]:
    """The factors of a cell; `amount` is the video's rate in Mbit/s or the download in KiB."""
    return {"curve": curve, "workload": workload, "rates": rates, "amount": float(amount)}


def cells(tier: Tier) -> list[Cell]:
    """Every scheduler: video over unequal and equal paths, and downloads over unequal paths."""
    settings = [
        *((STREAM, UNEQUAL, rate) for rate in VIDEO_MBPS),
        *((STREAM, rates, rate) for rates, rate in SYMMETRIC.items()),
        *((DOWNLOAD, rates, float(size)) for rates in DOWNLOADS for size in SIZES_KIB),
    ]
    return [_cell(tier, curve, *setting) for setting in settings for curve in STYLES]


def _cell(tier: Tier, curve: str, workload: str, rates: str, amount: float) -> Cell:
    wifi, lte = rates.split(" + ")
    connection = Connection(
        name="main",
        scheduler=_SCHEDULER[curve],
        congestion_control="lia",
        remedies={"opportunistic_retransmission": True, "penalisation": "conext13"},
        nagle=False,
        workload=_video(amount) if workload == STREAM else _file(amount),
    )
    words = (curve, workload, rates, f"{amount:g}")
    scenario = Scenario(
        name=", ".join(words),
        duration=tier.duration,
        warm_up=tier.warm_up if workload == STREAM else None,
        paths=(
            NetworkPath(
                name="wifi", rate=f"{wifi}Mbit/s", delay="10ms", limit=_QUEUE, jitter="1ms"
            ),
            NetworkPath(name="lte", rate=f"{lte}Mbit/s", delay="47ms", limit=_QUEUE, jitter="5ms"),
        ),
        connections=(connection,),
    )
    return Cell(key_of(*words), scenario, at(curve, workload, rates, amount))


def _bytes(mbps: float) -> int:
    """Size of a chunk of video."""
    return round(mbps * 1e6 * CHUNK_S / 8)


def _video(mbps: float) -> RequestResponse:
    return RequestResponse(
        request_size="400B", response_size=f"{_bytes(mbps)}B", interval=f"{CHUNK_S}s"
    )


def _file(kib: float) -> RequestResponse:
    return RequestResponse(request_size="400B", response_size=f"{kib:g}KiB", count=1)


def throughput_mbps(results: Results, curve: str, rates: str, mbps: float) -> Sample:
    """Size of a chunk over the mean time to fetch a chunk, for each seed.

    Raises:
        NothingMeasured: if no run fetched a chunk.
    """
    times = results.values("delay_mean_ms", **at(curve, STREAM, rates, mbps))
    return _bytes(mbps) * 8e-3 / times


def _restarts(results: Results, curve: str, mbps: float = JUDGED_MBPS) -> Sample:
    return results.values("idle_restarts", **at(curve, STREAM, UNEQUAL, mbps))


def out_of_order_s(results: Results, curve: str, mbps: float = JUDGED_MBPS) -> Sample:
    """Mean time that bytes wait for earlier bytes, for each seed, by Little's law.

    Raises:
        NothingMeasured: if no run of the scheduler has the metrics.
    """
    cell = at(curve, STREAM, UNEQUAL, mbps)
    waiting = results.values("out_of_order_mean_bytes", **cell)
    return waiting * 8e-6 / results.values("goodput_mbps", **cell)


_Values = Callable[[Results, str], Sample]
"""The values of a scheduler, one for each seed."""


def _ratio(results: Results, values: _Values, curve: str = ECF) -> Estimate:
    """The ratio of the median of a scheduler to that of lowest RTT."""
    return ratio_of_medians(values(results, curve), values(results, DEFAULT))


def _ecf_distance(results: Results, values: _Values) -> Estimate:
    """The difference between the medians of ECF and lowest RTT, in per cent."""
    return estimate(distance, values(results, ECF), values(results, DEFAULT))


def _download_time(results: Results, curve: str, rates: str, kib: float) -> Sample:
    return results.values("delay_mean_ms", **at(curve, DOWNLOAD, rates, kib))


_UNEQUAL_VIDEO = f"{UNEQUAL} Mbit/s, video of {JUDGED_MBPS:g} Mbit/s"


def _both_used(
    workload: str, curves: Sequence[str] = (DEFAULT, BLEST, ECF)
) -> Callable[[Results], str | None]:
    """The precondition that each path carried data in every run with these schedulers.

    Downloads below 512 KiB are exempt.
    """

    def reason(results: Results) -> str | None:
        compared = pl.col("curve").is_in(curves)
        rows = results.runs.filter(compared & (pl.col("workload") == workload))
        if workload == DOWNLOAD:
            rows = rows.filter(pl.col("amount") >= 512)
        idle = rows.filter((pl.col("share_wifi") == 0) | (pl.col("share_lte") == 0))
        return None if idle.is_empty() else f"{idle['cell'][0]}: a path carried nothing"

    return reason


CLAIMS = (
    Claim(
        "E11.ecf-restarts",
        f"With ECF, congestion windows hardly ever restart after idle times ({_UNEQUAL_VIDEO}).",
        "CoNEXT'17: 486 with the default scheduler, 382 with BLEST, 16 with ECF (second-hand)",
        (
            Condition(
                "window restarts after idle times, ECF / lowest RTT",
                partial(_ratio, values=_restarts),
                BOUNDS["E11.ecf-restarts"],
            ),
        ),
        _both_used(STREAM),
        _UNEQUAL_VIDEO,
    ),
    Claim(
        "E11.daps-restarts",
        f"With DAPS, congestion windows seldom restart after idle times ({_UNEQUAL_VIDEO}).",
        "CoNEXT'17: 486 with the default scheduler, 92 with DAPS (second-hand)",
        (
            Condition(
                "window restarts after idle times, DAPS / lowest RTT",
                partial(_ratio, values=_restarts, curve=DAPS),
                BOUNDS["E11.daps-restarts"],
            ),
        ),
        _both_used(STREAM, (DEFAULT, DAPS)),
        _UNEQUAL_VIDEO,
    ),
    Claim(
        "E11.ecf-throughput",
        f"With ECF, chunks of video arrive sooner ({_UNEQUAL_VIDEO}).",
        "CoNEXT'17; the threshold is ours",
        (
            Condition(
                "throughput of chunks, ECF / lowest RTT",
                partial(_ratio, values=partial(throughput_mbps, rates=UNEQUAL, mbps=JUDGED_MBPS)),
                BOUNDS["E11.ecf-throughput"],
            ),
        ),
        _both_used(STREAM),
        _UNEQUAL_VIDEO,
    ),
    Claim(
        "E11.ecf-out-of-order",
        f"With ECF, data waits out of order for a shorter time ({_UNEQUAL_VIDEO}).",
        "CoNEXT'17: 99.9 % below 0.8 s, median 1 s with the default (second-hand); means are ours",
        (
            Condition(
                "mean time out of order, ECF / lowest RTT",
                partial(_ratio, values=out_of_order_s),
                BOUNDS["E11.ecf-out-of-order"],
            ),
        ),
        _both_used(STREAM),
        _UNEQUAL_VIDEO,
    ),
    Claim(
        "E11.ecf-symmetric",
        "Over equal paths, ECF performs like lowest RTT.",
        "CoNEXT'17; the threshold is ours",
        each(
            f"|throughput of chunks, ECF / lowest RTT − 1|, {', '.join(SYMMETRIC)} Mbit/s",
            (
                Condition(
                    f"|throughput of chunks, ECF / lowest RTT − 1|, {rates} Mbit/s",
                    partial(_ecf_distance, values=partial(throughput_mbps, rates=rates, mbps=mbps)),
                    BOUNDS["E11.ecf-symmetric"],
                )
                for rates, mbps in SYMMETRIC.items()
            ),
        ),
        _both_used(STREAM),
    ),
    Claim(
        "E11.ecf-download",
        "ECF shortens downloads of 512 KiB over paths of 1 and 10 Mbit/s.",
        "CoNEXT'17: by 13 %, up to 20 % from 256 KB on (second-hand); the threshold is ours",
        each(
            f"time to download 512 KiB over {listed(DOWNLOADS)} Mbit/s, ECF / lowest RTT",
            (
                Condition(
                    f"time to download 512 KiB over {rates} Mbit/s, ECF / lowest RTT",
                    partial(_ratio, values=partial(_download_time, rates=rates, kib=512)),
                    BOUNDS["E11.ecf-download"],
                )
                for rates in DOWNLOADS
            ),
        ),
        _both_used(DOWNLOAD),
    ),
    Claim(
        "E11.ecf-small-download",
        "Downloads of 128 KiB over paths of 1 and 10 Mbit/s take as long with ECF as with lowest "
        "RTT.",
        "CoNEXT'17: no gain at 128 KB (second-hand); the threshold is ours",
        each(
            f"|time to download 128 KiB over {listed(DOWNLOADS)} Mbit/s, ECF / lowest RTT − 1|",
            (
                Condition(
                    f"|time to download 128 KiB over {rates} Mbit/s, ECF / lowest RTT − 1|",
                    partial(_ecf_distance, values=partial(_download_time, rates=rates, kib=128)),
                    BOUNDS["E11.ecf-small-download"],
                )
                for rates in DOWNLOADS
            ),
        ),
    ),
)


def _draw_video(
    results: Results, axes: Axes, values: Callable[[Results, str, float], Sample], unit: str
) -> None:
    for curve, style in STYLES.items():
        points = {}
        for mbps in VIDEO_MBPS:
            with suppress(NothingMeasured):  # no chunk arrived
                points[mbps] = median(values(results, curve, mbps))
        figures.estimates(axes, [*points], [*points.values()], curve, style)
    figures.plain_ticks(axes, VIDEO_MBPS)
    axes.set(xlabel="video rate (Mbit/s)", ylabel=unit)
    axes.set_ylim(0)


def _unequal_throughput(results: Results, curve: str, mbps: float) -> Sample:
    return throughput_mbps(results, curve, UNEQUAL, mbps)


_CONEXT17 = {DEFAULT: 486, BLEST: 382, ECF: 16, DAPS: 92}
"""CoNEXT'17: window restarts at 0.3 + 8.6 Mbit/s, in one video of 1332 s (second-hand)."""


def _draw_restarts(results: Results, axes: Axes) -> None:
    bars = {
        curve: ([_ratio(results, _restarts, curve)], style)
        for curve, style in STYLES.items()
        if curve != DEFAULT
    }
    source = {curve: [count / _CONEXT17[DEFAULT]] for curve, count in _CONEXT17.items()}
    figures.grouped_bars(axes, [_UNEQUAL_VIDEO], bars, source)
    figures.reference_line(axes, 1, DEFAULT)
    axes.set_ylabel("restarts / that of lowest RTT")
    axes.set_ylim(0)


def _draw_downloads(results: Results, axes: Axes, rates: str) -> None:
    others: Mapping[str, Any] = {
        curve: ({"curve": curve, "workload": DOWNLOAD, "rates": rates}, style)
        for curve, style in STYLES.items()
    }
    figures.over_factor(axes, results, "amount", "delay_mean_ms", others)
    figures.plain_ticks(axes, SIZES_KIB)
    axes.set(xlabel="size (KiB)", ylabel="download time (ms)")
    axes.set_ylim(0)


def _draw_window(results: Results, axes: Axes) -> None:
    lines = {}
    for curve in (DEFAULT, ECF):
        key = key_of(curve, STREAM, UNEQUAL, f"{JUDGED_MBPS:g}")
        samples = results.samples.filter(
            (pl.col("cell") == key)
            & (pl.col("path_name") == "lte")
            & pl.col("time_ns").is_between(30e9, 60e9)
        )
        seconds = samples["time_ns"].to_numpy() / 1e9
        lines[curve] = (seconds, samples["cwnd"].to_numpy() / 1e3, STYLES[curve])
    figures.series(axes, lines, "congestion window of LTE (kB)")


def notes(results: Results) -> Sequence[str]:
    """Why the schedulers differ, and what the paper's numbers depend on."""

    def over_rates(values: Callable[[float], float], form: str) -> str:
        return ", ".join(f"{values(mbps):{form}}" for mbps in VIDEO_MBPS)

    def gain(mbps: float) -> float:
        ecf, default = (throughput_mbps(results, each, UNEQUAL, mbps) for each in (ECF, DEFAULT))
        return float(np.median(ecf) / np.median(default))

    def restarts(curve: str) -> str:
        return over_rates(lambda mbps: float(np.median(_restarts(results, curve, mbps))), ".0f")

    def seconds(curve: str) -> float:
        cell = at(curve, STREAM, UNEQUAL, JUDGED_MBPS)
        return float(np.median(results.values("delay_mean_ms", **cell))) / 1e3

    rates = ", ".join(f"{mbps:g}" for mbps in VIDEO_MBPS)
    return [
        f"Mean smoothed round-trip times with lowest RTT, WiFi and LTE: {_srtts(results)}. "
        "CoNEXT'17 measured 969 and 858 ms at 0.3 Mbit/s, and 40 and 105 ms at 8.6 Mbit/s "
        "(second-hand). One queue of about 30 packets at all rates explains these times.",
        f"At 8 Mbit/s, a chunk takes {seconds(DEFAULT):.2f} s with lowest RTT and "
        f"{seconds(ECF):.2f} s with ECF. Both paths together could carry it in 4.7 s. The data "
        "that lowest RTT gives to WiFi at the end of a chunk arrives up to a second after LTE has "
        "finished. LTE idles meanwhile, and its window restarts small. In the middle of a chunk, "
        "ECF uses WiFi like lowest RTT, so data waits out of order for nearly as long. ECF keeps "
        "LTE's window, which then overflows LTE's queue.",
        f"Throughput of chunks, ECF over lowest RTT, for video of {rates} Mbit/s: "
        f"{over_rates(gain, '.2f')}. The player of CoNEXT'17 switches to lower rates when chunks "
        "are late. Its chunks become smaller, and the end of a chunk weighs more. Our player does "
        "not adapt.",
        f"Window restarts per run at the same rates: {restarts(DEFAULT)} with lowest RTT, "
        f"{restarts(ECF)} with ECF. Below 8 Mbit/s, the player pauses after each chunk, and both "
        "windows restart with any scheduler. The count distinguishes schedulers only where a chunk "
        "takes about as long to arrive as to play. After a restart, ECF estimates with LTE's small "
        "window, takes LTE to be slow, and gives WiFi more data than it should.",
        "Over 1 + 10 Mbit/s, WiFi is the slow path, but it has the lower round-trip time until its "
        "queue has grown. Both schedulers therefore fill it first. ECF then withholds data from "
        "WiFi, and gives it back near the end, when its second rule takes WiFi to be quick enough "
        "for one more window.",
        "OTIAS, STTF and DAPS assign all data that the receive window admits at once. The first "
        "chunk comes before LTE has joined, so it waits for WiFi, at 8 Mbit/s for two minutes. "
        "LTE's window restarts because LTE waits for the data that WiFi has.",
        "BLEST performs like lowest RTT: the shared window of some MiB is never about to fill.",
    ]


def _srtts(results: Results) -> str:
    samples = results.samples.filter(
        (pl.col("curve") == DEFAULT) & (pl.col("workload") == STREAM) & (pl.col("srtt_ns") > 0)
    )
    means = samples.group_by("rates", "path_name").agg(pl.col("srtt_ns").mean() / 1e6)
    found = {(rates, path): srtt for rates, path, srtt in means.iter_rows()}
    return "; ".join(
        f"{found[rates, 'wifi']:.0f} and {found[rates, 'lte']:.0f} ms over {rates} Mbit/s"
        for rates in SYMMETRIC
    )


_PARAMETERS = parameters("""
    rates | 0.3 + 8.6 and equal rates (video), 1 and 10 Mbit/s (downloads) | CoNEXT'17
    round-trip times without queue | WiFi 20 ms ± 1, LTE 94 ms ± 5 | ours: see the notes
    queues | 30 packets | ours: see the notes
    chunks | 5 s of video, requested every 5 s, or at once if the last chunk took longer | CoNEXT'17
    video rate | 0.5 to 8 Mbit/s, fixed; judged at 8 | ours: the paper's player adapts
    equal paths | video of 0.5, 8 and 16 Mbit/s: nearly the capacity of both paths | ours
    throughput of chunks | size over the mean time from request to last byte | ours
    downloads | 64 to 2048 KiB, a new connection each | CoNEXT'17
    windows after idle times | halved for each retransmission timeout of idle time | RFC 2861, as in
        Linux
    time out of order | mean out-of-order bytes / goodput | ours: Little's law
    remedies | M1 and M2 (CoNEXT'13) with every scheduler | as in Multipath TCP 0.89
    congestion control, buffers | LIA; 4 and 6 MiB, the defaults | ours
    Nagle's algorithm | off | ours
""")


ENTRY = Entry(
    id="conext17-ecf",
    title="Earliest completion first (ECF): video and downloads over unequal paths (CoNEXT 2017)",
    question="Does leaving the end of a transfer to the fast path keep that path busy? Do "
    "transfers finish sooner?",
    references=(LIM,),
    parameters=_PARAMETERS,
    quick=Tier("quick", seeds=10, measured_s=100, warm_up_s=10),
    full=Tier("full", seeds=30, measured_s=300, warm_up_s=10),
    cells=cells,
    uncertain_parameters=LINKS,
    claims=CLAIMS,
    headline="E11.ecf-throughput",
    panels=(
        Panel(
            "Chunks of video, 0.3 + 8.6 Mbit/s",
            "Size of a chunk over the mean time to fetch a chunk.",
            partial(_draw_video, values=_unequal_throughput, unit="throughput of chunks (Mbit/s)"),
        ),
        Panel(
            "Windows lost to idle times, 0.3 + 8.6 Mbit/s",
            "How often an idle time made a congestion window smaller, per run, both subflows.",
            partial(_draw_video, values=_restarts, unit="restarts per run"),
        ),
        Panel(
            f"Windows lost to idle times, video of {JUDGED_MBPS:g} Mbit/s",
            "Restarts over those with lowest RTT. Diamonds: CoNEXT'17, whose player adapts.",
            _draw_restarts,
        ),
        Panel(
            "Time out of order, 0.3 + 8.6 Mbit/s",
            "Mean time that a byte waits for earlier bytes.",
            partial(_draw_video, values=out_of_order_s, unit="mean time out of order (s)"),
        ),
        Panel("LTE's window, video of 8 Mbit/s", "Congestion window, first seed.", _draw_window),
        *(
            Panel(
                f"Downloads, {rates} Mbit/s",
                "A new connection for each download. The first rate is WiFi's.",
                partial(_draw_downloads, rates=rates),
            )
            for rates in DOWNLOADS
        ),
    ),
    overview=Overview(
        {
            "workload": "workload",
            "rates": "WiFi + LTE (Mbit/s)",
            "amount": "Mbit/s or KiB",
            "curve": "scheduler",
        },
        (MEAN.called("mean time"), IDLE_RESTARTS, OUT_OF_ORDER),
        "wifi",
    ),
    notes=notes,
)
