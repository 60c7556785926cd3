"""CSWS 2014, NorNet: four schedulers over WLAN and cellular paths, with two sizes of buffers."""

from functools import partial
from itertools import product

from anabranch.gallery import panels
from anabranch.gallery.claims import all_of, claim, for_each
from anabranch.gallery.entries.csws14_schedulers_bulk import BM, LOW_RTT, RP, RR, SETTINGS, STYLES
from anabranch.gallery.entries.ferlin14_bufferbloat import PAIRS, both_used
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid
from anabranch.gallery.measures import Values, in_words, median, ratio
from anabranch.gallery.metrics import OUT_OF_ORDER, TRANSFER, waiting_ms
from anabranch.gallery.shared.connections import flow
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
        )
    ),
    "E6.f-bounded-best": _claim(
        for_each(
            "goodput, {1} / {2}, {0}",
            product(WITH_WLAN, (BM, RP), (RR, LOW_RTT)),
            lambda pair, curve, other: TRANSFER.ratio(
                at(curve, pair, BOUNDED), at(other, pair, BOUNDED)
            ),
            "goodput of LowRTT+BM and of LowRTT+RP / that of RR and of LowRTT, either provider",
        )
    ),
    "E6.g-least-buffering": _claim(
        for_each(
            "buffering delay, LowRTT+BM / {1}, {0}",
            product(WITH_WLAN, (RR, LOW_RTT, RP)),
            lambda pair, curve: ratio(buffering_ms(BM, pair), buffering_ms(curve, pair)),
            "buffering delay of LowRTT+BM / that of RR, LowRTT and LowRTT+RP, either provider",
        )
    ),
}


def _measured_words(results: Results) -> dict[str, object]:
    def delays(pair: str) -> str:
        found = in_words(results, STYLES, lambda curve: median(buffering_ms(curve, pair)), "ms")
        return f"{pair}: {found}"

    return {"delays": "; ".join(map(delays, WITH_WLAN))}


PANELS = {
    **{
        f"Goodput, buffers of {buffers}": panels.bars_of(
            WITH_WLAN, TRANSFER, partial(at, buffers=buffers), STYLES
        )
        for buffers in _SIZE
    },
    f"Buffering delay, buffers of {UNBOUNDED}": panels.bars(
        WITH_WLAN,
        lambda curve, pair: median(buffering_ms(curve, pair)),
        STYLES,
        "buffering delay (ms)",
    ),
}

EXPERIMENT = Experiment(
    words={"unbounded": UNBOUNDED, "bounded": BOUNDED},
    design=grid(_cell, buffers=_SIZE, pair=WITH_WLAN, curve=STYLES),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("pair: paths; buffers; curve: scheduler", "wlan", (TRANSFER, OUT_OF_ORDER)),
    measured_words=_measured_words,
)
