"""Cao, Xu, Fu, ICNP 2012: weighted Vegas, which takes queueing delay as the sign of congestion."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from anabranch.gallery import measures, panels
from anabranch.gallery.claims import Quantity, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.measures import Values, by_seed, derived, median, part_of, per_seed, ratio
from anabranch.gallery.metrics import GOODPUT, part, srtt_p95
from anabranch.gallery.shared.bottlenecks import all_carried
from anabranch.gallery.shared.connections import access, flow, network_path
from anabranch.reports.figures import BLUE, GREEN, ORANGE, Style, series
from anabranch.results.claims import Measure
from anabranch.results.estimates import Sample
from anabranch.results.folder import Factor, Results
from anabranch.scenarios.scenario import Connection, CrossTraffic, NetworkPath

WVEGAS, LIA = "wVegas", "LIA"
STYLES = {WVEGAS: Style(BLUE), LIA: Style(ORANGE, "D..")}
_CONTROL = {WVEGAS: "wvegas", LIA: "lia"}
_ALONE_ON_A_PATH = {WVEGAS: "wvegas", LIA: "new_reno"}
"""The congestion control of flows with one path."""

EQUAL, UNEQUAL, SHORT = "two equal paths", "two unequal paths", "two short paths"
_RATES = {EQUAL: (10, 10), UNEQUAL: (16, 4), SHORT: (10, 10)}
"""Rates in Mbit/s of two paths that one connection has alone."""
_LONG = (EQUAL, UNEQUAL)

THREE, APART = "three flows", "three flows, apart"
APART_S = 5
"""Delay with which the flow over both links starts, relative to the others."""
LOAD = "load comes and goes"
ONE_SUBFLOW, TWO_SUBFLOWS = "one link, one subflow", "one link, two subflows"
_SUBFLOWS = {ONE_SUBFLOW: 1, TWO_SUBFLOWS: 2}

PERIOD_S = 40
"""The load on the first path is on, off and on, for this time each."""
_LOAD = CrossTraffic(path="one", rate="6Mbit/s", on=f"{PERIOD_S}s", off=f"{PERIOD_S}s")
GOES_S, COMES_S = PERIOD_S, 2 * PERIOD_S
SOON_S = 10
"""A timely reaction takes no longer than this."""

FLOWS = ("first", "main", "last")
"""A flow over the first path, one over both, and one over the second path."""

at = Factors("curve", "network")


def _cell(tier: Tier, curve: str, network: str) -> Cell:
    return tier.cell(
        at(curve, network),
        _paths(network),
        _connections(curve, network),
        cross_traffic=(_LOAD,) if network == LOAD else (),
        keep_samples=network in _RATES or network == LOAD,
        keep_starts=network == APART,
    )


def _path(name: str, mbps: int, delay: str = "20ms") -> NetworkPath:
    return network_path(name, f"{mbps}Mbit/s", delay, "100packets", jitter="0.2ms")


def _paths(network: str) -> tuple[NetworkPath, ...]:
    if network in _SUBFLOWS:
        ways = (access(name, "shared", "1ms") for name in ("one", "two", "other"))
        return (_path("shared", 10), *ways)
    rates = {THREE: (6, 9), APART: (6, 9), LOAD: (10, 10)} | _RATES
    delay = "5ms" if network == SHORT else "20ms"
    return tuple(
        _path(name, mbps, delay) for name, mbps in zip(("one", "two"), rates[network], strict=True)
    )


def _connections(curve: str, network: str) -> tuple[Connection, ...]:
    def controlled(name: str, *paths: str) -> Connection:
        controls = _ALONE_ON_A_PATH if len(paths) == 1 else _CONTROL
        return flow(paths, name=name, congestion_control=controls[curve])

    main = controlled("main", "one", "two")
    if network == APART:
        main = replace(main, start=f"{APART_S}s")
    if network in _RATES:
        return (main,)
    if network in _SUBFLOWS:
        main = controlled("main", *("one", "two")[: _SUBFLOWS[network]])
        return main, controlled("other", "other")
    return controlled("first", "one"), main, controlled("last", "two")


def _of_main(results: Results, curve: str, network: str, **others: Factor) -> pl.DataFrame:
    return results.rows("samples", **at(curve, network), connection_name="main", **others)


@by_seed
def queue(results: Results, curve: str, network: str) -> Sample:
    """Mean number of packets in the queues of all paths together after the warm-up, by seed."""
    rows = _of_main(results, curve, network).filter(pl.col("time_ns") >= results.warm_up_ns)
    by_path = rows.group_by("seed", "path_name").agg(pl.col("queue_packets").mean())
    return per_seed(by_path, pl.col("queue_packets").sum(), "no time series")


@by_seed
def drops(results: Results, curve: str, network: str) -> Sample:
    """Number of packets that found a queue full, for each seed."""
    rows = results.rows("links", **at(curve, network))
    return per_seed(rows, pl.col("dropped_by_queue").sum(), "no queues")


@by_seed
def share_of_two(results: Results, curve: str, since_s: int, until_s: int) -> Sample:
    """Share of its bytes that the connection with two paths has on the second, in per cent."""
    between = pl.col("time_ns").is_between(since_s * 10**9, until_s * 10**9)
    rows = _of_main(results, curve, LOAD).filter(between)
    received = pl.col("subflow_bytes_received")
    by_path = rows.group_by("seed", "path_name").agg(new=received.max() - received.min())
    two = pl.col("new").filter(pl.col("path_name") == "two").sum()
    return per_seed(by_path, two / pl.col("new").sum() * 100, "no time series")


def shift(curve: str, change_s: int) -> Values:
    """Change of the second path's share within 10 s of a load change, in percentage points.

    A move away from the loaded path counts as positive.
    """
    sign = 1 if change_s == COMES_S else -1
    before = share_of_two(curve, change_s - SOON_S, change_s)
    after = share_of_two(curve, change_s, change_s + SOON_S)
    return derived(lambda before, after: (after - before) * sign, before, after)


def remaining(curve: str, change_s: int) -> Values:
    """Distance between the shares in the first and the last 10 s after a change, in points."""
    early = share_of_two(curve, change_s, change_s + SOON_S)
    late = share_of_two(curve, change_s + PERIOD_S - SOON_S, change_s + PERIOD_S)
    return derived(lambda early, late: np.abs(late - early), early, late)


def goodputs(curve: str, network: str = THREE) -> dict[str, Values]:
    """Goodput in Mbit/s of each of the three flows, for each seed."""
    return {flow: GOODPUT.values(at(curve, network), connection=flow) for flow in FLOWS}


def spread(curve: str) -> Values:
    """The largest of the three goodputs over the smallest, for each seed."""
    flows = goodputs(curve).values()
    return derived(lambda *rates: np.max(rates, axis=0) / np.min(rates, axis=0), *flows)


def one_link_share(network: str) -> Values:
    """Share of one link that the connection takes next to a flow of wVegas, for each seed."""
    cell = at(WVEGAS, network)
    return part_of(*(GOODPUT.values(cell, connection=name) for name in ("main", "other")))


def _equal_rates(network: str) -> tuple[Quantity, ...]:
    """The rates of the slides' example: a third for each flow, and 1 : 4 on the two links."""
    words = "part of the sum of goodputs"
    flows = goodputs(WVEGAS, network)

    def part_of_sum(flow: str) -> Measure:
        return median(part_of(flows[flow], *(flows[each] for each in FLOWS if each != flow)))

    return (
        *for_each(f"{words}, {{}}", FLOWS, part_of_sum, f"{words}, each flow"),
        Quantity(
            "part of the flow with both links on the link of 6 Mbit/s",
            part("one").median(at(WVEGAS, network), connection="main"),
            "split",
        ),
    )


