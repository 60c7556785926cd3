"""NSDI 2012, Figure 4: goodput over WiFi and 3G as the receive buffer grows."""

from dataclasses import replace
from itertools import pairwise

from anabranch.gallery import panels
from anabranch.gallery.claims import Needs, Quantity, Unnamed, at_every, claim, for_each, least
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid
from anabranch.gallery.measures import over_sum
from anabranch.gallery.metrics import DUPLICATES, GOODPUT, REINJECTIONS, share, texts
from anabranch.gallery.shared import wifi_3g
from anabranch.gallery.shared.wifi_3g import MPTCP, MPTCP_M1, MPTCP_M12, MPTCP_M12_NSDI, TCP_WIFI
from anabranch.reports import figures
from anabranch.results.claims import Measure
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Bulk

CURVES = (TCP_WIFI, wifi_3g.TCP_3G, MPTCP, MPTCP_M1, MPTCP_M12, MPTCP_M12_NSDI)
BUFFERS_KB = (50, 100, 200, 300, 400, 500, 600, 800, 1000)

_PATHS = [replace(path, jitter="1ms") for path in (wifi_3g.WIFI, wifi_3g.THREE_G)]

at = Factors("curve", "buffer_kb")


def _cell(tier: Tier, curve: str, kb: int) -> Cell:
    return tier.cell(
        at(curve, kb),
        _PATHS,
        wifi_3g.connection(curve, f"{kb}kB", f"{kb}kB", Bulk()),
        words=(curve, f"{kb}kb"),
        name=f"{curve}, buffers {kb} kB",
    )


def _over_wifi(curve: str, kb: int) -> Measure:
    return GOODPUT.ratio(at(curve, kb), at(TCP_WIFI, kb))


def _from(least_kb: int, curve: str, words: str, bound: str = "") -> tuple[Quantity, ...]:
    """The goodput of a curve at every buffer from a size on."""
    return for_each(
        f"{words} at {{}} kB",
        (kb for kb in BUFFERS_KB if kb >= least_kb),
        lambda kb: GOODPUT.median(at(curve, kb)),
        f"{words} at every buffer from {least_kb} kB on",
        bound,
    )


def _fewer_duplicates(remedied: str) -> Quantity:
    cells = at(MPTCP_M1, 200), at(remedied, 200)
    words = "throughput − goodput at 200 kB"

    def describe(results: Results) -> str:
        alone, both = (DUPLICATES.text(results, cell) for cell in cells)
        return f"{words}: {alone} with M1, {both} with M1,2; difference"

    measure = DUPLICATES.difference(*cells)
    return Quantity(f"{words}, M1 − M1,2", measure, describe=describe)


def _used(*curves: str) -> Needs:
    return wifi_3g.used(*at.every(curves, (200, 600)))


def _claims_about(remedied: str, suffix: str = "") -> dict[str, Unnamed]:
    """The claims about MPTCP with both mechanisms that hold for either form of penalisation."""
    return {
        f"E2.c-m12-never-worse{suffix}": claim(
            at_every("M1,2 / TCP WiFi", BUFFERS_KB, "kB", lambda kb: _over_wifi(remedied, kb)),
            needs=_used(remedied),
        ),
        f"E2.e-fewer-duplicates{suffix}": claim(
            _fewer_duplicates(remedied), needs=_used(MPTCP_M1, remedied)
        ),
    }


_LARGEST_KB = BUFFERS_KB[-1]
_SINGLE = (TCP_WIFI, wifi_3g.TCP_3G)

