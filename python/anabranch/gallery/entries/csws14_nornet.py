"""CSWS 2014, NorNet: four schedulers over WLAN and cellular paths, with two sizes of buffers."""

from functools import partial
from itertools import product

from anabranch.gallery import panels
from anabranch.gallery.claims import all_of, claim, for_each, named
from anabranch.gallery.entries.csws14_schedulers_bulk import BM, LOW_RTT, RP, RR, SETTINGS, STYLES
from anabranch.gallery.entries.ferlin14_bufferbloat import PAIRS, both_used
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, grid
from anabranch.gallery.measures import Values, in_words, median, ratio
from anabranch.gallery.metrics import OUT_OF_ORDER, TRANSFER, waiting_ms
from anabranch.gallery.shared.connections import flow
from anabranch.gallery.shared.uncertain import LINKS
from anabranch.gallery.systems import Source
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Bulk

BOUNDED, UNBOUNDED = "2 MB", "16 MB"
_SIZE = {BOUNDED: "2MB", UNBOUNDED: "16MB"}
WITH_WLAN = tuple(pair for pair in PAIRS if "WLAN" in pair)

at = Factors("curve", "pair", "buffers")


def _cell(tier: Tier, curve: str, pair: str, buffers: str) -> Cell:
    connection = flow(buffers=_SIZE[buffers], workload=Bulk(size="16MiB"), **SETTINGS[curve])
    words, name = (curve, pair, _SIZE[buffers]), f"{curve}, {pair}, {buffers}"
    return tier.cell(at(curve, pair, buffers), PAIRS[pair], connection, words=words, name=name)


def buffering_ms(curve: str, pair: str) -> Values:
    """Mean time that bytes wait for earlier bytes, in ms, for each seed, by Little's law."""
    return waiting_ms(at(curve, pair, UNBOUNDED), TRANSFER)


_claim = partial(
    claim, needs=all_of(*(both_used(pair, at.every(STYLES, pair, _SIZE)) for pair in WITH_WLAN))
)

CLAIMS = {
    "E6.e-unbounded-alike": _claim(
        for_each(
            "|goodput, {1} / LowRTT − 1|, {0}",
            product(WITH_WLAN, (RR, RP, BM)),
            lambda pair, curve: TRANSFER.distance(
                at(curve, pair, UNBOUNDED), at(LOW_RTT, pair, UNBOUNDED)
            ),
            "|goodput of RR, LowRTT+RP and LowRTT+BM / LowRTT − 1|, either provider",
        ),
        where=f"buffers of {UNBOUNDED}",
    ),
    "E6.f-bounded-best": _claim(
        for_each(
            "goodput, {1} / {2}, {0}",
            product(WITH_WLAN, (BM, RP), (RR, LOW_RTT)),
            lambda pair, curve, other: TRANSFER.ratio(
                at(curve, pair, BOUNDED), at(other, pair, BOUNDED)
            ),
            "goodput of LowRTT+BM and of LowRTT+RP / that of RR and of LowRTT, either provider",
        ),
        where=f"buffers of {BOUNDED}",
    ),
    "E6.g-least-buffering": _claim(
        for_each(
            "buffering delay, LowRTT+BM / {1}, {0}",
            product(WITH_WLAN, (RR, LOW_RTT, RP)),
            lambda pair, curve: ratio(buffering_ms(BM, pair), buffering_ms(curve, pair)),
            "buffering delay of LowRTT+BM / that of RR, LowRTT and LowRTT+RP, either provider",
        ),
        where=f"buffers of {UNBOUNDED}",
    ),
}


def _notes(results: Results) -> list[str]:
    def delays(pair: str) -> str:
        found = in_words(results, STYLES, lambda curve: median(buffering_ms(curve, pair)), "ms")
        return f"{pair}: {found}"

    return [
        f"Buffering delay with buffers of {UNBOUNDED} — {'; '.join(map(delays, WITH_WLAN))}.",
        "The measurements of CSWS'14 used a public WLAN with about 100 users and a real cellular "
        "network over three weeks. The links here are those of ferlin14-bufferbloat.",
        "MPT-BM has no threshold θ here, as in csws14-schedulers-bulk, so it also caps WLAN.",
        "Next to 3G1, penalisation makes some seeds slow: where a loss leaves 3G1 a small window, "
        "its round-trip time is short, and OLIA lets WLAN grow less.",
    ]


PANELS = {
    **{
        f"Goodput, buffers of {buffers}": (
            "Medians over seeds with 95 % intervals.",
            panels.bars_of(WITH_WLAN, TRANSFER, partial(at, buffers=buffers), STYLES),
        )
        for buffers in _SIZE
    },
    f"Buffering delay, buffers of {UNBOUNDED}": (
        "Mean time that bytes wait for earlier bytes.",
        panels.bars(
            WITH_WLAN,
            lambda curve, pair: median(buffering_ms(curve, pair)),
            STYLES,
            "buffering delay (ms)",
        ),
    ),
}

ENTRY = Entry(
    parameters="""
        paths | WLAN next to 3G1 and next to 3G2, as in ferlin14-bufferbloat
        transfer | <connection.*.size>, download | CSWS'14: 16 MB
        buffers | <connection.*_buffer>, send = receive | CSWS'14
        congestion control | <congestion control> | CSWS'14
        schedulers | as in csws14-schedulers-bulk | CSWS'14
        buffering delay | mean out-of-order bytes / goodput | this project: Little's law
    """,
    quick=Tier("quick", seeds=10, measured_s=55, warm_up_s=5),
    full=Tier("full", seeds=30, measured_s=115, warm_up_s=5),
    design=grid(_cell, buffers=_SIZE, pair=WITH_WLAN, curve=STYLES),
    uncertain_parameters=LINKS,
    source=Source(
        "CSWS 2014 ran version 0.88 of the original kernel over real links.",
        ("scheduler", "remedies"),
    ),
    claims=named(CLAIMS),
    panels=panels.titled(PANELS),
    overview=Overview("pair: paths; buffers; curve: scheduler", "wlan", (TRANSFER, OUT_OF_ORDER)),
    notes=_notes,
)
