"""Multipath TCP of today's Linux against the engine, on the same links in one sitting."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from anabranch.gallery.entry import Cell, Entry, Overview, Parameter, Tier
from anabranch.gallery.shared import real_time
from anabranch.gallery.shared.measures import median_of, ratio_of
from anabranch.gallery.shared.real_time import ENGINE, KERNEL, measured
from anabranch.gallery.shared.wifi_3g import (
    MPTCP,
    MPTCP_M12,
    RAICIU,
    TCP_WIFI,
    THREE_G,
    WIFI,
    all_of,
    both_paths_used,
    cell_key,
    connection,
)
from anabranch.reports import figures
from anabranch.reports.figures import Panel, Style
from anabranch.results.claims import Claim, Condition, between
from anabranch.results.folder import Factor, Results
from anabranch.scenarios.scenario import Blocks, Scenario

ASKED_KB = (100, 200, 400)
"""Linux makes 200, 400 and 800 kB of it."""
JUDGED_KB = 100

LINUX_TCP, LINUX_MPTCP = "Linux, TCP over WiFi", "Linux, MPTCP"
ENGINE_MPTCP, ENGINE_M12 = "engine, MPTCP", "engine, MPTCP+M1,2"
_CURVES = {
    LINUX_TCP: (KERNEL, TCP_WIFI, Style(figures.BLUE, "-", "o")),
    LINUX_MPTCP: (KERNEL, MPTCP, Style(figures.RED, (0, (4, 1.5)), "s")),
    ENGINE_MPTCP: (ENGINE, MPTCP, Style(figures.ORANGE, (0, (2, 1)), "D")),
    ENGINE_M12: (ENGINE, MPTCP_M12, Style(figures.GREEN, "-", "^")),
}


def at(curve: str, asked_kb: int = JUDGED_KB) -> dict[str, Factor]:
    """The factors of a cell."""
    return {"curve": curve, "asked_kb": asked_kb}


def cells(tier: Tier) -> list[Cell]:
    """All curves with all buffers."""
    return [_cell(tier, curve, asked) for asked in ASKED_KB for curve in _CURVES]


def _cell(tier: Tier, curve: str, asked: int) -> Cell:
    hosts, protocol, _ = _CURVES[curve]
    both = f"{asked}kB"
    scenario = Scenario(
        name=f"{curve}, {both}",
        duration=tier.duration,
        warm_up=tier.warm_up,
        paths=(WIFI, dataclasses.replace(THREE_G, jitter="0s")),
        connections=(connection(protocol, both, both, Blocks(block_size="8KiB")),),
    )
    return real_time.cell(
        cell_key(curve, both), hosts, scenario, at(curve, asked), keep_blocks=asked == JUDGED_KB
    )


def _goodput(a: str, b: str, asked: int, operator: str, threshold: float) -> Condition:
    return Condition(
        f"{a} / {b}, {asked} kB asked for",
        ratio_of("goodput_mbps", at(a, asked), at(b, asked)),
        operator,
        threshold,
    )


_ASKED_FOR = (JUDGED_KB, 200)


def _used(*curves: str) -> Callable[[Results], str | None]:
    return all_of(*(both_paths_used(**at(curve)) for curve in curves))


CLAIMS = (
    Claim(
        "L1-linux-is-harmed",
        "With small buffers Linux' Multipath TCP over WiFi and 3G is slower than its TCP over "
        "WiFi.",
        "ours; NSDI'12, Fig. 4, for the Linux of 2012",
        tuple(_goodput(LINUX_MPTCP, LINUX_TCP, asked, "<", 1.0) for asked in _ASKED_FOR),
        _used(LINUX_MPTCP),
        "goodput",
    ),
    Claim(
        "L2-half-is-lost",
        "With 200 kB in both buffers, as Linux counts, it is half of what WiFi delivers.",
        "ours, single runs of the design: 3.97 Mbit/s with queues of 53 and 333 packets",
        between(
            "Linux, MPTCP, 100 kB asked for",
            median_of("goodput_mbps", at(LINUX_MPTCP)),
            3.4,
            4.6,
            "Mbit/s",
        ),
        _used(LINUX_MPTCP),
        "goodput",
    ),
    Claim(
        "L3-cured",
        "The engine with opportunistic retransmission and penalisation loses nothing.",
        "ours; NSDI'12",
        tuple(
            _goodput(ENGINE_M12, other, asked, operator, threshold)
            for asked in _ASKED_FOR
            for other, operator, threshold in ((LINUX_TCP, "≥", 0.95), (LINUX_MPTCP, ">", 1.0))
        ),
        _used(ENGINE_M12, LINUX_MPTCP),
        "goodput",
    ),
)


def _over_buffers(results: Results, axes: Axes, metric: str) -> None:
    drawn = {curve: ({"curve": curve}, style) for curve, (_, _, style) in _CURVES.items()}
    figures.over_factor(axes, results, "asked_kb", metric, drawn)
    figures.plain_ticks(axes, ASKED_KB)
    axes.set_xlabel("both buffers, as asked for (kB)")


def _draw_goodput(results: Results, axes: Axes) -> None:
    _over_buffers(results, axes, "goodput_mbps")
    figures.reference_line(axes, 10, "sum of the\nlink rates")
    axes.set_ylim(0, 11)
    axes.set_ylabel("goodput (Mbit/s)")


def _draw_delay(results: Results, axes: Axes) -> None:
    _over_buffers(results, axes, "delay_mean_ms")
    figures.plain_log_y(axes)
    axes.set_ylabel("mean delay of a block (ms)")


def _draw_cdf(results: Results, axes: Axes) -> None:
    drawn = {
        curve: (results.delays(**at(curve)), style) for curve, (_, _, style) in _CURVES.items()
    }
    figures.cdf(axes, drawn, figures.right_edge([delays for delays, _ in drawn.values()], 0.995))


def notes(results: Results) -> Sequence[str]:
    """What buffers mean, and the numbers."""

    def goodput(curve: str, asked: int = JUDGED_KB) -> str:
        return measured(results, "goodput_mbps", "Mbit/s", **at(curve, asked))

    return [
        "A program that asks Linux for 100 kB gets 200 kB by getsockopt, of which segments take "
        "more than their payload; the engine gives it 100 kB of payload. So equal columns are what "
        "the same program gets, not equal windows: an engine asked for 200 kB carries about what "
        "a Linux asked for 100 kB does.",
        f"Asked for 100 kB: Linux' MPTCP {goodput(LINUX_MPTCP)}, its TCP over WiFi "
        f"{goodput(LINUX_TCP)}, the engine {goodput(ENGINE_MPTCP)} without and "
        f"{goodput(ENGINE_M12)} with the mechanisms. Asked for 200 kB: "
        f"{goodput(LINUX_MPTCP, 200)}, {goodput(LINUX_TCP, 200)}, {goodput(ENGINE_MPTCP, 200)} "
        f"and {goodput(ENGINE_M12, 200)}.",
        real_time.lateness(results),
    ]


ENTRY = Entry(
    id="linux-today",
    title="Today's Linux over WiFi and 3G, and the engine beside it",
    question="Opportunistic retransmission and penalisation were published in 2012. Does the "
    "Multipath TCP of this machine's kernel still lose what they repair, and does the engine "
    "repair it on the same links?",
    references=(
        "This kernel's own Multipath TCP and the engine, measured on this machine in real time.",
        RAICIU,
    ),
    parameters=(
        Parameter("WiFi", "8 Mbit/s, 20 ms RTT, 54 packets (80 ms)", "as in nsdi12-fig7"),
        Parameter("3G", "2 Mbit/s, 150 ms RTT, 334 packets (2 s), no jitter", "as in nsdi12-fig7"),
        Parameter("workload", "8 KiB blocks as fast as the buffers take them", "NSDI'12"),
        *real_time.PARAMETERS,
    ),
    quick=Tier("quick", seeds=2, measured_s=12, warm_up_s=3),
    full=Tier("full", seeds=10, measured_s=60),
    cells=cells,
    claims=CLAIMS,
    panels=(
        Panel(
            "Goodput over the buffers",
            "Where MPTCP lies below TCP over WiFi, adding a path does harm.",
            _draw_goodput,
        ),
        Panel("Mean delay of a block", "Logarithmic.", _draw_delay),
        Panel(
            "Delay of a block, 100 kB asked for",
            "Share of blocks delivered within a time; further left is quicker.",
            _draw_cdf,
        ),
    ),
    overview=Overview(
        factors={"asked_kb": "asked for (kB)", "curve": "curve"},
        metrics={
            "goodput_mbps": "goodput (Mbit/s)",
            "delay_mean_ms": "mean delay (ms)",
            "delay_p95_ms": "p95 (ms)",
            "late_p999_ms": "lateness p99.9 (ms)",
        },
        path="3g",
    ),
    notes=notes,
)
