"""NSDI 2012 beyond its figures 4 and 7: weak 3G, fast links, memory, receive queue, short flows."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from anabranch.gallery import metrics, panels
from anabranch.gallery.claims import Quantity, at_every, carried, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.measures import Values, derived, median, ratio
from anabranch.gallery.metrics import GOODPUT, MEAN, OUT_OF_ORDER_SEGMENTS, Metric, part
from anabranch.gallery.shared import wifi_3g
from anabranch.gallery.shared.connections import flow, network_path
from anabranch.gallery.shared.wifi_3g import MPTCP, MPTCP_M12, TCP_WIFI
from anabranch.reports.figures import BLUE, GREEN, ORANGE, PURPLE, RED, Style
from anabranch.results.claims import Measure
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Bulk, NetworkPath, RequestResponse

WEAK, UNEQUAL, SYMMETRIC = "weak 3G", "unequal links", "three equal links"
MEMORY, QUEUE, SHORT = "memory", "receive queue", "short flows"
TCP = "TCP"
_MEMORY = FIXED, M3, M34 = "fixed buffers", "M3", "M3,4"
STYLES = {
    TCP_WIFI: Style(BLUE),
    TCP: Style(BLUE),
    MPTCP: Style(RED, "s--"),
    MPTCP_M12: Style(GREEN, "^-"),
    FIXED: Style(PURPLE, "v-."),
    M3: Style(ORANGE, "D.."),
    M34: Style(GREEN, "^-"),
}
WEAK_BUFFERS_KB = (100, 200, 400, 1000)
FAST_BUFFERS_KB = (100, 200, 400, 800)
SUBFLOWS = (2, 4, 8)
FILES_KB = (10, 30, 100, 300, 1000)
CONFIGURED_KB = 6000

_WIFI = replace(wifi_3g.WIFI, jitter="1ms")
_WEAK_3G = replace(wifi_3g.THREE_G, rate="50kbit/s", limit="9packets", jitter="1ms")
_FAST = network_path("one", "100Mbit/s", "5ms", "84packets", jitter="100us")
"""A tenth of 1 Gbit/s, with one bandwidth-delay product of queue."""
_SLOW = replace(_FAST, name="two", rate="10Mbit/s", limit="9packets")
_TWO, _THREE = (replace(_FAST, name=name) for name in ("two", "three"))
_PATHS = {
    WEAK: (_WIFI, _WEAK_3G),
    UNEQUAL: (_FAST, _SLOW),
    SYMMETRIC: (_FAST, _TWO, _THREE),
    MEMORY: (_WIFI, replace(wifi_3g.THREE_G, jitter="1ms")),
    SHORT: (_FAST, _TWO),
}
_REMEDIES: dict[str, dict[str, Any]] = {
    MPTCP_M12: wifi_3g.M12,
    M3: {"buffer_autotuning": True},
    M34: {"buffer_autotuning": True, "cwnd_cap": 2.0},
}

at = Factors("network", "curve", "size")
"""The factors of a cell. `size` is that of buffers or file in kB, or a number of subflows."""


def _cell(tier: Tier, network: str, size: int, curve: str) -> Cell:
    paths = _ways(size) if network == QUEUE else _PATHS[network]
    kb = size if network in (WEAK, UNEQUAL, SYMMETRIC) else CONFIGURED_KB
    request = RequestResponse(request_size="200B", response_size=f"{size}kB", count=1)
    if network == WEAK:
        main = wifi_3g.connection(curve, f"{kb}kB", f"{kb}kB", Bulk())
    else:
        main = flow(
            ("one",) if curve == TCP else None,
            buffers=f"{kb}kB",
            remedies=_REMEDIES.get(curve),
            workload=request if network == SHORT else Bulk(),
        )
    if network == SHORT:
        tier = replace(tier, measured_s=5, warm_up_s=0)
    return tier.cell(at(network, curve, size), paths, main)


def _ways(count: int) -> list[NetworkPath]:
    """Paths of one subflow each. The last one has four times the delay of the first."""
    return [
        replace(_FAST, name=f"way{n}", rate="20Mbit/s", delay=f"{5 + 15 * n // (count - 1)}ms")
        for n in range(count)
    ]


def _over(metric: Metric, network: str, above: str, below: str, size: int) -> Measure:
    return metric.ratio(at(network, above, size), at(network, below, size))


def _memory_of(curve: str) -> Values:
    """Send and receive buffer at the end, in MB, for each seed."""
    cell = at(MEMORY, curve, CONFIGURED_KB)
    return derived(
        np.add, metrics.SEND_BUFFER_MB.values(cell), metrics.RECEIVE_BUFFER_MB.values(cell)
    )


def _searched(count: int) -> Values:
    """Share of the out-of-order segments for which the receiver searched its queue, in %."""
    cell = at(QUEUE, MPTCP, count)
    return derived(
        lambda stray, waiting: stray / waiting * 100,
        metrics.STRAY_SEGMENTS.values(cell),
        OUT_OF_ORDER_SEGMENTS.values(cell),
    )


_flow_ratio = partial(_over, MEAN, SHORT, TCP, MPTCP)


def _files(sizes_kb: Sequence[int]) -> tuple[Quantity, ...]:
    words = "time of TCP / time of MPTCP"
    group = f"{words}, files of {', '.join(map(str, sizes_kb))} kB"
    return for_each(f"{words}, {{}} kB", sizes_kb, _flow_ratio, group)


def _over_tcp(words: str, network: str, curve: str, tcp: str) -> tuple[Quantity, ...]:
    sizes = WEAK_BUFFERS_KB if network == WEAK else FAST_BUFFERS_KB
    return at_every(words, sizes, "kB", lambda kb: _over(GOODPUT, network, curve, tcp, kb))


_carried = partial(carried, over=0)
_LONG_KB = [kb for kb in FILES_KB if kb >= 100]
_SHORT_KB = [kb for kb in FILES_KB if kb <= 30]


def _queue_grows(results: Results) -> str | None:
    """The precondition that with every number of subflows, many segments arrived out of order."""
    for count in SUBFLOWS:
        if OUT_OF_ORDER_SEGMENTS.values(at(QUEUE, MPTCP, count))(results).min() < 1000:
            return f"too few segments out of order with {count} subflows"
    return None


CLAIMS = {
    "E3.weak-3g-harms": claim(
        _over_tcp("MPTCP / TCP over WiFi", WEAK, MPTCP, TCP_WIFI),
        needs=_carried("3g", *at.every(WEAK, MPTCP, WEAK_BUFFERS_KB)),
    ),
    "E3.weak-3g-cured": claim(
        _over_tcp("MPTCP+M1,2 / TCP over WiFi", WEAK, MPTCP_M12, TCP_WIFI),
        needs=_carried("3g", *at.every(WEAK, MPTCP_M12, WEAK_BUFFERS_KB)),
    ),
    "E3.unequal": claim(
        _over_tcp("MPTCP+M1,2 / TCP over the faster link", UNEQUAL, MPTCP_M12, TCP),
        needs=_carried("two", *at.every(UNEQUAL, MPTCP_M12, FAST_BUFFERS_KB)),
    ),
    "E3.symmetric": claim(
        at_every(
            "|with M1,2 / without − 1|",
            FAST_BUFFERS_KB,
            "kB",
            lambda kb: GOODPUT.distance(at(SYMMETRIC, MPTCP_M12, kb), at(SYMMETRIC, MPTCP, kb)),
        ),
        needs=_carried("three", *at.every(SYMMETRIC, MPTCP, FAST_BUFFERS_KB)),
    ),
    "E3.memory": claim(
        Quantity("buffers with M3,4 / fixed", ratio(_memory_of(M34), _memory_of(FIXED)), "buffers"),
        Quantity(
            "goodput with M3,4 / fixed",
            _over(GOODPUT, MEMORY, M34, FIXED, CONFIGURED_KB),
            "goodput",
        ),
        needs=_carried("3g", at(MEMORY, M34, CONFIGURED_KB)),
    ),
    "E3.receive-queue": claim(
        for_each(
            "out-of-order segments that need a search, {} subflows",
            SUBFLOWS,
            lambda count: median(_searched(count)),
            "out-of-order segments that need a search of the queue, with "
            f"{', '.join(map(str, SUBFLOWS))} subflows",
        ),
        needs=_queue_grows,
    ),
    "E3.short-flows-gain": claim(
        _files(_LONG_KB), needs=_carried("two", *at.every(SHORT, MPTCP, _LONG_KB))
    ),
    "E3.short-flows-control": claim(_files(_SHORT_KB)),
}


def _over_buffers(network: str, single: str, buffers_kb: Sequence[int]) -> panels.Draw:
    curves = panels.curves(STYLES, single, MPTCP, MPTCP_M12, network=network)
    return panels.over("size", GOODPUT, curves, "send and receive buffer (kB)", ticks=buffers_kb)


def _draw_memory(results: Results, axes: panels.Axes) -> None:
    for place, curve in enumerate(_MEMORY):
        height = median(_memory_of(curve))(results).value
        axes.bar(place, height, 0.6, color=STYLES[curve].colour, alpha=0.75)
        goodput = GOODPUT.number(results, at(MEMORY, curve, CONFIGURED_KB))
        axes.annotate(f"{goodput:.2f} Mbit/s", (place, 0.2), ha="center", fontsize=7)
    axes.set_xticks(range(3), _MEMORY)
    axes.set_ylabel("send + receive buffer at the end (MB)")


def _measured_words(results: Results) -> dict[str, object]:
    memory = "; ".join(f"{c} {np.median(_memory_of(c)(results)):.2f} MB" for c in _MEMORY)

    def waiting(count: int) -> str:
        segments = OUT_OF_ORDER_SEGMENTS.number(results, at(QUEUE, MPTCP, count))
        words = f"{count} subflows, {segments:,.0f} segments out of order"
        return f"{words}, of which {np.median(_searched(count)(results)):.2g} % need a search"

    three = at(SYMMETRIC, MPTCP, 200)
    shares = [part(name).values(three)(results) for name in ("one", "two", "three")]
    most = np.median(np.max(shares, axis=0))
    return {"memory": memory, "waiting": "; ".join(map(waiting, SUBFLOWS)), "most": most}


PANELS = {
    "WiFi and 3G of 50 kbit/s": _over_buffers(WEAK, TCP_WIFI, WEAK_BUFFERS_KB),
    "Unequal links": _over_buffers(UNEQUAL, TCP, FAST_BUFFERS_KB),
    "Three equal links": _over_buffers(SYMMETRIC, TCP, FAST_BUFFERS_KB),
    "Memory": _draw_memory,
    "Short flows": panels.points(
        FILES_KB,
        lambda _, kb: _flow_ratio(kb),
        {MPTCP: STYLES[MPTCP]},
        "size of the file (kB)",
        "time of TCP / time of MPTCP",
        ticks=FILES_KB,
        bottom=None,
        lines={1: "TCP"},
    ),
}

EXPERIMENT = Experiment(
    words={"configured_kb": CONFIGURED_KB},
    design=joined(
        grid(_cell, network=(WEAK,), size=WEAK_BUFFERS_KB, curve=(TCP_WIFI, MPTCP, MPTCP_M12)),
        grid(
            _cell, network=(UNEQUAL, SYMMETRIC), size=FAST_BUFFERS_KB, curve=(TCP, MPTCP, MPTCP_M12)
        ),
        grid(_cell, network=(MEMORY,), size=(CONFIGURED_KB,), curve=_MEMORY),
        grid(_cell, network=(QUEUE,), size=SUBFLOWS, curve=(MPTCP,)),
        grid(_cell, network=(SHORT,), size=FILES_KB, curve=(TCP, MPTCP)),
    ),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview(
        "network; curve; size", "3g", (GOODPUT, MEAN.called("time of a file"), metrics.REINJECTIONS)
    ),
    measured_words=_measured_words,
)
