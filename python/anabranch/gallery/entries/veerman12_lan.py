"""Veerman 2012: Multipath TCP in a LAN: buffers, interfaces that come and go, unequal links."""

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from anabranch import policy
from anabranch.gallery.claims import Quantity, carried, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier
from anabranch.gallery.measures import Values, by_seed, derived, estimate, median, part_of, smallest
from anabranch.gallery.metrics import COMPLETED, DELIVERED, GOODPUT, REINJECTIONS, share
from anabranch.gallery.panels import Axes, Draw
from anabranch.gallery.registry import row
from anabranch.gallery.shared import veerman12
from anabranch.gallery.shared.connections import outages
from anabranch.gallery.shared.veerman12 import LARGE_MSS, SMALL_MSS, link
from anabranch.reports.figures import BLACK, BLUE, GREEN, ORANGE, Style
from anabranch.reports.outages import shade
from anabranch.results.claims import Measure
from anabranch.results.estimates import Sample
from anabranch.results.folder import Factor, NothingMeasured, Results
from anabranch.scenarios.loading import settings_in
from anabranch.scenarios.scenario import Bulk, NetworkPath

RTT_MS = 5
LINK_MBPS = 1000 / veerman12.SCALE
SUM_MBPS = 2 * LINK_MBPS

THROUGHPUT, ROBUSTNESS, TRANSFER = "throughput", "robustness", "transfer"
BALANCING, TWO_TEN = "balancing", "2 × 10 Gbit/s"

COLOURS = {"one": BLUE, "two": ORANGE, "ten": GREEN}

LIA = "LIA"
MIN_BUFFER_MB = veerman12.min_buffer_mb(RTT_MS, 1, 1)
SLIDES_MB = 6.0
BUFFERS_MB = (*(MIN_BUFFER_MB * factor for factor in (0.25, 0.5, 0.75, 1, 2)), SLIDES_MB)

REJOINS, STAYS_AWAY, SILENT = "re-opens", "never re-opens", "silent"
ARMS = (REJOINS, STAYS_AWAY, SILENT)
MSS_BUFFER_MB = {SMALL_MSS: 16.0, LARGE_MSS: 26.0}
SESSIONS = {"one session": ("main",), "two sessions": ("main", "second")}
TWO_TEN_MB = 20.0

TRANSFER_MB = 250
DOWN_S, UP_S = (row("E9.lan-robustness").bound(change).high for change in ("DOWN", "UP"))
"""Longest allowed delay of throughput after an interface goes down or comes up."""

_STEP_S, _WINDOW_S = 0.1, 0.5
"""After an interface change, throughput is a mean over 0.5 s, evaluated every 0.1 s."""


class OpensOnce(policy.PathManager):
    """Opens one subflow from each address at the start, and never re-opens an ended subflow."""

    def __init__(self) -> None:
        self.actions: deque[policy.PathAction] = deque()

    def handle_event(self, ctx: policy.PathContext, event: policy.PathEvent) -> None:
        """Queue the actions that an event calls for."""
        match event:
            case policy.Established(initiator=True, local=addresses, remote=remote):
                self.actions.extend(
                    policy.Open(local, remote) for local in addresses if local.id != 0
                )
            case policy.AddressChanged(local_address_id=address, usable=False):
                gone = [view.id for view in ctx.subflows if view.local_address_id == address]
                self.actions.extend(policy.Close(subflow, reset=True) for subflow in gone)
                self.actions.append(policy.Remove(address))

    def poll_action(self) -> policy.PathAction | None:
        """The next action, if there is one."""
        return self.actions.popleft() if self.actions else None


at = Factors("test", "curve", "buffer_mb")
_BUFFERS = at.every(THROUGHPUT, LIA, BUFFERS_MB)


def cells(tier: Tier) -> list[Cell]:
    """Buffers; interfaces down and up; a third, larger link; two large links."""
    return [
        *(_cell(tier, each) for each in _BUFFERS),
        *(_flapping(tier, arm) for arm in ARMS),
        _transfer(tier),
        *(_balancing(tier, mss) for mss in MSS_BUFFER_MB),
        *(_two_ten(tier, curve) for curve in SESSIONS),
    ]


