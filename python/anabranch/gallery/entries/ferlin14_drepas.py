"""Ferlin, Dreibholz, Alay, Globecom 2014: DRePaS, which uses a hopeless path for probes only."""

from collections.abc import Callable

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, Unnamed, at_every, carried, claim
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.metrics import GOODPUT, MEAN, PAUSE, PAUSE_MS, Metric, share
from anabranch.gallery.shared.connections import flow, network_path, outages
from anabranch.gallery.shared.wifi_3g import M12
from anabranch.reports.figures import BLUE, GREEN, RED, Style
from anabranch.results.claims import Measure
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Blocks

TCP_WLAN, MPTCP, DREPAS = "TCP over WLAN", "MPTCP", "MPTCP+DRePaS"
CURVES = (TCP_WLAN, MPTCP, DREPAS)
STYLES = {TCP_WLAN: Style(BLUE), MPTCP: Style(RED, "s--"), DREPAS: Style(GREEN, "^-.")}
TWO_G, THREE_G = "2G", "3G"
BUFFERS_KIB = (256, 512, 1024, 2048)
BLACKOUT_KIB = 512
BLACKOUT_S = 35
"""The time at which WLAN goes away, 30 s after the warm-up."""

_SECOND = {
    TWO_G: network_path("cellular", "0.2Mbit/s", "200ms", "6s", jitter="5ms"),
    THREE_G: network_path("cellular", "2Mbit/s", "75ms", "2s", jitter="5ms"),
}

at = Factors("curve", "second", "buffer_kib", blackout=False)


def _cell(tier: Tier, curve: str, second: str, kib: int, *, blackout: bool = False) -> Cell:
    away = outages(BLACKOUT_S) if blackout else ()
    wlan = network_path("wlan", "8Mbit/s", "10ms", "54packets", jitter="1ms", changes=away)
    connection = flow(
        ("wlan",) if curve == TCP_WLAN else None,
        buffers=f"{kib}KiB",
        path_manager="drepas" if curve == DREPAS else None,
        remedies=None if curve == TCP_WLAN else M12,
        workload=Blocks(),
    )
    words = (curve, second, f"{kib}kib", *(["blackout"] if blackout else []))
    paths = (wlan, _SECOND[second])
    return tier.cell(at(curve, second, kib, blackout), paths, connection, words=words)


_BLACKOUT = at(DREPAS, TWO_G, BLACKOUT_KIB, blackout=True)


def _ratio(metric: Metric, above: str, below: str) -> Callable[[int], Measure]:
    """A metric next to 2G, by buffer."""
    return lambda kib: metric.ratio(at(above, TWO_G, kib), at(below, TWO_G, kib))


def _distance(metric: Metric) -> Callable[[int], Measure]:
    """Difference between DRePaS and the default next to 3G, by buffer."""
    return lambda kib: metric.distance(at(DREPAS, THREE_G, kib), at(MPTCP, THREE_G, kib))


def _claim(
    words: str, measure: Callable[[int], Measure], curve: str = DREPAS, second: str = TWO_G
) -> Unnamed:
    """A claim about every buffer, if the second path carried 0.1 % of the bytes of a curve."""
    needs = carried("cellular", *at.every(curve, second, BUFFERS_KIB), over=0.001)
    quantities = at_every(words, BUFFERS_KIB, "KiB", measure)
    return claim(quantities, needs=needs)


_NEXT_TO_3G = "|DRePaS / MPTCP − 1|, 3G next to WLAN,"

CLAIMS = {
    "E7.a-2g-harms": _claim("MPTCP / TCP over WLAN", _ratio(GOODPUT, MPTCP, TCP_WLAN), MPTCP),
    "E7.b-drepas-avoids-it": _claim("DRePaS / TCP over WLAN", _ratio(GOODPUT, DREPAS, TCP_WLAN)),
    "E7.c-less-delay": _claim("mean delay, DRePaS / MPTCP", _ratio(MEAN, DREPAS, MPTCP)),
    "E7.d-3g-unchanged": _claim(_NEXT_TO_3G, _distance(GOODPUT), second=THREE_G),
    "E7.g-better-than-current": _claim("DRePaS / MPTCP", _ratio(GOODPUT, DREPAS, MPTCP)),
    "E7.h-3g-delay-unchanged": _claim(_NEXT_TO_3G, _distance(MEAN), second=THREE_G),
    "E7.e-standby-takes-over": claim(Quantity("time without delivery", PAUSE.median(_BLACKOUT))),
    "E7.f-probes-are-cheap": claim(
        at_every(
            "2G's share of the bytes",
            BUFFERS_KIB,
            "KiB",
            lambda kib: share("cellular").median(at(DREPAS, TWO_G, kib)),
        )
    ),
}


def _over_buffers(second: str, metric: Metric) -> panels.Draw:
    curves = panels.curves(STYLES, second=second, blackout=False)
    return panels.over(
        "buffer_kib", metric, curves, "send and receive buffer (KiB)", ticks=BUFFERS_KIB
    )


def _measured_words(results: Results) -> dict[str, object]:
    return {"worst": min(GOODPUT.number(results, at(MPTCP, TWO_G, kib)) for kib in BUFFERS_KIB)}


PANELS = {
    "Goodput next to 2G": _over_buffers(TWO_G, GOODPUT),
    "Block delay next to 2G": _over_buffers(TWO_G, MEAN),
    "Goodput next to 3G": _over_buffers(THREE_G, GOODPUT),
    "WLAN goes away": panels.series(
        {
            curve: (_BLACKOUT | {"curve": curve}, "bytes_delivered", STYLES[curve])
            for curve in CURVES[1:]
        },
        "delivered since WLAN went away (kB)",
        "time since WLAN went away (s)",
        scale=1e-3,
        zero_s=BLACKOUT_S,
        since_zero=True,
        shown_s=(-0.2, 12),
        down=True,
        bottom=None,
    ),
}

EXPERIMENT = Experiment(
    words={"blackout_s": BLACKOUT_S, "kib": BLACKOUT_KIB},
    design=joined(
        grid(_cell, second=_SECOND, kib=BUFFERS_KIB, curve=CURVES),
        grid(_cell, second=(TWO_G,), kib=(BLACKOUT_KIB,), curve=CURVES[1:], blackout=(True,)),
    ),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview(
        "curve; second: second path; buffer_kib: buffers (KiB); blackout",
        "cellular",
        (GOODPUT, MEAN, PAUSE_MS.called("recovery")),
    ),
    measured_words=_measured_words,
)
