"""CS244 2015, Figures 2 to 4: the delay figure of NSDI 2012 with faster WiFi."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from anabranch.gallery.entry import Cell, Entry, Overview, Parameter, Tier
from anabranch.gallery.shared.measures import ratio_of
from anabranch.gallery.shared.wifi_3g import (
    CHEN_HAN,
    MPTCP,
    MPTCP_M12,
    MPTCP_M12_NSDI,
    PAASCH,
    RAICIU,
    STACK_PARAMETERS,
    STYLES,
    TCP_WIFI,
    THREE_G,
    WIFI,
    all_of,
    both_paths_used,
    cell_key,
    connection,
)
from anabranch.reports import figures
from anabranch.reports.figures import Panel
from anabranch.results.claims import Claim, Condition, Measure
from anabranch.results.estimates import Estimate, Sample, median
from anabranch.results.folder import Factor, Results
from anabranch.scenarios.scenario import Blocks, Scenario

RATES_MBPS = (8, 16, 32, 64)
QUEUES = ("54packets", "80ms")
_QUEUE_WORDS = {"54packets": "54 packets", "80ms": "80 ms"}
CURVES = {
    "54packets": (TCP_WIFI, MPTCP, MPTCP_M12, MPTCP_M12_NSDI),
    "80ms": (TCP_WIFI, MPTCP, MPTCP_M12),
}
"""Curves by WiFi's queue."""
BUFFER = "200KiB"


def at(curve: str, rate: int, queue: str) -> dict[str, Factor]:
    """The factors of a cell."""
    return {"curve": curve, "wifi_mbps": rate, "wifi_queue": queue}


def cells(tier: Tier) -> list[Cell]:
    """Every curve at every WiFi rate, with both readings of WiFi's queue."""
    return [
        _cell(tier, curve, rate, queue)
        for queue in QUEUES
        for rate in RATES_MBPS
        for curve in CURVES[queue]
    ]


def _cell(tier: Tier, curve: str, rate: int, queue: str) -> Cell:
    wifi = dataclasses.replace(WIFI, rate=f"{rate}Mbit/s", limit=queue)
    scenario = Scenario(
        name=f"{curve}, WiFi {rate} Mbit/s, queue {queue}",
        duration=tier.duration,
        warm_up=tier.warm_up,
        paths=(wifi, dataclasses.replace(THREE_G, jitter="50ms", jitter_model="fifo")),
        connections=(connection(curve, BUFFER, BUFFER, Blocks(block_size="8KiB")),),
    )
    key = cell_key(curve, f"{rate}mbps", queue)
    return Cell(key, scenario, at(curve, rate, queue), keep_blocks=queue == QUEUES[0])


def _tails(results: Results, queue: str) -> Sample:
    """The p99 of MPTCP with both mechanisms over that of TCP over WiFi, by WiFi rate and seed."""
    return np.array(
        [
            results.values("delay_p99_ms", **at(MPTCP_M12, rate, queue))
            / results.values("delay_p99_ms", **at(TCP_WIFI, rate, queue))
            for rate in RATES_MBPS
        ]
    )


def _tail_grows(results: Results, queue: str) -> Estimate:
    """Rank correlation of WiFi's rate with the ratio of the tails: the median over seeds."""
    from scipy.stats import spearmanr  # the import takes most of a second

    tails = _tails(results, queue)
    correlation = np.array([spearmanr(RATES_MBPS, tails[:, n])[0] for n in range(tails.shape[1])])
    return median(np.nan_to_num(correlation))


_TAIL = "rank correlation of WiFi's rate with p99(M1,2) / p99(TCP WiFi)"


def _tails_in_words(results: Results, queue: str) -> str:
    tails = _tails(results, queue)
    listed = ", ".join(f"{np.median(tails[n]):.2f}" for n in range(len(RATES_MBPS)))
    return f"{_TAIL} ({listed})"


def _means(above: str, below: str, rate: int, queue: str) -> Measure:
    return ratio_of("delay_mean_ms", at(above, rate, queue), at(below, rate, queue))


def _used(queue: str, *curves_and_rates: tuple[str, int]) -> Any:
    return all_of(*(both_paths_used(**at(curve, rate, queue)) for curve, rate in curves_and_rates))


def _claims(queue: str) -> list[Claim]:
    tag = "54p" if queue == QUEUES[0] else "80ms"
    source = "CS244'15, Figs. 2–4" + ("" if queue == QUEUES[0] else "; this queue is ours")
    queue_words = _QUEUE_WORDS[queue]
    like_wifi = [
        Claim(
            f"E1s.1-like-wifi-{rate}-{tag}",
            f"With WiFi at {rate} Mbit/s and a queue of {queue_words}, MPTCP with both mechanisms "
            "is about as fast as TCP over WiFi.",
            source,
            (
                Condition(
                    "mean(M1,2) / mean(TCP WiFi)",
                    _means(MPTCP_M12, TCP_WIFI, rate, queue),
                    "≤",
                    1.15,
                ),
            ),
            _used(queue, (MPTCP_M12, rate)),
        )
        for rate in RATES_MBPS
    ]
    regular = [
        Claim(
            f"E1s.2-regular-slower-{rate}-{tag}",
            f"With WiFi at {rate} Mbit/s and a queue of {queue_words}, MPTCP is slower without the "
            "mechanisms than with both.",
            source,
            (
                Condition(
                    "mean(regular) / mean(M1,2)", _means(MPTCP, MPTCP_M12, rate, queue), ">", 1.0
                ),
            ),
            _used(queue, (MPTCP, rate), (MPTCP_M12, rate)),
        )
        for rate in RATES_MBPS
    ]
    tail = Claim(
        f"E1s.3-heavier-tail-{tag}",
        f"With a WiFi queue of {queue_words}, the tail of MPTCP with both mechanisms, relative to "
        "that of TCP over WiFi, grows with WiFi's rate.",
        source,
        (
            Condition(
                _TAIL,
                partial(_tail_grows, queue=queue),
                ">",
                0.0,
                worded=partial(_tails_in_words, queue=queue),
            ),
        ),
        _used(queue, *((MPTCP_M12, rate) for rate in RATES_MBPS)),
    )
    return [*like_wifi, *regular, tail]


