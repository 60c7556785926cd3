"""Veerman 2012: Multipath TCP over long distances: buffers, a far link, a LAN next to a WAN."""

from collections.abc import Iterable
from functools import partial
from itertools import pairwise

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, carried, claim, for_each, named
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, grid, joined
from anabranch.gallery.metrics import GOODPUT, REINJECTIONS
from anabranch.gallery.shared import veerman12
from anabranch.gallery.shared.connections import AS_LINUX_COUNTS
from anabranch.gallery.shared.uncertain import BUFFERS, LINKS
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
    "E9.lan-wan": claim(
        _over("", [(_TEN, _RULE)]),
        needs=carried(("wan", "lan"), _TEN),
        where="goodput, buffers as Linux counts them; 17.5 MB is the rule's buffer",
    ),
}

STYLES = {
    SLOW_START: Style(BLUE),
    HYSTART: Style(RED, (0, (4, 1.5)), "s"),
    TWO_LINKS: Style(BLUE),
    THREE_LINKS: Style(GREEN, (0, (4, 1.5)), "^"),
}
_curves = partial(panels.curves, STYLES)


def _notes(results: Results) -> list[str]:
    limits = veerman12.limited(results, _RISING)
    latest_mb = 1.3e9 * FAR_RTT_MS / 1000 / 8e6
    worst = min(
        GOODPUT.values(at(THROUGHPUT, curve, MIN_BUFFER_MB))(results).min()
        for curve in (SLOW_START, HYSTART)
    )
    return [
        f"Limits of throughput — {limits}. LIA needs about n²·w/2 round trips to recover from a "
        f"loss: {RECOVERY_S:.0f} s for two windows of 1 Gbit/s × {RTT_MS} ms at "
        f"1/{veerman12.SCALE}. Where a claim judges 90 % of the sum, runs measure {_LONG_S} s or "
        "more. A queue of one bandwidth-delay product keeps a link busy even with half a window.",
        f"With exactly the rule's buffer, the worst seed has {worst:.1f} Mbit/s. A loss on the "
        "small link holds up the data-level acknowledgement until the buffer is full, and the data "
        "in flight on the large link drains. If a loss on the large link is detected at this "
        "moment, the window falls to half of the data in flight (RFC 5681), which is next to "
        "nothing. With twice the buffer, this does not happen.",
        "Bytes on the near links wait for bytes sent earlier on the far link, so the buffer "
        "empties about once per round-trip time of the far link. With three links, 1.3 Gbit/s × "
        f"{FAR_RTT_MS} ms = {latest_mb:.0f} MB give at least the goodput of the two near links "
        "alone. The claim holds for buffers well below this size and fails above it.",
        f"The rule for buffers gives {MIN_BUFFER_MB:g} MB for 0.3 + 1 Gbit/s; the slides say 10.8.",
        "With an empty queue, a LAN and a WAN together need 2 Gbit/s × 35 ms = 8.75 MB, so 10 MB "
        "of payload are enough. Linux charges its bookkeeping to the same buffer, and its window "
        "does not move while data waits beyond a hole, so 10 MB are too small as Linux counts "
        "them.",
    ]


PANELS = {
    "0.3 + 1 Gbit/s at 35 ms": (
        "Medians over seeds with 95 % intervals. The dashed line is the rule's buffer.",
        veerman12.over_buffers(
            _curves(SLOW_START, HYSTART), MIN_BUFFER_MB, 5, {SUM_MBPS: "sum of the rates"}
        ),
    ),
    "0.3 + 1 Gbit/s, and 10 Gbit/s at 202 ms": (
        "Where the curve of three links lies below that of two, the far link does harm.",
        panels.over(
            "buffer_mb",
            GOODPUT,
            _curves(TWO_LINKS, THREE_LINKS),
            veerman12.BUFFER,
            ticks=ADVANCED_MB,
            lines={SUM_MBPS: "sum of the two links"},
        ),
    ),
    "Three links: throughput by link": (
        "Throughput by path, first seed.",
        veerman12.draw_paths(
            {f"{b:g} MB": at(ADVANCED, THREE_LINKS, b) for b in ADVANCED_MB},
            {"small": SKY, "large": BLUE, "far": GREEN},
        ),
    ),
    "LAN and WAN, 1 + 1 Gbit/s": (
        "Throughput by path, first seed.",
        veerman12.draw_paths(
            {
                f"{buffer:g} MB{suffix}": at(MIXED, curve, buffer)
                for curve, suffix in ((LAN_WAN, ""), (LAN_WAN_LINUX, ",\nas Linux\ncounts"))
                for buffer in MIXED_MB
            },
            {"wan": BLUE, "lan": ORANGE},
        ),
    ),
}

ENTRY = Entry(
    parameters=veerman12.with_stack(f"""
        WAN | 0.3 + 1 Gbit/s, 35 ms RTT | slides: Geneva
        advanced | these two links and 10 Gbit/s, 202 ms RTT | slides
        LAN and WAN | 1 Gbit/s, 35 ms; 1 Gbit/s, 5 ms; opened on the WAN | slides
        rule for buffers | 2 × longest RTT × sum of rates: {MIN_BUFFER_MB:g} MB; 570 MB; 17.5 MB |
            slides
        buffers, WAN | 3 to 23 MB | this project; slides: “different”
        buffers, advanced | 8 to 64 MB | this project; slides: “different”
        buffers, LAN and WAN | 5, 10 and 17.5 MB | 10 MB and rule: slides; 5 MB: this project
        counting of buffers, LAN and WAN | as Linux does it for the claim; also payload | the
            slides' kernel was Linux
        HyStart++ | off; also on where a claim judges the sum | this project; whether the slides'
            kernel had it on is unknown
        measured time where a claim judges the sum | ≥ {_LONG_S} s
    """),
    quick=Tier("quick", seeds=5, measured_s=40, warm_up_s=10),
    full=Tier("full", seeds=20, measured_s=_LONG_S, warm_up_s=10),
    design=joined(
        grid(_cell, test=(THROUGHPUT,), curve=(SLOW_START,), buffer_mb=BUFFERS_MB),
        grid(_cell, test=(THROUGHPUT,), curve=(HYSTART,), buffer_mb=ENOUGH_MB),
        grid(_cell, test=(ADVANCED,), curve=(TWO_LINKS, THREE_LINKS), buffer_mb=ADVANCED_MB),
        grid(_cell, test=(MIXED,), curve=(LAN_WAN, LAN_WAN_LINUX), buffer_mb=MIXED_MB),
    ),
    uncertain_parameters={**LINKS, **BUFFERS},
    source=veerman12.source(),
    claims=veerman12.at_scale(named(CLAIMS)),
    panels=panels.titled(PANELS),
    overview=Overview(
        "test; curve; buffer_mb: buffer of the slides (MB)", "large", (GOODPUT, REINJECTIONS)
    ),
    notes=_notes,
)
