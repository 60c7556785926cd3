"""Ferlin, Dreibholz, Alay, IWQoS 2014: MPT-BM, against bufferbloat on cellular paths."""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from anabranch.gallery import metrics, panels
from anabranch.gallery.claims import Needs, Quantity, all_of, carried, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.measures import derived, in_words, median
from anabranch.gallery.metrics import TRANSFER, VARIATION, Levels, Metric, srtt_p95
from anabranch.gallery.shared.connections import flow, network_path
from anabranch.gallery.shared.wifi_3g import M12
from anabranch.reports.figures import BLUE, GREEN, GREY, ORANGE, RED, Style
from anabranch.results.claims import Measure
from anabranch.results.folder import Factor, Results
from anabranch.scenarios.quantities import nanoseconds
from anabranch.scenarios.scenario import Bulk, NetworkPath

DEFAULT, BM15, BM30 = "default", "MPT-BM, λ = 1.5", "MPT-BM, λ = 3"
STYLES = {DEFAULT: Style(RED, "s--"), BM30: Style(BLUE, "o-."), BM15: Style(GREEN, "^-")}
_LAMBDA = {BM15: 1.5, BM30: 3.0}
EXAMPLE, EXAMPLE_PAIR = "M1,2, bounded", "3G2+WLAN"
"""The slides' example of bufferbloat: a bounded receive window, and penalisation of 3G2."""

WLAN = network_path("wlan", "5Mbit/s", "10ms", "80ms", jitter="1ms", loss="1%")
THREE_G_ONE = network_path("3g1", "3Mbit/s", "30ms", "2s", jitter="5ms")
THREE_G_TWO = network_path("3g2", "6Mbit/s", "50ms", "4s", jitter="5ms")
PAIRS = {
    "3G1+WLAN": (WLAN, THREE_G_ONE),
    "3G2+WLAN": (WLAN, THREE_G_TWO),
    "3G1+3G2": (THREE_G_ONE, THREE_G_TWO),
}

at = Factors("curve", "pair")


_REMEDIES: dict[str, dict[str, Any]] = {EXAMPLE: M12} | {
    curve: {"mpt_bm": {"lambda": factor}} for curve, factor in _LAMBDA.items()
}


def _cell(tier: Tier, curve: str, pair: str) -> Cell:
    connection = flow(
        control="olia",
        send_buffer="16MiB",
        receive_buffer="512KiB" if curve == EXAMPLE else "16MiB",
        remedies=_REMEDIES.get(curve),
        workload=Bulk(size="16MiB"),
    )
    words = (curve.replace("λ = ", ""), pair)
    name = f"{curve}, {pair}"
    return tier.cell(at(curve, pair), PAIRS[pair], connection, words=words, name=name)


_CELLULAR = [(pair, path) for pair, paths in PAIRS.items() for path in paths if path.name != "wlan"]


def _compared(metric: Metric, words: str) -> tuple[Quantity, ...]:
    """A metric of each curve over that of the default, for each pair."""
    return for_each(
        f"{words}, {{1}} / default, {{0}}",
        product(PAIRS, (BM15, BM30)),
        lambda pair, curve: metric.ratio(at(curve, pair), at(DEFAULT, pair)),
        f"{words}, MPT-BM with either λ / default, every pair of paths",
    )


_CAPS = ((BM15, DEFAULT, "1.5"), (BM30, DEFAULT, "3"), (BM15, BM30, "order"))
"""A curve, another one, and the bound of the ratio of their round-trip times."""


def _capped(pair: str, name: str) -> list[Quantity]:
    """The smoothed RTT of a cellular path of a pair, compared with other curves."""
    return [
        Quantity(
            f"p95 sRTT of {name}, {curve} / {over}, {pair}",
            srtt_p95(name).ratio(at(curve, pair), at(over, pair)),
            key,
            f"p95 sRTT of every cellular path, {curve} / {over}",
        )
        for curve, over, key in _CAPS
    ]


def _over_minimum(curve: str, pair: str, path: NetworkPath, factor: float) -> Measure:
    """The p95 of the smoothed RTT over λ times the least RTT of an empty path."""
    least_ms = 2 * nanoseconds(path.delay) / 1e6
    return median(srtt_p95(path.name).values(at(curve, pair)), 1 / (factor * least_ms))


def both_used(pair: str, cells: Iterable[Levels]) -> Needs:
    """The precondition that both paths of a pair carried over 1 % of the bytes in each cell."""
    return carried([path.name for path in PAIRS[pair]], *cells, of=np.median)


_claim = partial(claim, needs=all_of(*(both_used(pair, at.every(STYLES, pair)) for pair in PAIRS)))

CLAIMS = {
    "E6.a-rtt-capped": _claim(*(_capped(pair, path.name) for pair, path in _CELLULAR)),
    "E6.a2-rtt-near-lambda": _claim(
        for_each(
            "p95 sRTT of {2.name} / ({3:g} × least RTT), {1}",
            ((curve, *path, _LAMBDA[curve]) for path in _CELLULAR for curve in (BM15, BM30)),
            _over_minimum,
            "p95 sRTT / (λ × least RTT), every cellular path, with either λ",
        )
    ),
    "E6.b-goodput-kept": _claim(_compared(TRANSFER, "goodput")),
    "E6.c-steadier": _claim(_compared(VARIATION, "variation of goodput")),
    "E6.d-less-waiting": _claim(_compared(metrics.OUT_OF_ORDER, "bytes out of order")),
}