def _draw_ccdf(results: Results, axes: Axes, rate: int) -> None:
    curves = {
        curve: (results.delays(**at(curve, rate, QUEUES[0])), STYLES[curve])
        for curve in CURVES[QUEUES[0]]
    }
    figures.ccdf(axes, curves, right=1000)


def _draw_means(results: Results, axes: Axes, queue: str) -> None:
    curves = {
        curve: ({"curve": curve, "wifi_queue": queue}, STYLES[curve]) for curve in CURVES[queue]
    }
    figures.over_factor(axes, results, "wifi_mbps", "delay_mean_ms", curves)
    figures.plain_ticks(axes, RATES_MBPS)
    figures.plain_log_y(axes)
    axes.set(xlabel="WiFi rate (Mbit/s)", ylabel="mean delay of a block (ms)")


def notes(results: Results) -> Sequence[str]:
    """3G's share of the bytes, and the delay with both mechanisms relative to TCP over WiFi."""

    def factor(curve: str, rate: int) -> str:
        return f"{_means(curve, TCP_WIFI, rate, QUEUES[0])(results).value:.2f}"

    def share(curve: str, rate: int, queue: str) -> str:
        return f"{median(results.values('share_3g', **at(curve, rate, queue))).value * 100:.2f} %"

    faster = RATES_MBPS[1:]
    ratios = ", ".join(factor(MPTCP_M12, rate) for rate in faster)
    ratios_2012 = ", ".join(factor(MPTCP_M12_NSDI, rate) for rate in faster)
    packets = ", ".join(share(MPTCP_M12, rate, QUEUES[0]) for rate in faster)
    time = ", ".join(share(MPTCP_M12, rate, QUEUES[1]) for rate in faster)
    return [
        "The send buffer of 200 KiB drains in 200 ms at 8 Mbit/s, but in 26 ms at 64 Mbit/s. The "
        "faster WiFi is, the less its own delay hides the delay of blocks on 3G.",
        f"With WiFi at {', '.join(map(str, faster))} Mbit/s and a queue of 54 packets, the mean "
        f"delay with both mechanisms is {ratios} times that of TCP over WiFi ({ratios_2012} with "
        f"the penalisation of NSDI'12). 3G carries {packets} of the bytes.",
        "The source does not say whether it kept WiFi's queue at 54 packets or at 80 ms. With "
        f"80 ms, 3G carries {time} of the bytes. WiFi's congestion window can then grow until it "
        "covers the whole receive buffer, and nothing is left for 3G.",
        "A claim is not judged where 3G carried no more than 1 % of the bytes, because Multipath "
        "TCP then used only one path.",
    ]


ENTRY = Entry(
    id="cs244-bandwidth-ratio",
    title="Delay of 8 KiB blocks when WiFi is 4 to 32 times as fast as 3G (CS244 2015)",
    question="How do the delays of NSDI 2012's Figure 7 change when WiFi becomes faster and 3G "
    "does not? Are opportunistic retransmission (M1) and penalisation (M2) still enough?",
    references=(CHEN_HAN, RAICIU, PAASCH),
    parameters=(
        Parameter("WiFi", "8, 16, 32, 64 Mbit/s, 20 ms RTT", "CS244'15"),
        Parameter("queue of WiFi", "54 packets", "CS244'15 for 8 Mbit/s; kept for all rates: ours"),
        Parameter("queue of WiFi, second reading", "80 ms at each rate", "ours"),
        Parameter("3G", "2 Mbit/s, 150 ms RTT, 334 packets, jitter 50 ms", "CS244'15"),
        Parameter("jitter model", "keeps the order of packets", "ours"),
        Parameter("send buffer", "200 KiB", "NSDI'12"),
        Parameter("receive buffer", "200 KiB", "ours: equal to the send buffer"),
        Parameter("block", "8 KiB", "NSDI'12"),
        *STACK_PARAMETERS,
    ),
    quick=Tier("quick", seeds=10, measured_s=60),
    full=Tier("full", seeds=20, measured_s=100),
    cells=cells,
    claims=tuple(claim for queue in QUEUES for claim in _claims(queue)),
    panels=(
        *(
            Panel(
                f"WiFi {rate} Mbit/s: tail (CCDF)",
                "Share of blocks that take longer, on a logarithmic scale. Queue 54 packets.",
                partial(_draw_ccdf, rate=rate),
            )
            for rate in RATES_MBPS
        ),
        Panel(
            "Mean delay, queue 54 packets",
            "The gap between MPTCP+M1,2 and TCP over WiFi grows with WiFi's rate.",
            partial(_draw_means, queue=QUEUES[0]),
        ),
        Panel(
            "Mean delay, queue 80 ms",
            "Where the curves meet, 3G carries nothing.",
            partial(_draw_means, queue=QUEUES[1]),
        ),
    ),
    overview=Overview(
        factors={"curve": "curve", "wifi_mbps": "WiFi (Mbit/s)", "wifi_queue": "WiFi's queue"},
        metrics={
            "goodput_mbps": "goodput (Mbit/s)",
            "delay_mean_ms": "mean delay (ms)",
            "delay_p50_ms": "p50 (ms)",
            "delay_p95_ms": "p95 (ms)",
            "delay_p99_ms": "p99 (ms)",
        },
        path="3g",
    ),
    notes=notes,
)