def _queue_of(network: str, bound: str = "") -> Quantity:
    words = f"packets in both queues, wVegas, {network}"
    group = "" if bound else "packets in both queues, wVegas, equal and unequal paths"
    return Quantity(words, median(queue(WVEGAS, network)), bound, group)


def _goodput_of(network: str, bound: str = "") -> Quantity:
    words = f"goodput, wVegas / LIA, {network}"
    return Quantity(words, GOODPUT.ratio(at(WVEGAS, network), at(LIA, network)), bound)


_CHANGES = {"load comes": COMES_S, "load goes": GOES_S}


def _more_than_lia(words: str, of: Callable[[str, int], Values]) -> tuple[Quantity, ...]:
    """A quantity with wVegas less that with LIA, for both changes of the load."""
    return for_each(
        f"{words}, wVegas − LIA, {{}}",
        _CHANGES,
        lambda change: measures.difference(of(WVEGAS, _CHANGES[change]), of(LIA, _CHANGES[change])),
    )


_claim = partial(claim, needs=all_carried)

CLAIMS = {
    "WV.a-ten-queued": _claim(map(_queue_of, _LONG)),
    "WV.b-short-queues": _claim(
        (
            Quantity(
                f"{words}, wVegas / LIA, {network}",
                ratio(of(WVEGAS, network), of(LIA, network)),
                bound,
            )
            for network in _LONG
            for words, of, bound in (
                ("packets in both queues", queue, ""),
                ("dropped packets", drops, "losses"),
            )
        )
    ),
    "WV.c-fills": _claim(map(_goodput_of, _LONG)),
    "WV.d-timely": _claim(_more_than_lia("shift of traffic", shift)),
    "WV.e-converges": _claim(_more_than_lia("rest of the way", remaining)),
    "WV.f-equal-rates": _claim(_equal_rates(THREE)),
    "WV.g-fairer-than-lia": _claim(
        Quantity("largest / smallest goodput, wVegas / LIA", ratio(spread(WVEGAS), spread(LIA)))
    ),
    "WV.h-one-bottleneck": _claim(
        for_each(
            "share of the link, {}",
            _SUBFLOWS,
            lambda network: median(one_link_share(network)),
            "share of the link, one and two subflows",
        )
    ),
    "WV.i-short-paths": _claim(_queue_of(SHORT, "queues"), _goodput_of(SHORT, "goodput")),
    "WV.j-apart": _claim(_equal_rates(APART)),
}


