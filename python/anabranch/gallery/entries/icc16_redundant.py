"""Frömmgen et al., ICC 2016: data sent redundantly over both paths, for short and even delays."""

from functools import partial

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, carried, claim, named
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, grid
from anabranch.gallery.metrics import GOODPUT, MEAN, P50, P99, Metric
from anabranch.gallery.shared.connections import flow, network_path
from anabranch.gallery.shared.uncertain import LINKS
from anabranch.gallery.systems import Source
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, Style, ccdf, cdf
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Bulk, BurstLoss, RequestResponse

TCP_WIFI, TCP_LTE = "TCP over WiFi", "TCP over LTE"
MIN_RTT, REDUNDANT = "MPTCP, min_rtt", "MPTCP, redundant"
STYLES = {
    TCP_WIFI: Style(BLUE, "-", "o"),
    TCP_LTE: Style(ORANGE, (0, (6, 1.5, 1, 1.5)), "v"),
    MIN_RTT: Style(RED, (0, (4, 1.5)), "s"),
    REDUNDANT: Style(GREEN, "-", "^"),
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
        (_redundant_over(other, STRESSED, "p99", P99) for other in (MIN_RTT, TCP_WIFI, TCP_LTE)),
        where=STRESSED,
    ),
    "RD.b-halved": _claim(_redundant_over(TCP_WIFI, STRESSED, "mean", MEAN), where=STRESSED),
    "RD.c-control": _claim(_redundant_over(MIN_RTT, CALM, "median", P50), where=CALM),
    "RD.d-price": _claim(
        _redundant_over(TCP_WIFI, BULK, "goodput", GOODPUT, "TCP"),
        _redundant_over(MIN_RTT, BULK, "goodput", GOODPUT, "MPTCP"),
        where=BULK,
    ),
}


def _notes(results: Results) -> list[str]:
    redundant, min_rtt, wifi, lte = (
        P99.text(results, at(curve, STRESSED)) for curve in (REDUNDANT, MIN_RTT, TCP_WIFI, TCP_LTE)
    )
    return [
        "A response of 2 KiB has two segments. If the last one is lost, no acknowledgement tells "
        "the sender, which waits for a tail loss probe or a timeout. A copy on the other path "
        f"arrives meanwhile. The 99th percentiles with losses are {redundant} with copies, "
        f"{min_rtt} with min_rtt, {wifi} for TCP over WiFi and {lte} over LTE."
    ]


PANELS = {
    "Response time with losses": (
        "Share of responses that take longer than a given time. Curves further left are faster.",
        panels.distribution(ccdf, panels.curves(STYLES, network=STRESSED), 3000),
    ),
    "Response time without losses": (
        "The negative control. All curves but that of LTE coincide.",
        panels.distribution(cdf, panels.curves(STYLES, network=CALM)),
    ),
}

ENTRY = Entry(
    parameters="""
        WiFi | <path.wifi>
        LTE | <path.lte>
        losses | stressed: bursts of 4 packets, 3.8 % of all; otherwise none
        requests | <connection.*.request_size>, answered by <connection.*.response_size>,
            <connection.*.think_time> after the last answer
        bulk | endless download, no losses
        congestion control | <congestion control>
    """,
    quick=Tier("quick", seeds=10, measured_s=60, warm_up_s=1),
    full=Tier("full", seeds=20, measured_s=300, warm_up_s=1),
    design=grid(_cell, network=NETWORKS, curve=STYLES),
    uncertain_parameters=LINKS,
    source=Source(
        "The authors ran their own redundant scheduler in the original kernel. They also wrote its "
        "later scheduler, which keeps a position for each subflow; it stands for theirs here.",
        ("scheduler",),
    ),
    claims=named(CLAIMS),
    panels=panels.titled(PANELS),
    overview=Overview("network; curve", "lte", (GOODPUT, MEAN.called("mean"), P99)),
    notes=_notes,
)
