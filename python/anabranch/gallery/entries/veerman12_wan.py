"""Veerman 2012: Multipath TCP over long distances: buffers, a far link, a LAN next to a WAN."""

from collections.abc import Iterable
from functools import partial
from itertools import pairwise

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, carried, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.metrics import GOODPUT, REINJECTIONS
from anabranch.gallery.shared import veerman12
from anabranch.gallery.shared.connections import AS_LINUX_COUNTS
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, SKY, Style
from anabranch.results.folder import Factor, Results

THROUGHPUT, ADVANCED, MIXED = "throughput", "advanced", "LAN and WAN"
SLOW_START, HYSTART = "slow start", "HyStart++"
TWO_LINKS, THREE_LINKS = "two links", "three links"
LAN_WAN, LAN_WAN_LINUX = "LAN + WAN", "LAN + WAN, as Linux counts"

RTT_MS, FAR_RTT_MS, LAN_RTT_MS = 35, 202, 5
GENEVA = (veerman12.link("small", 0.3, RTT_MS), veerman12.link("large", 1, RTT_MS))
_PATHS = {
    SLOW_START: GENEVA,
    HYSTART: GENEVA,
    TWO_LINKS: GENEVA,
    THREE_LINKS: (*GENEVA, veerman12.link("far", 10, FAR_RTT_MS)),
    LAN_WAN: (veerman12.link("wan", 1, RTT_MS), veerman12.link("lan", 1, LAN_RTT_MS)),
}
_PATHS[LAN_WAN_LINUX] = _PATHS[LAN_WAN]

SUM_MBPS = 1300 / veerman12.SCALE

MIN_BUFFER_MB = round(veerman12.min_buffer_mb(RTT_MS, 0.3, 1), 1)
BUFFERS_MB = (3.0, 6.0, 9.0, MIN_BUFFER_MB, 23.0)
ENOUGH_MB = tuple(buffer for buffer in BUFFERS_MB if buffer >= MIN_BUFFER_MB)
ADVANCED_MB = (8.0, 16.0, 32.0, 64.0)
MIXED_MB = (5.0, 10.0, 17.5)

RECOVERY_S = veerman12.recovery_s(2, 1, RTT_MS, veerman12.SMALL_MSS)
_LONG_S = round(5 * RECOVERY_S + 1)
"""Measured time where a claim judges 90 % of the sum: five recoveries of LIA from a loss."""

at = Factors("test", "curve", "buffer_mb")


def _cell(tier: Tier, test: str, curve: str, buffer_mb: float) -> Cell:
    measured_s = tier.measured_s
    if test == THROUGHPUT and buffer_mb in ENOUGH_MB:
        measured_s = max(measured_s, _LONG_S)
    words = (test, curve, f"{buffer_mb:g}mb")
    host = AS_LINUX_COUNTS if curve == LAN_WAN_LINUX else None
    main = veerman12.connection(buffer_mb, hystart=curve == HYSTART, host=host)
    duration = f"{tier.warm_up_s + measured_s}s"
    factors = at(test, curve, buffer_mb)
    return tier.cell(factors, _PATHS[curve], main, words=words, duration=duration)


def _over(
    group: str, pairs: Iterable[tuple[dict[str, Factor], dict[str, Factor]]]
) -> tuple[Quantity, ...]:
    """The goodput of the first cell of each pair over that of the second."""
    words = "{0[curve]} at {0[buffer_mb]:g} MB / {1[curve]} at {1[buffer_mb]:g} MB"
    return for_each(words, pairs, GOODPUT.ratio, group)


_RISING = at.every(THROUGHPUT, SLOW_START, BUFFERS_MB)
_ENOUGH = at.every(THROUGHPUT, (SLOW_START, HYSTART), ENOUGH_MB)
_TWO, _THREE = (at.every(ADVANCED, curve, ADVANCED_MB) for curve in (TWO_LINKS, THREE_LINKS))
_TEN, _RULE = (at(MIXED, LAN_WAN_LINUX, buffer) for buffer in (10.0, 17.5))
_NEAR = ("small", "large")