def _end_s(results: Results) -> float:
    """The end of the time axis: shortly after the last transfer completes."""
    ends = []
    for curve in STYLES:
        rows = results.rows("samples", **at(curve, EXAMPLE_PAIR))
        missing = rows.filter(pl.col("bytes_delivered") < rows["bytes_delivered"].max())
        ends.append(float(missing["time_ns"].to_numpy().max()) / 1e9)
    return 1.1 * max(ends)


def _over_time(column: str, unit: str, scale: float, path: str = "") -> panels.Draw:
    """A column of the samples of each curve; `path` names its path if subflows differ."""
    rows: dict[str, Factor] = {"path_name": path} if path else {}
    drawn = {
        curve: (at(curve, EXAMPLE_PAIR) | rows, column, style) for curve, style in STYLES.items()
    }
    look: dict[str, Any] = {"where": pl.col("srtt_ns") > 0, "log": True} if path else {}

    def draw(results: Results, axes: panels.Axes) -> None:
        span = (0, _end_s(results))
        panels.series(drawn, unit, scale=1 / scale, span=span, **look)(results, axes)

    return draw


def _example(
    unit: str, columns: Mapping[str, tuple[str, str, Style]], bin_samples: int = 0
) -> panels.Draw:
    """Columns of the example: path, column and style for each label. In kB, or rates in bins."""
    example = at(EXAMPLE, EXAMPLE_PAIR)
    delivered = pl.col("bytes_delivered")
    return panels.series(
        {
            label: (example | {"path_name": path}, column, style)
            for label, (path, column, style) in columns.items()
        },
        unit,
        scale=1 if bin_samples else 1e-3,
        bin_samples=bin_samples,
        where=(delivered < delivered.max()) & (pl.col("srtt_ns") > 0),
    )


_SLIDES = {TRANSFER: (1.08, 1.15), VARIATION: (0.55, 0.85)}
"""Slides: ranges of the goodput and of its variation, over those of the default."""


def _ratios(metric: Metric, words: str) -> panels.Drawings:
    draw = panels.bars(
        tuple(PAIRS),
        lambda curve, pair: metric.ratio(at(curve, pair), at(DEFAULT, pair)),
        {curve: STYLES[curve] for curve in _LAMBDA},
        f"{words} / that of the default",
        lines={1: ""},
        stated=[(place, end) for place in range(len(PAIRS)) for end in _SLIDES[metric]],
    )
    return {f"{words.capitalize()}, compared with the default": draw}


def _measured_words(results: Results) -> dict[str, object]:
    def goodputs(pair: str) -> str:
        found = in_words(results, STYLES, lambda curve: TRANSFER.median(at(curve, pair)))
        return f"{pair}: {found} Mbit/s."

    def on_wlan(curve: str) -> str:
        cell = at(curve, "3G1+WLAN")
        carried = derived(np.multiply, TRANSFER.values(cell), metrics.part("wlan").values(cell))
        return median(carried)(results).text("Mbit/s")

    return {
        "goodputs": " ".join(map(goodputs, PAIRS)),
        "wlan_bm15": on_wlan(BM15),
        "wlan_default": on_wlan(DEFAULT),
    }


PANELS = {
    "Round-trip time of 3G2 next to WLAN": _over_time(
        "srtt_ns", "smoothed RTT of 3g2 (ms)", 1e6, path="3g2"
    ),
    "Bytes delivered, 3G2 + WLAN": _over_time("bytes_delivered", "delivered (MB)", 1e6),
    "Bytes that wait, 3G2 + WLAN": _over_time("out_of_order_bytes", "out of order (kB)", 1e3),
    "Goodput of the transfer": panels.bars_of(tuple(PAIRS), TRANSFER, at, STYLES),
    "Variation of goodput": panels.bars_of(tuple(PAIRS), VARIATION, at, STYLES),
    **_ratios(TRANSFER, "goodput"),
    **_ratios(VARIATION, "variation of goodput"),
    "Bytes out of order": panels.bars_of(tuple(PAIRS), metrics.OUT_OF_ORDER_KB, at, STYLES),
    "(a) Example: goodput": _example(
        "rate, bins of 0.5 s (Mbit/s)",
        {
            "total": ("wlan", "bytes_delivered", Style(RED, "-")),
            "WLAN": ("wlan", "subflow_bytes_received", Style(BLUE, "-")),
            "3G2": ("3g2", "subflow_bytes_received", Style(GREEN, "--")),
        },
        bin_samples=5,
    ),
    "(b) Example: head-of-line blocking": _example(
        "out of order (kB)", {"out of order": ("wlan", "out_of_order_bytes", Style(RED, "-"))}
    ),
    "(c) Example: windows of 3G2": _example(
        "3G2 (kB)",
        {
            "congestion window": ("3g2", "cwnd", Style(GREEN, "--")),
            "in flight": ("3g2", "bytes_in_flight", Style(GREY, "-")),
        },
    ),
    "(d) Example: WLAN and the receive window": _example(
        "kB",
        {
            "in flight on WLAN": ("wlan", "bytes_in_flight", Style(BLUE, "-")),
            "room in the receive window": ("wlan", "available_window", Style(ORANGE, ":")),
        },
    ),
}

EXPERIMENT = Experiment(
    design=joined(
        grid(_cell, pair=PAIRS, curve=STYLES), lambda tier: [_cell(tier, EXAMPLE, EXAMPLE_PAIR)]
    ),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("pair: paths; curve", "3g2", (TRANSFER, VARIATION, metrics.OUT_OF_ORDER)),
    measured_words=_measured_words,
)