def _cell(
    tier: Tier,
    factors: dict[str, Factor],
    paths: Sequence[NetworkPath] = (link("one", 1, RTT_MS), link("two", 1, RTT_MS)),
    sessions: Sequence[str] = ("main",),
    **others: Any,
) -> Cell:
    buffer = float(factors["buffer_mb"])
    words = (str(factors["test"]).replace("×", "x"), str(factors["curve"]), f"{buffer:g}mb")
    return tier.cell(
        factors,
        paths,
        [veerman12.connection(buffer, name=name, **others) for name in sessions],
        words=[word.replace("/", "-") for word in words],
        name=", ".join(words),
        keep_samples=factors["test"] == ROBUSTNESS,
    )


def _flapping(tier: Tier, arm: str) -> Cell:
    """Link one goes down and comes up twice, at four equally spaced times."""
    times = event_times(tier.warm_up_s, tier.warm_up_s + tier.measured_s)
    changes = outages(*times, noticed=arm != SILENT)
    paths = (link("one", 1, RTT_MS, changes=changes), link("two", 1, RTT_MS))
    manager = OpensOnce if arm == STAYS_AWAY else "full_mesh"
    return _cell(tier, at(ROBUSTNESS, arm, SLIDES_MB), paths, path_manager=manager)


def _transfer(tier: Tier) -> Cell:
    """Both links go down and come up repeatedly. In every 4 s, both are down for half a second."""
    paths = []
    for name, down, up in (("one", 2, 4), ("two", 3.5, 5)):
        times = [time + 4 * cycle for cycle in range(6) for time in (down, up)]
        paths.append(link(name, 1, RTT_MS, changes=outages(*times, noticed=True)))
    size = Bulk(size=f"{TRANSFER_MB}MB")
    return _cell(tier, at(TRANSFER, REJOINS, SLIDES_MB), paths, workload=size)


def _balancing(tier: Tier, mss: int) -> Cell:
    rates = {"one": 1, "two": 1, "ten": 10}
    paths = [link(name, gbps, RTT_MS, mss=mss) for name, gbps in rates.items()]
    return _cell(tier, at(BALANCING, f"MSS {mss}", MSS_BUFFER_MB[mss]), paths)


def _two_ten(tier: Tier, curve: str) -> Cell:
    paths = [link(name, 10, RTT_MS, mss=LARGE_MSS) for name in ("one", "two")]
    return _cell(tier, at(TWO_TEN, curve, TWO_TEN_MB), paths, SESSIONS[curve])


def event_times(begin: float, end: float) -> list[float]:
    """The times at which link one goes down, up, down and up, between `begin` and `end`."""
    return [float(time) for time in np.linspace(begin, end, 6)[1:-1].round(1)]


def _events(results: Results) -> list[float]:
    return event_times(results.warm_up_ns / 1e9, results.duration_ns / 1e9)


def _throughput(results: Results, arm: str, event: int) -> list[Sample]:
    """For each seed, the throughputs in Mbit/s from event `event` to the next event.

    Each value is a mean over the half second that ends a multiple of 0.1 s after the event.
    """
    times = [*_events(results), results.duration_ns / 1e9]
    ends = np.arange(times[event] + _STEP_S, times[event + 1] + _STEP_S / 2, _STEP_S)
    rows = results.rows("samples", test=ROBUSTNESS, curve=arm)
    if rows.is_empty():
        raise NothingMeasured(f"no time series of {arm}")
    throughputs = []
    for samples in rows.partition_by("seed", maintain_order=True):
        once = samples.unique("time_ns", maintain_order=True)
        seconds, delivered = once["time_ns"].to_numpy() / 1e9, once["bytes_delivered"].to_numpy()
        new = np.interp(ends, seconds, delivered) - np.interp(ends - _WINDOW_S, seconds, delivered)
        throughputs.append(new * 8 / 1e6 / _WINDOW_S)
    return throughputs


def _settling_s(arm: str, events: Sequence[int], low: float, high: float = np.inf) -> Measure:
    """The time after the events at which throughput last lay outside a range, in the worst seed."""

    def last_outside(rates: Sample) -> float:
        outside = np.flatnonzero((rates < low) | (rates > high))
        return float(outside[-1] + 1) * _STEP_S if outside.size else 0.0

    def settled(results: Results) -> Sample:
        times = [[last_outside(rates) for rates in _throughput(results, arm, e)] for e in events]
        return np.asarray(np.max(times, axis=0))

    return estimate(np.max, settled)