CLAIMS = {
    "E9.wan-monotone": claim(
        _over(
            "goodput at every buffer / at the next smaller one",
            ((more, less) for less, more in pairwise(_RISING)),
        ),
        needs=carried(_NEAR, at(THROUGHPUT, SLOW_START, MIN_BUFFER_MB)),
    ),
    "E9.wan-sum": claim(
        for_each(
            "{0[curve]}, {0[buffer_mb]:g} MB",
            _ENOUGH,
            GOODPUT.median,
            "goodput with and without HyStart++ at every buffer from the rule's "
            f"{MIN_BUFFER_MB:g} MB on",
        ),
        needs=carried(_NEAR, *_ENOUGH),
    ),
    "E9.wan-advanced": claim(
        _over(
            f"goodput of two links / of three links at every buffer up to {ADVANCED_MB[-1]:g} MB",
            zip(_TWO, _THREE, strict=True),
        ),
        needs=carried((*_NEAR, "far"), *_THREE),
    ),
    "E9.lan-wan": claim(_over("", [(_TEN, _RULE)]), needs=carried(("wan", "lan"), _TEN)),
}

STYLES = {
    SLOW_START: Style(BLUE),
    HYSTART: Style(RED, "s--"),
    TWO_LINKS: Style(BLUE),
    THREE_LINKS: Style(GREEN, "^--"),
}
_curves = partial(panels.curves, STYLES)


def _measured_words(results: Results) -> dict[str, object]:
    limits = veerman12.limited(results, _RISING)
    latest_mb = 1.3e9 * FAR_RTT_MS / 1000 / 8e6
    worst = min(
        GOODPUT.values(at(THROUGHPUT, curve, MIN_BUFFER_MB))(results).min()
        for curve in (SLOW_START, HYSTART)
    )
    return {"limits": limits, "worst": worst, "latest_mb": latest_mb}


PANELS = {
    "0.3 + 1 Gbit/s at 35 ms": veerman12.over_buffers(
        _curves(SLOW_START, HYSTART), MIN_BUFFER_MB, 5, {SUM_MBPS: "sum of the rates"}
    ),
    "0.3 + 1 Gbit/s, and 10 Gbit/s at 202 ms": panels.over(
        "buffer_mb",
        GOODPUT,
        _curves(TWO_LINKS, THREE_LINKS),
        veerman12.BUFFER,
        ticks=ADVANCED_MB,
        lines={SUM_MBPS: "sum of the two links"},
    ),
    "Three links: throughput by link": veerman12.draw_paths(
        {f"{b:g} MB": at(ADVANCED, THREE_LINKS, b) for b in ADVANCED_MB},
        {"small": SKY, "large": BLUE, "far": GREEN},
    ),
    "LAN and WAN, 1 + 1 Gbit/s": veerman12.draw_paths(
        {
            f"{buffer:g} MB{suffix}": at(MIXED, curve, buffer)
            for curve, suffix in ((LAN_WAN, ""), (LAN_WAN_LINUX, ",\nas Linux\ncounts"))
            for buffer in MIXED_MB
        },
        {"wan": BLUE, "lan": ORANGE},
    ),
}

EXPERIMENT = Experiment(
    words={
        "min_buffer_mb": MIN_BUFFER_MB,
        "long_s": _LONG_S,
        "recovery_s": RECOVERY_S,
        "rtt_ms": RTT_MS,
        "scale": veerman12.SCALE,
        "far_rtt_ms": FAR_RTT_MS,
    },
    design=joined(
        grid(_cell, test=(THROUGHPUT,), curve=(SLOW_START,), buffer_mb=BUFFERS_MB),
        grid(_cell, test=(THROUGHPUT,), curve=(HYSTART,), buffer_mb=ENOUGH_MB),
        grid(_cell, test=(ADVANCED,), curve=(TWO_LINKS, THREE_LINKS), buffer_mb=ADVANCED_MB),
        grid(_cell, test=(MIXED,), curve=(LAN_WAN, LAN_WAN_LINUX), buffer_mb=MIXED_MB),
    ),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview(
        "test; curve; buffer_mb: buffer of the slides (MB)", "large", (GOODPUT, REINJECTIONS)
    ),
    measured_words=_measured_words,
)