def _by_path(results: Results, curve: str, network: str, column: str) -> pl.DataFrame:
    """A column of the first seed's samples over time, for each path."""
    rows = _of_main(results, curve, network, seed=1)
    return rows.pivot("path_name", index="time_ns", values=column, aggregate_function="sum")


def _draw_shift(results: Results, axes: panels.Axes) -> None:
    lines = {}
    for curve, style in STYLES.items():
        rows = _by_path(results, curve, LOAD, "subflow_bytes_received").gather_every(20)
        one, two = (np.diff(rows[name].to_numpy().astype(np.float64)) for name in ("one", "two"))
        times = rows["time_ns"].to_numpy()[1:] / 1e9
        lines[curve] = (times, 100 * two / np.maximum(one + two, 1), style)
    series(axes, lines, "share of the second path (%)")
    for start in (0, COMES_S):
        axes.axvspan(start, start + PERIOD_S, color="0.5", alpha=0.15, linewidth=0)
    axes.set(xlim=(PERIOD_S // 2, 3 * PERIOD_S), ylim=(0, 100))


def _draw_queue(results: Results, axes: panels.Axes) -> None:
    lines = {}
    for curve, style in STYLES.items():
        rows = _by_path(results, curve, EQUAL, "queue_packets")
        packets = rows.select(pl.sum_horizontal("one", "two")).to_series().to_numpy()
        lines[curve] = (rows["time_ns"].to_numpy() / 1e9, packets.astype(np.float64), style)
    series(axes, lines, "packets in both queues")
    since_s = results.warm_up_ns // 10**9
    axes.set(xlim=(since_s, since_s + 60), ylim=(0, None))


_DRAWN = {
    **{curve: (curve, THREE, style) for curve, style in STYLES.items()},
    f"{WVEGAS}, apart": (WVEGAS, APART, Style(GREEN, "s--")),
}


def _measured_words(results: Results) -> dict[str, object]:
    def numbers(of: Callable[..., Values], unit: str, *arguments: Any) -> str:
        return measures.in_words(results, STYLES, lambda curve: median(of(curve, *arguments)), unit)

    def flows(curve: str, network: str = THREE) -> str:
        found = goodputs(curve, network)
        return measures.in_words(results, found, lambda flow: median(found[flow]), "Mbit/s")

    queues = "; ".join(f"{network}: {numbers(queue, 'packets', network)}" for network in _RATES)
    shifts, rests = (
        "; ".join(f"{words}: {numbers(of, 'points', at_s)}" for words, at_s in _CHANGES.items())
        for of in (shift, remaining)
    )
    return {
        "queues": queues,
        "shifts": shifts,
        "rests": rests,
        "together": "; ".join(f"{curve}: {flows(curve)}" for curve in STYLES),
        "apart": flows(WVEGAS, APART),
    }


PANELS = {
    "Load comes and goes": _draw_shift,
    "Queues": _draw_queue,
    "Three flows": panels.bars(
        dict(zip(("6 Mbit/s", "both links", "9 Mbit/s"), FLOWS, strict=True)),
        lambda name, flow: median(goodputs(*_DRAWN[name][:2])[flow]),
        {name: style for name, (_, _, style) in _DRAWN.items()},
        "goodput (Mbit/s)",
        x="flow over",
        lines={5 * 1448 / 1500: "5 Mbit/s"},
    ),
}

EXPERIMENT = Experiment(
    words={"apart_s": APART_S, "goes_s": GOES_S, "comes_s": COMES_S, "wvegas": WVEGAS},
    design=joined(
        grid(_cell, network=(*_RATES, THREE, LOAD), curve=STYLES),
        grid(_cell, network=(*_SUBFLOWS, APART), curve=(WVEGAS,)),
    ),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview(
        "network; curve: congestion control; connection: flow",
        "two",
        (GOODPUT, srtt_p95("one").called("p95 RTT, path one")),
    ),
    measured_words=_measured_words,
)