@by_seed
def _phase_mbps(results: Results, arm: str, event: int) -> Sample:
    """Mean throughput of each seed from event `event` to the next, without the settling time."""
    skipped = round((DOWN_S, UP_S)[event % 2] / _STEP_S)
    return np.array([rates[skipped:].mean() for rates in _throughput(results, arm, event)])


def _total(cell: dict[str, Factor]) -> Values:
    """Goodput of all sessions of a cell, for each seed."""
    names = SESSIONS.get(str(cell["curve"]), ("main",))
    each = (GOODPUT.values(cell, connection=name) for name in names)
    return derived(lambda *goodputs: np.sum(goodputs, axis=0), *each)


_totals = partial(
    for_each, "{0[curve]}, {0[buffer_mb]} MB", measure=lambda cell: median(_total(cell))
)
_TRANSFER = at(TRANSFER, REJOINS, SLIDES_MB)
_TWO_TEN = at.every(TWO_TEN, SESSIONS, TWO_TEN_MB)
_ENOUGH = [cell for cell in _BUFFERS if float(cell["buffer_mb"]) >= MIN_BUFFER_MB]
_BALANCED = {mss: at(BALANCING, f"MSS {mss}", buffer) for mss, buffer in MSS_BUFFER_MB.items()}
_LEAST_MB = BUFFERS_MB[0]
_ON_TEN = share("ten")
_BOTH = ("one", "two")
_FIRST, _SECOND = (GOODPUT.values(_TWO_TEN[1], connection=name) for name in ("main", "second"))

CLAIMS = {
    "E9.lan-throughput": claim(
        _totals(_ENOUGH, group=f"goodput at every buffer from the rule's {MIN_BUFFER_MB:g} MB on"),
        needs=carried(_BOTH, at(THROUGHPUT, LIA, SLIDES_MB)),
    ),
    "E9.lan-needs-buffer": claim(
        Quantity(f"goodput with {_LEAST_MB} MB", median(_total(at(THROUGHPUT, LIA, _LEAST_MB))))
    ),
    "E9.lan-robustness": claim(
        Quantity(
            "time from DOWN to one link ± 10 %, worst seed",
            _settling_s(REJOINS, (0, 2), 0.9 * LINK_MBPS, 1.1 * LINK_MBPS),
            "DOWN",
        ),
        Quantity(
            "time from UP to 90 % of the sum, worst seed",
            _settling_s(REJOINS, (1, 3), 0.9 * SUM_MBPS),
            "UP",
        ),
        needs=carried(_BOTH, at(ROBUSTNESS, REJOINS, SLIDES_MB)),
    ),
    "E9.lan-stuck-subflow": claim(
        (
            Quantity(f"throughput after UP number {number}", median(_phase_mbps(STAYS_AWAY, event)))
            for number, event in ((1, 1), (2, 3))
        ),
        needs=carried(_BOTH, at(ROBUSTNESS, STAYS_AWAY, SLIDES_MB)),
    ),
    "E9.lan-nothing-lost": claim(
        Quantity("transfers completed", COMPLETED.mean(_TRANSFER)),
        Quantity(
            "bytes delivered, worst seed",
            smallest(
                derived(
                    lambda count: count / (TRANSFER_MB * 1e6) * 100, DELIVERED.values(_TRANSFER)
                )
            ),
        ),
        needs=carried(_BOTH, _TRANSFER),
    ),
    "E9.lan-balancing": claim(
        for_each(
            "share of the bytes over 10 Gbit/s, MSS {}, {[buffer_mb]} MB",
            _BALANCED.items(),
            lambda _, cell: _ON_TEN.median(cell),
        ),
        needs=carried(_BOTH, _BALANCED[LARGE_MSS]),
    ),
    "E9.lan-two-graphs": claim(
        Quantity(
            f"largest − smallest share of the bytes over 10 Gbit/s among seeds, MSS {SMALL_MSS}",
            estimate(np.ptp, _ON_TEN.values(_BALANCED[SMALL_MSS])),
        ),
        needs=carried(_BOTH, _BALANCED[SMALL_MSS]),
    ),
    "E9.lan-two-ten": claim(
        _totals(_TWO_TEN, group="goodput of one session and of two sessions", bound="sum"),
        Quantity("share of the first of two sessions", median(part_of(_FIRST, _SECOND)), "share"),
        needs=carried(_BOTH, _TWO_TEN[0] | {"connection": "main"}),
    ),
}


