"""Lim et al., CoNEXT 2017: ECF, a scheduler that leaves the end of a transfer to the fast path."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import polars as pl

from anabranch.gallery import panels
from anabranch.gallery.claims import Needs, Quantity, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid
from anabranch.gallery.measures import Values, derived, distance, median, ratio
from anabranch.gallery.metrics import IDLE_RESTARTS, MEAN, OUT_OF_ORDER, Levels, waiting_ms
from anabranch.gallery.shared.connections import flow, network_path
from anabranch.gallery.shared.wifi_3g import M12
from anabranch.reports.figures import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, Style
from anabranch.results.claims import Measure
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import RequestResponse
from anabranch.words import listed

DEFAULT, BLEST, ECF = "lowest RTT", "BLEST", "ECF"
OTIAS, STTF, DAPS = "OTIAS", "STTF", "DAPS"
STYLES = {
    DEFAULT: Style(RED),
    BLEST: Style(GREEN, "^-."),
    ECF: Style(BLUE, "s--"),
    OTIAS: Style(ORANGE, "D.."),
    STTF: Style(PURPLE, "x:"),
    DAPS: Style(SKY, "v-."),
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

at = Factors("curve", "workload", "rates", "amount")
"""The factors of a cell; `amount` is the video's rate in Mbit/s or the download in KiB."""

SETTINGS = (
    *((STREAM, UNEQUAL, rate) for rate in VIDEO_MBPS),
    *((STREAM, rates, rate) for rates, rate in SYMMETRIC.items()),
    *((DOWNLOAD, rates, float(size)) for rates in DOWNLOADS for size in SIZES_KIB),
)
"""Video over unequal and equal paths, and downloads over unequal paths."""


def _cell(tier: Tier, setting: tuple[str, str, float], curve: str) -> Cell:
    workload, rates, amount = setting
    wifi, lte = rates.split(" + ")
    connection = flow(
        scheduler="min_rtt" if curve == DEFAULT else curve.lower(),
        remedies=M12,
        nagle=False,
        workload=_requests(workload, amount),
    )
    paths = (
        network_path("wifi", f"{wifi}Mbit/s", "10ms", _QUEUE, jitter="1ms"),
        network_path("lte", f"{lte}Mbit/s", "47ms", _QUEUE, jitter="5ms"),
    )
    return tier.cell(
        at(curve, workload, rates, amount),
        paths,
        connection,
        words=(curve, workload, rates, f"{amount:g}"),
        warm_up=tier.warm_up if workload == STREAM else None,
    )


def _bytes(mbps: float) -> int:
    """Size of a chunk of video."""
    return round(mbps * 1e6 * CHUNK_S / 8)


def _requests(workload: str, amount: float) -> RequestResponse:
    """Chunks of video, or one download."""
    request = partial(RequestResponse, request_size="400B")
    if workload == STREAM:
        return request(response_size=f"{_bytes(amount)}B", interval=f"{CHUNK_S}s")
    return request(response_size=f"{amount:g}KiB", count=1)


def throughput_mbps(curve: str, mbps: float = JUDGED_MBPS, rates: str = UNEQUAL) -> Values:
    """Size of a chunk over the mean time to fetch a chunk, for each seed."""
    times = MEAN.values(at(curve, STREAM, rates, mbps))
    return derived(lambda ms: _bytes(mbps) * 8e-3 / ms, times)


def _judged(curve: str, mbps: float = JUDGED_MBPS) -> Levels:
    return at(curve, STREAM, UNEQUAL, mbps)


def _restarts(curve: str, mbps: float = JUDGED_MBPS) -> Values:
    return IDLE_RESTARTS.values(_judged(curve, mbps))


def out_of_order_s(curve: str, mbps: float = JUDGED_MBPS) -> Values:
    """Mean time that bytes wait for earlier bytes, for each seed, by Little's law."""
    return derived(lambda ms: ms / 1e3, waiting_ms(_judged(curve, mbps)))


_UNEQUAL_VIDEO = f"{UNEQUAL} Mbit/s, video of {JUDGED_MBPS:g} Mbit/s"


def _both_used(workload: str, curves: Sequence[str] = (DEFAULT, BLEST, ECF)) -> Needs:
    """The precondition that each path carried data in every run with these schedulers.

    Downloads below 512 KiB are exempt.
    """

    def reason(results: Results) -> str | None:
        compared = [results.rows("runs", curve=curve, workload=workload) for curve in curves]
        rows = pl.concat(compared)
        if workload == DOWNLOAD:
            rows = rows.filter(pl.col("amount") >= 512)
        idle = rows.filter((pl.col("share_wifi") == 0) | (pl.col("share_lte") == 0))
        return None if idle.is_empty() else f"{idle['cell'][0]}: a path carried nothing"

    return reason


def _over_default(of: Callable[[str], Values], curve: str = ECF) -> Measure:
    return ratio(of(curve), of(DEFAULT))


def _downloads(
    kib: int, words: str, compare: Callable[[Values, Values], Measure]
) -> tuple[Quantity, ...]:
    """Compare ECF with lowest RTT, over either pair of paths."""
    words = words.format(f"time to download {kib} KiB over {{}} Mbit/s, ECF / lowest RTT")
    return for_each(
        words,
        DOWNLOADS,
        lambda rates: compare(
            *(MEAN.values(at(curve, DOWNLOAD, rates, kib)) for curve in (ECF, DEFAULT))
        ),
        words.format(listed(DOWNLOADS)),
    )


_video_claim = partial(claim, needs=_both_used(STREAM))
_SYMMETRIC = "|throughput of chunks, ECF / lowest RTT − 1|, {} Mbit/s"

