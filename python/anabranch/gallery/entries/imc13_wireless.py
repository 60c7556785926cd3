"""Chen et al., IMC 2013: download time against flow size over WiFi, cellular, and both."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise, product
from typing import Any

import polars as pl

from anabranch.gallery import measures, panels
from anabranch.gallery.claims import Quantity, claim, each, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.measures import Values, difference, median, per_seed, ratio
from anabranch.gallery.metrics import COMPLETION, REINJECTIONS, TRANSFER
from anabranch.gallery.shared.connections import flow, network_path
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, SKY, Style
from anabranch.results.claims import Measure
from anabranch.results.estimates import Sample
from anabranch.results.folder import Results
from anabranch.scenarios import traces
from anabranch.scenarios.scenario import Blocks, Connection, NetworkPath, Reverse, Trace

TCP_WIFI, TCP_CELLULAR = "TCP over WiFi", "TCP over LTE"
LIA, OLIA, UNCOUPLED = "MPTCP, LIA", "MPTCP, OLIA", "MPTCP, uncoupled"
STYLES = {
    TCP_WIFI: Style(BLUE),
    TCP_CELLULAR: Style(ORANGE, "v-."),
    LIA: Style(RED, "s--"),
    OLIA: Style(GREEN, "^.."),
    UNCOUPLED: Style(SKY, "D:"),
}
_CONTROLS = {OLIA: "olia", LIA: "lia"}
_PATHS = {TCP_WIFI: ("wifi",), TCP_CELLULAR: ("cellular",)}
MULTIPATH = (LIA, OLIA, UNCOUPLED)

CONSTANT, TRACES, POOR = "constant rates", "rates of traces", "3G"
WITH_LTE = (CONSTANT, TRACES)
NETWORKS = (*WITH_LTE, POOR)
SIZES = (8, 64, 512, 4096, 16_384)
"""Sizes of the downloads, in KiB."""
SMALL, LARGE = SIZES[0], SIZES[-1]
SPACING_S = 30
"""Time from the start of one download to the start of the next; each is over by then."""

_WIFI = network_path("wifi", "15Mbit/s", "15ms", "80ms", jitter="2ms", loss="0.2%")
_LTE = network_path("cellular", "12Mbit/s", "30ms", "400ms", jitter="2ms")
_3G = network_path("cellular", "2Mbit/s", "75ms", "334packets", jitter="5ms")


@cache
def _trace(mbps: int, seconds: int, seed: int) -> Trace:
    """A synthetic trace with bursts every 5 ms. It repeats after `seconds`."""
    rates = traces.synthetic(mbps * 10**6, seconds * 10**6, seed)
    return Trace(milliseconds=traces.in_line(traces.opportunities(rates, slot_ms=5)))


def _paths(network: str) -> tuple[NetworkPath, NetworkPath]:
    if network == POOR:
        return _WIFI, _3G
    if network == CONSTANT:
        return _WIFI, replace(_LTE, reverse=Reverse(rate="5Mbit/s"))
    # Downloads start every 30 s, so they meet different parts of traces of 23 and 29 s.
    wifi, cellular = _trace(15, 29, seed=1), _trace(12, 23, seed=2)
    return (
        replace(_WIFI, rate=None, trace=wifi, reverse=Reverse(rate="15Mbit/s")),
        replace(_LTE, rate=None, trace=cellular, reverse=Reverse(rate="5Mbit/s")),
    )


at = Factors("curve", "kib", "network")


def _cell(tier: Tier, curve: str, kib: int, network: str) -> Cell:
    downloads = tier.measured_s // SPACING_S
    return tier.cell(
        at(curve, kib, network),
        _paths(network),
        [_download(curve, kib, number) for number in range(downloads)],
        name=f"{curve}, {kib} KiB, {network}",
        keep_starts=True,
    )


def _download(curve: str, kib: int, number: int) -> Connection:
    return flow(
        _PATHS.get(curve),
        name=f"download-{number}",
        start=f"{number * SPACING_S}s",
        control=_CONTROLS.get(curve, "new_reno"),
        buffers="8MiB",
        workload=Blocks(block_size=f"{kib}KiB", count=1),
    )


@measures.by_seed
def _means(results: Results, of: pl.Expr, curve: str, kib: int, network: str) -> Sample:
    """The mean of an expression over the downloads of each run, in the order of the seeds."""
    cell = at(curve, kib, network)
    nothing = f"no download was complete for {cell}"
    return per_seed(results.rows("runs", **cell), of.mean(), nothing)


seconds = partial(_means, pl.col("completion_s"))
"""Mean download time in s for each seed, from the opening of the connection."""
share = partial(_means, pl.col("share_cellular") * 100)
"""The cellular path's mean share of the bytes in per cent, for each seed."""
out_of_order_ms = partial(
    _means, pl.col("out_of_order_mean_bytes") * 8e-3 / pl.col("transfer_mbps")
)
"""Mean time in ms that bytes wait for earlier bytes, for each seed, by Little's law."""


def _over_best(kib: int, network: str) -> Measure:
    """Download time of LIA over that of the better path alone. Next to 3G, this is WiFi."""
    one = seconds(LIA, kib, network)
    if network == POOR:
        return ratio(one, seconds(TCP_WIFI, kib, CONSTANT))
    return measures.over_smallest(one, *(seconds(curve, kib, network) for curve in _PATHS))


def _time_ratio(above: str, below: str, kib: int, network: str) -> Measure:
    return ratio(seconds(above, kib, network), seconds(below, kib, network))


