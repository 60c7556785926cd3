"""Frömmgen et al., ICC 2016: data sent redundantly over both paths, for short and even delays."""

from functools import partial

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, carried, claim
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid
from anabranch.gallery.metrics import GOODPUT, MEAN, P50, P99, Metric, texts
from anabranch.gallery.shared.connections import flow, network_path
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, Style, ccdf, cdf
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Bulk, BurstLoss, RequestResponse

TCP_WIFI, TCP_LTE = "TCP over WiFi", "TCP over LTE"
MIN_RTT, REDUNDANT = "MPTCP, min_rtt", "MPTCP, redundant"
STYLES = {
    TCP_WIFI: Style(BLUE),
    TCP_LTE: Style(ORANGE, "v-."),
    MIN_RTT: Style(RED, "s--"),
    REDUNDANT: Style(GREEN, "^-"),
}
_PATHS = {TCP_WIFI: ("wifi",), TCP_LTE: ("lte",)}

STRESSED, CALM, BULK = "stressed", "calm", "bulk"
NETWORKS = (STRESSED, CALM, BULK)
_BURSTS = BurstLoss(to_bad="1%", to_good="25%")
"""Bursts of four packets on average, 3.8 % of all packets."""

at = Factors("curve", "network")


def _cell(tier: Tier, curve: str, network: str) -> Cell:
    both = {"jitter": "5ms", "burst_loss": _BURSTS if network == STRESSED else None}
    paths = (
        network_path("wifi", "10Mbit/s", "15ms", "80ms", **both),
        network_path("lte", "10Mbit/s", "25ms", "150ms", **both),
    )
    questions = RequestResponse(request_size="200B", response_size="2KiB", think_time="200ms")
    connection = flow(
        _PATHS.get(curve),
        congestion_control=None,
        scheduler="redundant" if curve == REDUNDANT else None,
        workload=Bulk() if network == BULK else questions,
    )
    return tier.cell(at(curve, network), paths, connection, keep_blocks=True)


def _redundant_over(
    other: str, network: str, words: str, metric: Metric, bound: str = ""
) -> Quantity:
    ratio = metric.ratio(at(REDUNDANT, network), at(other, network))
    return Quantity(f"{words}, redundant / {other}", ratio, bound)


_claim = partial(claim, needs=carried("lte", *at.every(REDUNDANT, NETWORKS), over=0.1))

CLAIMS = {
    "RD.a-shorter-tail": _claim(
        _redundant_over(other, STRESSED, "p99", P99) for other in (MIN_RTT, TCP_WIFI, TCP_LTE)
    ),
    "RD.b-halved": _claim(_redundant_over(TCP_WIFI, STRESSED, "mean", MEAN)),
    "RD.c-control": _claim(_redundant_over(MIN_RTT, CALM, "median", P50)),
    "RD.d-price": _claim(
        _redundant_over(TCP_WIFI, BULK, "goodput", GOODPUT, "TCP"),
        _redundant_over(MIN_RTT, BULK, "goodput", GOODPUT, "MPTCP"),
    ),
}


def _measured_words(results: Results) -> dict[str, object]:
    return texts(results, at, p99=P99)


PANELS = {
    "Response time with losses": panels.distribution(
        ccdf, panels.curves(STYLES, network=STRESSED), 3000
    ),
    "Response time without losses": panels.distribution(cdf, panels.curves(STYLES, network=CALM)),
}

EXPERIMENT = Experiment(
    design=grid(_cell, network=NETWORKS, curve=STYLES),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("network; curve", "lte", (GOODPUT, MEAN.called("mean"), P99)),
    measured_words=_measured_words,
)
