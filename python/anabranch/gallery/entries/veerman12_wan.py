"""Veerman 2012: Multipath TCP over long distances: buffers, a far link, a LAN beside a WAN."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from anabranch.gallery.bounds import BOUNDS
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, key_of, parameters
from anabranch.gallery.metrics import GOODPUT, REINJECTIONS
from anabranch.gallery.shared.measures import median_of, ratio_of
from anabranch.gallery.shared.uncertain import BUFFERS, LINKS
from anabranch.gallery.shared.veerman12 import (
    RFC_LIA,
    SCALE,
    SCALING,
    SMALL_MSS,
    STACK_PARAMETERS,
    VEERMAN,
    at_scale,
    carried,
    connection,
    draw_paths,
    limited,
    link,
    min_buffer_mb,
    recovery_s,
)
from anabranch.gallery.shared.wifi_3g import all_of
from anabranch.reports import figures
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, SKY, Panel, Style, reference_line
from anabranch.results.bounds import Bound
from anabranch.results.claims import Claim, Condition, each
from anabranch.results.folder import Factor, Results
from anabranch.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THROUGHPUT, ADVANCED, MIXED = "throughput", "advanced", "LAN and WAN"
SLOW_START, HYSTART = "slow start", "HyStart++"
TWO_LINKS, THREE_LINKS = "two links", "three links"
LAN_WAN, LAN_WAN_LINUX = "LAN + WAN", "LAN + WAN, as Linux counts"

RTT_MS, FAR_RTT_MS, LAN_RTT_MS = 35, 202, 5
GENEVA = (link("small", 0.3, RTT_MS), link("large", 1, RTT_MS))
_PATHS = {
    SLOW_START: GENEVA,
    HYSTART: GENEVA,
    TWO_LINKS: GENEVA,
    THREE_LINKS: (*GENEVA, link("far", 10, FAR_RTT_MS)),
    LAN_WAN: (link("wan", 1, RTT_MS), link("lan", 1, LAN_RTT_MS)),
}
_PATHS[LAN_WAN_LINUX] = _PATHS[LAN_WAN]
_AS_LINUX_COUNTS = {"kind": "linux", "buffers": "socket"}
SUM_MBPS = 1300 / SCALE

MIN_BUFFER_MB = round(min_buffer_mb(RTT_MS, 0.3, 1), 1)
BUFFERS_MB = (3.0, 6.0, 9.0, MIN_BUFFER_MB, 23.0)
ENOUGH_MB = tuple(buffer for buffer in BUFFERS_MB if buffer >= MIN_BUFFER_MB)
ADVANCED_MB = (8.0, 16.0, 32.0, 64.0)
MIXED_MB = (5.0, 10.0, 17.5)

RECOVERY_S = recovery_s(2, 1, RTT_MS, SMALL_MSS)
_LONG_S = round(5 * RECOVERY_S + 1)
"""Measured time where a claim judges 90 % of the sum: five recoveries of LIA from a loss."""


at = Factors("test", "curve", "buffer_mb")
"""The factors of a cell."""


def cells(tier: Tier) -> list[Cell]:
    """Two links with every buffer; a far third link; a LAN beside a WAN."""
    return [
        *(_cell(tier, THROUGHPUT, SLOW_START, buffer) for buffer in BUFFERS_MB),
        *(_cell(tier, THROUGHPUT, HYSTART, buffer) for buffer in ENOUGH_MB),
        *(
            _cell(tier, ADVANCED, curve, buffer)
            for curve in (TWO_LINKS, THREE_LINKS)
            for buffer in ADVANCED_MB
        ),
        *(
            _cell(tier, MIXED, curve, buffer)
            for curve in (LAN_WAN, LAN_WAN_LINUX)
            for buffer in MIXED_MB
        ),
    ]


def _cell(tier: Tier, test: str, curve: str, buffer_mb: float) -> Cell:
    measured_s = tier.measured_s
    if test == THROUGHPUT and buffer_mb in ENOUGH_MB:
        measured_s = max(measured_s, _LONG_S)
    words = (test, curve, f"{buffer_mb:g}mb")
    host = _AS_LINUX_COUNTS if curve == LAN_WAN_LINUX else None
    scenario = Scenario(
        name=", ".join(words),
        duration=f"{tier.warm_up_s + measured_s}s",
        warm_up=tier.warm_up,
        paths=_PATHS[curve],
        connections=(connection("main", buffer_mb, hystart=curve == HYSTART, host=host),),
    )
    return Cell(key_of(*words), scenario, at(test, curve, buffer_mb))


def _over(above: dict[str, Factor], below: dict[str, Factor], bound: Bound) -> Condition:
    words = [f"{cell['curve']} at {cell['buffer_mb']:g} MB" for cell in (above, below)]
    return Condition(" / ".join(words), ratio_of("goodput_mbps", above, below), bound)


_RISING = [at(THROUGHPUT, SLOW_START, buffer) for buffer in BUFFERS_MB]

CLAIMS = (
    Claim(
        "E9.wan-monotone",
        "Over a WAN, throughput rises with the buffer.",
        "slides, “WAN: Throughput”; the tolerance of 2 % is ours",
        each(
            "goodput at every buffer / at the next smaller one",
            (_over(more, less, BOUNDS["E9.wan-monotone"]) for less, more in pairwise(_RISING)),
        ),
        carried("small", "large", **at(THROUGHPUT, SLOW_START, MIN_BUFFER_MB)),
    ),
    Claim(
        "E9.wan-sum",
        "With the rule's buffer, throughput over a WAN is the sum of the links.",
        "slides, “WAN: Throughput”; the threshold is ours",
        each(
            "goodput with and without HyStart++ at every buffer from the rule's "
            f"{MIN_BUFFER_MB:g} MB on",
            (
                Condition(
                    f"{curve}, {buffer:g} MB",
                    median_of("goodput_mbps", at(THROUGHPUT, curve, buffer)),
                    BOUNDS["E9.wan-sum"],
                )
                for curve in (SLOW_START, HYSTART)
                for buffer in ENOUGH_MB
            ),
        ),
        all_of(
            *(
                carried("small", "large", **at(THROUGHPUT, curve, buffer))
                for curve in (SLOW_START, HYSTART)
                for buffer in ENOUGH_MB
            )
        ),
    ),
    Claim(
        "E9.wan-advanced",
        "If a third link has 10 Gbit/s at 202 ms, using only the two links at 35 ms is faster.",
        "slides, “WAN: Advanced Throughput”; the buffers are ours",
        each(
            f"goodput of two links / of three links at every buffer up to {ADVANCED_MB[-1]:g} MB",
            (
                _over(
                    at(ADVANCED, TWO_LINKS, buffer),
                    at(ADVANCED, THREE_LINKS, buffer),
                    BOUNDS["E9.wan-advanced"],
                )
                for buffer in ADVANCED_MB
            ),
        ),
        all_of(
            *(
                carried("small", "large", "far", **at(ADVANCED, THREE_LINKS, buffer))
                for buffer in ADVANCED_MB
            )
        ),
    ),
    Claim(
        "E9.lan-wan",
        "With a LAN beside a WAN, a buffer of 10 MB is too small.",
        "slides, “LAN + WAN: Throughput”; the comparison is ours",
        (
            _over(
                at(MIXED, LAN_WAN_LINUX, 10.0), at(MIXED, LAN_WAN_LINUX, 17.5), BOUNDS["E9.lan-wan"]
            ),
        ),
        carried("wan", "lan", **at(MIXED, LAN_WAN_LINUX, 10.0)),
        "goodput, buffers as Linux counts them; 17.5 MB is the rule's buffer",
    ),
)


def _draw_buffers(results: Results, axes: Axes) -> None:
    curves = {
        SLOW_START: ({"curve": SLOW_START}, Style(BLUE)),
        HYSTART: ({"curve": HYSTART}, Style(RED, (0, (4, 1.5)), "s")),
    }
    figures.over_factor(axes, results, "buffer_mb", "goodput_mbps", curves)
    axes.set(xlabel=f"buffer of the slides (MB; run with 1/{SCALE})", ylabel="goodput (Mbit/s)")
    axes.set_ylim(0, 1.15 * SUM_MBPS)
    reference_line(axes, SUM_MBPS, "sum of the rates")
    axes.axvline(MIN_BUFFER_MB, color=figures.GREY, linewidth=0.8, linestyle=(0, (4, 2)))
    axes.text(MIN_BUFFER_MB + 0.3, 5, "rule", fontsize=7, color=figures.GREY)


def _draw_advanced(results: Results, axes: Axes) -> None:
    curves = {
        TWO_LINKS: ({"curve": TWO_LINKS}, Style(BLUE)),
        THREE_LINKS: ({"curve": THREE_LINKS}, Style(GREEN, (0, (4, 1.5)), "^")),
    }
    figures.over_factor(axes, results, "buffer_mb", "goodput_mbps", curves)
    axes.set(xlabel=f"buffer of the slides (MB; run with 1/{SCALE})", ylabel="goodput (Mbit/s)")
    figures.plain_ticks(axes, ADVANCED_MB)
    axes.set_ylim(0)
    reference_line(axes, SUM_MBPS, "sum of the two links")


def notes(results: Results) -> Sequence[str]:
    """What limits the runs, and where a far link pays off."""
    buffers = [at(THROUGHPUT, SLOW_START, buffer) for buffer in BUFFERS_MB]
    limits = limited(results, [f"{buffer:g} MB" for buffer in BUFFERS_MB], buffers)
    latest_mb = 1.3e9 * FAR_RTT_MS / 1000 / 8e6
    worst = min(
        results.values("goodput_mbps", **at(THROUGHPUT, curve, MIN_BUFFER_MB)).min()
        for curve in (SLOW_START, HYSTART)
    )
    return [
        f"What limits throughput — {limits}. LIA needs about n²·w/2 round trips to recover from a "
        f"loss: {RECOVERY_S:.0f} s for two windows of 1 Gbit/s × {RTT_MS} ms at 1/{SCALE}. Where a "
        f"claim judges 90 % of the sum, runs measure {_LONG_S} s or more. A queue of one "
        "bandwidth-delay product keeps a link busy even with half a window.",
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


ENTRY = Entry(
    id="veerman12-wan",
    title="A WAN: buffers, a far link, a LAN beside a WAN (Veerman 2012)",
    question="How does throughput over long distances depend on the buffer, and when does a fast "
    "but far link do harm?",
    references=(VEERMAN, RFC_LIA),
    parameters=(
        SCALING,
        *parameters(f"""
        WAN | 0.3 + 1 Gbit/s, 35 ms RTT | slides: Geneva
        advanced | these two links and 10 Gbit/s, 202 ms RTT | slides
        LAN and WAN | 1 Gbit/s, 35 ms; 1 Gbit/s, 5 ms; opened on the WAN | slides
        rule for buffers | 2 × longest RTT × sum of rates: {MIN_BUFFER_MB:g} MB; 570 MB; 17.5 MB |
            slides
        buffers, WAN | 3 to 23 MB | ours; slides: “different”
        buffers, advanced | 8 to 64 MB | ours; slides: “different”
        buffers, LAN and WAN | 5, 10 and 17.5 MB | 10 MB and rule: slides; 5 MB ours
        counting of buffers, LAN and WAN | as Linux does it for the claim; also payload | the
            slides' kernel was Linux
        HyStart++ | off; also on where a claim judges the sum | ours; whether the slides' kernel had
            it on is unknown
        measured time where a claim judges the sum | ≥ {_LONG_S} s | ours
    """),
        *STACK_PARAMETERS,
    ),
    quick=Tier("quick", seeds=5, measured_s=40, warm_up_s=10),
    full=Tier("full", seeds=20, measured_s=_LONG_S, warm_up_s=10),
    cells=cells,
    uncertain_parameters={**LINKS, **BUFFERS},
    claims=at_scale(CLAIMS),
    headline="E9.wan-sum",
    panels=(
        Panel(
            "0.3 + 1 Gbit/s at 35 ms",
            "Medians over seeds with 95 % intervals. The dashed line is the rule's buffer.",
            _draw_buffers,
        ),
        Panel(
            "0.3 + 1 Gbit/s, and 10 Gbit/s at 202 ms",
            "Where the curve of three links lies below that of two, the far link does harm.",
            _draw_advanced,
        ),
        Panel(
            "Three links: who carries what",
            "Throughput by path, first seed.",
            partial(
                draw_paths,
                cells={f"{b:g} MB": at(ADVANCED, THREE_LINKS, b) for b in ADVANCED_MB},
                colours={"small": SKY, "large": BLUE, "far": GREEN},
            ),
        ),
        Panel(
            "LAN and WAN, 1 + 1 Gbit/s",
            "Throughput by path, first seed.",
            partial(
                draw_paths,
                cells={
                    f"{buffer:g} MB{suffix}": at(MIXED, curve, buffer)
                    for curve, suffix in ((LAN_WAN, ""), (LAN_WAN_LINUX, ",\nas Linux\ncounts"))
                    for buffer in MIXED_MB
                },
                colours={"wan": BLUE, "lan": ORANGE},
            ),
        ),
    ),
    overview=Overview(
        {"test": "test", "curve": "curve", "buffer_mb": "buffer of the slides (MB)"},
        (GOODPUT, REINJECTIONS),
        "large",
    ),
    notes=notes,
)