CLAIMS = {
    "E2.a-single-path": claim(
        _from(100, TCP_WIFI, TCP_WIFI, "WiFi"), _from(100, wifi_3g.TCP_3G, wifi_3g.TCP_3G, "3G")
    ),
    "E2.b-regular-dips": claim(
        least(
            "smallest MPTCP / TCP WiFi at any buffer of at most 400 kB",
            {f"MPTCP / TCP WiFi at {kb} kB": _over_wifi(MPTCP, kb) for kb in BUFFERS_KB[:5]},
        ),
        needs=_used(MPTCP),
    ),
    "E2.g-aggregates": claim(
        Quantity(
            f"MPTCP / (TCP WiFi + TCP 3G) at {_LARGEST_KB} kB",
            over_sum(*(GOODPUT.values(at(each, _LARGEST_KB)) for each in (MPTCP, *_SINGLE))),
        ),
        needs=_used(MPTCP),
    ),
    "E2.h-m1-not-enough": claim(
        Quantity("M1 / M1,2 at 200 kB", GOODPUT.ratio(at(MPTCP_M1, 200), at(MPTCP_M12, 200))),
        needs=_used(MPTCP_M1, MPTCP_M12),
    ),
    **_claims_about(MPTCP_M12),
    "E2.f-monotonic": claim(
        for_each(
            "{2}: goodput at {1} kB / at {0} kB",
            ((*sizes, curve) for sizes in pairwise(BUFFERS_KB) for curve in _SINGLE),
            lambda small, large, curve: GOODPUT.ratio(at(curve, large), at(curve, small)),
            "goodput of TCP over WiFi and over 3G at every buffer / at the next smaller one",
        )
    ),
    **_claims_about(MPTCP_M12_NSDI, "-2012"),
    "E2.d-both-links-full-2012": claim(
        _from(600, MPTCP_M12_NSDI, "M1,2"), needs=_used(MPTCP_M12_NSDI)
    ),
}


_CS244_MBPS = (600, 9.0)
"""CS244'12: the buffer in kB from which MPTCP with both mechanisms fills both links, in Mbit/s."""
_BUFFER = "send and receive buffer (kB)"
_MULTIPATH = panels.curves(wifi_3g.STYLES, *CURVES[2:])


def _draw_goodput(results: Results, axes: panels.Axes) -> None:
    wifi = [GOODPUT.number(results, at(TCP_WIFI, kb)) for kb in BUFFERS_KB]
    axes.fill_between(BUFFERS_KB, 0, wifi, color=figures.GREY, alpha=0.08, linewidth=0)
    axes.text(_LARGEST_KB, 0.15, "below TCP over WiFi: harm", fontsize=7, ha="right")
    panels.over(
        "buffer_kb", GOODPUT, panels.curves(wifi_3g.STYLES, *CURVES), _BUFFER, top=11,
        span=(0, None), lines={10: "sum of the link rates"}, stated=[_CS244_MBPS],
    )(results, axes)  # fmt: skip


def _measured_words(results: Results) -> dict[str, object]:
    def lowest(curve: str) -> str:
        medians = {kb: GOODPUT.number(results, at(curve, kb)) for kb in BUFFERS_KB}
        kb = min(medians, key=lambda each: medians[each])
        most = f"{medians[_LARGEST_KB]:.2f} Mbit/s at {_LARGEST_KB} kB"
        return f"{curve}: lowest {medians[kb]:.2f} Mbit/s at {kb} kB, {most}"

    return {
        "lowest": "; ".join(map(lowest, CURVES[2:])),
        "largest_kb": BUFFERS_KB[-1],
        **texts(results, at, duplicates=DUPLICATES),
    }


PANELS = {
    "Goodput over the buffer size": _draw_goodput,
    "Data received twice": panels.over(
        "buffer_kb", DUPLICATES, _MULTIPATH, _BUFFER, span=(0, None)
    ),
    "Share of 3G": panels.over("buffer_kb", share("3g", "3G"), _MULTIPATH, _BUFFER, span=(0, None)),
}

EXPERIMENT = Experiment(
    design=grid(_cell, kb=BUFFERS_KB, curve=CURVES),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview(
        "curve; buffer_kb: buffers (kB)",
        "3g",
        (GOODPUT, DUPLICATES.called("received twice"), REINJECTIONS),
    ),
    measured_words=_measured_words,
)