def _waiting_ratio(above: str, below: str) -> Measure:
    return ratio(out_of_order_ms(LIA, LARGE, above), out_of_order_ms(LIA, LARGE, below))


def words(kib: int) -> str:
    """A size in words, such as ``"4 MiB"``."""
    return f"{kib} KiB" if kib < 1024 else f"{kib // 1024} MiB"


def _with_lte(group: str, make: Callable[[str], Measure], bound: str = "") -> tuple[Quantity, ...]:
    """One quantity for constant rates and one for traces."""
    return for_each(f"{group}, {{}}", WITH_LTE, make, group, bound)


def _both_carried(results: Results) -> str | None:
    """The precondition that large downloads used both paths in every network."""
    for curve, network in [*product(MULTIPATH, WITH_LTE), (LIA, POOR)]:
        least = float(share(curve, LARGE, network)(results).min())
        if not 1 < least < 99:
            return f"the cellular path carried {least:.1f} % ({curve}, {network})"
    return None


_OVER_BEST = "download time, LIA / best path alone"
_claim = partial(claim, needs=_both_carried)

CLAIMS = {
    "IM.a-close-to-best": _claim(
        for_each(
            f"{_OVER_BEST}, {{2}}, {{1}}",
            ((kib, network, words(kib)) for network, kib in product(NETWORKS, SIZES)),
            lambda kib, network, _: _over_best(kib, network),
            f"{_OVER_BEST}, every size and network",
        )
    ),
    "IM.b-large-faster": _claim(_with_lte(f"{_OVER_BEST}, with LTE", partial(_over_best, LARGE))),
    "IM.c-poor-cellular": _claim(
        Quantity("download time, LIA / TCP over WiFi, 3G", _over_best(LARGE, POOR))
    ),
    "IM.d-small-flows": _claim(
        _with_lte("cellular share", lambda network: median(share(LIA, SMALL, network)), "share"),
        _with_lte(
            "download time, LIA / TCP over WiFi", partial(_time_ratio, LIA, TCP_WIFI, SMALL), "time"
        ),
    ),
    "IM.e-share-grows": _claim(
        each(
            "cellular share less that of the next smaller size, every size and both kinds of links",
            {
                f"cellular share, {words(kib)} − {words(smaller)}, {network}": difference(
                    share(LIA, kib, network), share(LIA, smaller, network)
                )
                for network in WITH_LTE
                for smaller, kib in pairwise(SIZES)
            },
        )
    ),
    "IM.f-uncoupled": _claim(
        _with_lte("download time, uncoupled / LIA", partial(_time_ratio, UNCOUPLED, LIA, LARGE))
    ),
    "IM.g-olia": _claim(
        _with_lte("download time, OLIA / LIA", partial(_time_ratio, OLIA, LIA, LARGE))
    ),
    "IM.h-slow-path-waits": _claim(
        Quantity("out-of-order delay, LIA, 3G / LTE", _waiting_ratio(POOR, CONSTANT))
    ),
    "IM.i-traces-wait": _claim(
        Quantity(
            "out-of-order delay, LIA, traces / constant rates", _waiting_ratio(TRACES, CONSTANT)
        )
    ),
}


def _over_size(
    of: Callable[[str, int, str], Values], network: str, curves: Sequence[str], y: str, **look: Any
) -> panels.Draw:
    return panels.points(
        SIZES,
        lambda curve, kib: median(of(curve, kib, network)),
        {curve: STYLES[curve] for curve in curves},
        "size of the download",
        y,
        ticks={kib: words(kib) for kib in SIZES},
        **look,
    )


def _waiting(curve: str, network: str) -> Measure | None:
    is_run = network != POOR or curve == LIA
    return median(out_of_order_ms(curve, LARGE, network)) if is_run else None


def _measured_words(results: Results) -> dict[str, object]:
    def times(network: str) -> str:
        curves = (LIA,) if network == POOR else STYLES
        found = measures.in_words(
            results, curves, lambda c: median(seconds(c, LARGE, network)), "s"
        )
        return f"{network}: {found}"

    waits = measures.in_words(
        results, NETWORKS, lambda n: median(out_of_order_ms(LIA, LARGE, n)), "ms"
    )
    return {"times": "; ".join(map(times, NETWORKS)), "waits": waits}


PANELS = {
    **{
        f"Download time, {network}": _over_size(
            seconds, network, tuple(STYLES), "download time (s)", log=True
        )
        for network in (CONSTANT, TRACES)
    },
    "Cellular share": _over_size(
        share, CONSTANT, MULTIPATH, "cellular share of the bytes (%)", top=100
    ),
    "Out-of-order delay": panels.bars(
        {f"LTE,\n{CONSTANT}": CONSTANT, f"LTE,\n{TRACES}": TRACES, POOR: POOR},
        _waiting,
        {curve: STYLES[curve] for curve in MULTIPATH},
        "mean out-of-order delay (ms)",
        span=(-0.5, 2.5),
    ),
}

EXPERIMENT = Experiment(
    words={
        "sizes": ", ".join(map(words, SIZES)),
        "large": words(LARGE),
        "spacing_s": SPACING_S,
        "small": words(SMALL),
    },
    design=joined(
        grid(_cell, network=WITH_LTE, kib=SIZES, curve=STYLES),
        grid(_cell, network=(POOR,), kib=SIZES, curve=(LIA,)),
    ),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview(
        "network; kib: size (KiB); curve",
        "cellular",
        (COMPLETION, TRANSFER.called("rate"), REINJECTIONS),
    ),
    measured_words=_measured_words,
)