def _flapping_over_time(arm: str) -> Draw:
    """The throughput of each link, stacked, and the throughput in theory."""

    def draw(results: Results, axes: Axes) -> None:
        rows = results.rows("samples", test=ROBUSTNESS, curve=arm, seed=1).drop_nulls("subflow")
        if rows.is_empty():
            raise NothingMeasured(f"no time series of {arm}")
        bin_s = 0.5
        delivered = (
            rows.sort("time_ns")
            .with_columns(
                new=pl.col("subflow_bytes_received").diff().over("subflow"),
                bin=(pl.col("time_ns") - 1) // round(bin_s * 1e9),
            )
            .pivot("path_name", index="bin", values="new", aggregate_function="sum")
            .sort("bin")
            .fill_null(0)
        )
        seconds = (delivered["bin"].to_numpy() + 0.5) * bin_s
        rates = [delivered[name].to_numpy() * 8 / 1e6 / bin_s for name in ("two", "one")]
        colours = [COLOURS[name] for name in ("two", "one")]
        axes.stackplot(seconds, *rates, colors=colours, alpha=0.8, labels=["path two", "path one"])
        times = [0.0, *_events(results), float(seconds[-1])]
        theory = [SUM_MBPS, LINK_MBPS, SUM_MBPS, LINK_MBPS, SUM_MBPS, SUM_MBPS]
        axes.step(
            times, theory, where="post", color=BLACK, linestyle=(0, (4, 1.5)),
            linewidth=1.1, label="in theory",
        )  # fmt: skip
        axes.set(xlabel="time (s)", ylabel="throughput (Mbit/s)")
        axes.set_ylim(0, 1.15 * SUM_MBPS)
        shade(axes, settings_in(results.scenarios[rows["cell"][0]]), COLOURS)

    return draw


def _measured_words(results: Results) -> dict[str, object]:
    shares = [_ON_TEN.values(cell)(results) for cell in _BALANCED.values()]
    spread = "; ".join(f"{share.min():.1f} to {share.max():.1f} %" for share in shares)
    silent = _settling_s(SILENT, (1, 3), 0.9 * SUM_MBPS)(results).text("s")
    limits = veerman12.limited(results, _BUFFERS)
    recovery = veerman12.recovery_s(2, 1, RTT_MS, SMALL_MSS)
    return {"limits": limits, "recovery": recovery, "silent": silent, "spread": spread}


PANELS = {
    "Buffers, 1 + 1 Gbit/s": veerman12.over_buffers(
        {LIA: ({"test": THROUGHPUT}, Style(BLUE))},
        MIN_BUFFER_MB,
        8,
        {SUM_MBPS: "sum of the rates", LINK_MBPS: "one link"},
    ),
    **{f"Interfaces down and up: {arm}": _flapping_over_time(arm) for arm in ARMS},
    "Balancing, 1 + 1 + 10 Gbit/s": veerman12.draw_paths(
        {f"MSS {mss}, {cell['buffer_mb']:g} MB": cell for mss, cell in _BALANCED.items()}, COLOURS
    ),
    "2 × 10 Gbit/s, 20 MB, MSS 8900": veerman12.draw_paths(
        {
            words: at(TWO_TEN, curve, TWO_TEN_MB) | {"connection_name": name}
            for words, curve, name in (
                ("one session", "one session", "main"),
                ("two: first", "two sessions", "main"),
                ("two: second", "two sessions", "second"),
            )
        },
        {name: COLOURS[name] for name in _BOTH},
    ),
}

EXPERIMENT = Experiment(
    words={"scale": veerman12.SCALE, "transfer_mb": TRANSFER_MB, "up_s": UP_S},
    design=cells,
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview(
        "test; curve; buffer_mb: buffer of the slides (MB); connection: session",
        "one",
        (GOODPUT, REINJECTIONS),
    ),
    measured_words=_measured_words,
)