CLAIMS = {
    "E11.ecf-restarts": _video_claim(
        Quantity("window restarts after idle times, ECF / lowest RTT", _over_default(_restarts))
    ),
    "E11.daps-restarts": claim(
        Quantity(
            "window restarts after idle times, DAPS / lowest RTT", _over_default(_restarts, DAPS)
        ),
        needs=_both_used(STREAM, (DEFAULT, DAPS)),
    ),
    "E11.ecf-throughput": _video_claim(
        Quantity("throughput of chunks, ECF / lowest RTT", _over_default(throughput_mbps))
    ),
    "E11.ecf-out-of-order": _video_claim(
        Quantity("mean time out of order, ECF / lowest RTT", _over_default(out_of_order_s))
    ),
    "E11.ecf-symmetric": claim(
        for_each(
            _SYMMETRIC,
            SYMMETRIC,
            lambda rates: distance(
                throughput_mbps(ECF, SYMMETRIC[rates], rates),
                throughput_mbps(DEFAULT, SYMMETRIC[rates], rates),
            ),
            _SYMMETRIC.format(", ".join(SYMMETRIC)),
        ),
        needs=_both_used(STREAM),
    ),
    "E11.ecf-download": claim(_downloads(512, "{}", ratio), needs=_both_used(DOWNLOAD)),
    "E11.ecf-small-download": claim(_downloads(128, "|{} − 1|", distance)),
}


def _over_video_rate(of: Callable[[str, float], Values], y: str) -> panels.Draw:
    return panels.points(
        VIDEO_MBPS,
        lambda curve, mbps: median(of(curve, mbps)),
        STYLES,
        "video rate (Mbit/s)",
        y,
        ticks=VIDEO_MBPS,
    )


_CONEXT17 = {DEFAULT: 486, BLEST: 382, ECF: 16, DAPS: 92}
"""CoNEXT'17: window restarts at 0.3 + 8.6 Mbit/s, in one video of 1332 s (second-hand)."""


def _downloads_over(rates: str) -> panels.Draw:
    curves = panels.curves(STYLES, workload=DOWNLOAD, rates=rates)
    metric = MEAN.called("download time")
    return panels.over("amount", metric, curves, "size (KiB)", ticks=SIZES_KIB)


def _measured_words(results: Results) -> dict[str, object]:
    def over_rates(values: Callable[[float], float], form: str) -> str:
        return ", ".join(f"{values(mbps):{form}}" for mbps in VIDEO_MBPS)

    def gain(mbps: float) -> float:
        gained = ratio(throughput_mbps(ECF, mbps), throughput_mbps(DEFAULT, mbps))
        return gained(results).value

    def restarts(curve: str) -> str:
        return over_rates(lambda mbps: float(np.median(_restarts(curve, mbps)(results))), ".0f")

    def seconds(curve: str) -> float:
        return MEAN.number(results, _judged(curve)) / 1e3

    return {
        "srtts": _srtts(results),
        "default_s": seconds(DEFAULT),
        "ecf_s": seconds(ECF),
        "rates": over_rates(float, "g"),
        "gains": over_rates(gain, ".2f"),
        "default_restarts": restarts(DEFAULT),
        "ecf_restarts": restarts(ECF),
    }


def _srtts(results: Results) -> str:
    samples = results.rows("samples", curve=DEFAULT, workload=STREAM).filter(pl.col("srtt_ns") > 0)
    means = samples.group_by("rates", "path_name").agg(pl.col("srtt_ns").mean() / 1e6)
    found = {(rates, path): srtt for rates, path, srtt in means.iter_rows()}
    return "; ".join(
        f"{found[rates, 'wifi']:.0f} and {found[rates, 'lte']:.0f} ms over {rates} Mbit/s"
        for rates in SYMMETRIC
    )


PANELS = {
    "Chunks of video, 0.3 + 8.6 Mbit/s": _over_video_rate(
        throughput_mbps, "throughput of chunks (Mbit/s)"
    ),
    "Windows lost to idle times, 0.3 + 8.6 Mbit/s": _over_video_rate(_restarts, "restarts per run"),
    f"Windows lost to idle times, video of {JUDGED_MBPS:g} Mbit/s": panels.bars(
        (_UNEQUAL_VIDEO,),
        lambda curve, _: _over_default(_restarts, curve),
        {curve: style for curve, style in STYLES.items() if curve != DEFAULT},
        "restarts / that of lowest RTT",
        {curve: [count / _CONEXT17[DEFAULT]] for curve, count in _CONEXT17.items()},
        lines={1: DEFAULT},
    ),
    "Time out of order, 0.3 + 8.6 Mbit/s": _over_video_rate(
        out_of_order_s, "mean time out of order (s)"
    ),
    "LTE's window, video of 8 Mbit/s": panels.series(
        {
            curve: ({**_judged(curve), "path_name": "lte"}, "cwnd", STYLES[curve])
            for curve in (DEFAULT, ECF)
        },
        "congestion window of LTE (kB)",
        scale=1e-3,
        shown_s=(30, 60),
        bottom=None,
    ),
    **{f"Downloads, {rates} Mbit/s": _downloads_over(rates) for rates in DOWNLOADS},
}

EXPERIMENT = Experiment(
    words={"video": _UNEQUAL_VIDEO},
    design=grid(_cell, setting=SETTINGS, curve=STYLES),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview(
        "workload; rates: WiFi + LTE (Mbit/s); amount: Mbit/s or KiB; curve: scheduler",
        "wifi",
        (MEAN.called("mean time"), IDLE_RESTARTS, OUT_OF_ORDER),
    ),
    measured_words=_measured_words,
)
