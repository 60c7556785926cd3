"""Peng, Walid, Hwang, Low 2016: BALIA, a balance of TCP-friendliness and responsiveness."""

from dataclasses import replace
from functools import partial
from typing import Any

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim, for_each
from anabranch.gallery.entries import conext12_olia, nsdi11_lia
from anabranch.gallery.entries.conext12_olia import BALIA, LIA, OLIA, STYLES, UNCOUPLED
from anabranch.gallery.entries.nsdi11_lia import RANDOM_LOSS, RED_QUEUE, SUBFLOWS
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.measures import Values, in_words, mean, of_medians
from anabranch.gallery.metrics import GOODPUT
from anabranch.gallery.shared.bottlenecks import all_carried, red
from anabranch.gallery.shared.connections import flow, network_path
from anabranch.results.claims import Measure
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Change, NetworkPath

SCENARIO_C = "scenario C"
IN_SCENARIO_C = {curve: STYLES[curve] for curve in (LIA, BALIA, OLIA)}
ONE_BOTTLENECK = {curve: STYLES[curve] for curve in (BALIA, UNCOUPLED)}

STEP, STEADY = "step of capacity", "steady capacity"
BEFORE_MBPS, AFTER_MBPS = 4, 20
STEP_AT_S = 40
STEP_MEASURED_S = 100
"""The same in both tiers: the slowest algorithm needs most of this time."""
_STEP_TIER = Tier("step", seeds=0, measured_s=STEP_MEASURED_S, warm_up_s=STEP_AT_S)
_PAYLOAD = 1432 / 1500
"""The part of a full packet that is data, without headers, timestamps and a mapping."""

at = Factors("curve", "network")
"""The factors of a cell with a step of capacity or with steady capacity."""

_CORES = (RANDOM_LOSS, RED_QUEUE)


def _scenario_c(tier: Tier) -> list[Cell]:
    return [
        replace(cell, factors={"network": SCENARIO_C, **cell.factors})
        for cell in conext12_olia.cells(tier)
        if cell.factors["curve"] in IN_SCENARIO_C
    ]


def _step(_: Tier, curve: str, network: str) -> Cell:
    """Two paths. The second has less capacity until the step, or equal capacity throughout."""
    change = Change(at=f"{STEP_AT_S}s", rate=f"{AFTER_MBPS}Mbit/s")
    second = (BEFORE_MBPS, change) if network == STEP else (AFTER_MBPS,)
    paths = (_path("one", AFTER_MBPS), _path("two", *second))
    main = flow(control=conext12_olia.CONTROL[curve])
    return _STEP_TIER.cell(at(curve, network), paths, main)


def _path(name: str, mbps: int, *changes: Change) -> NetworkPath:
    """A path with a queue for the larger rate. Jitter makes seeds differ before the first drop."""
    queue = red(AFTER_MBPS * 1e6 * 0.1 / 12_000)
    settings = {"jitter": "1ms", "queue": queue, "changes": changes}
    return network_path(name, f"{mbps}Mbit/s", "50ms", "1000packets", **settings)


def _seconds(steady: Any, stepped: Any) -> Any:
    return (steady - stepped) * STEP_MEASURED_S / ((AFTER_MBPS - BEFORE_MBPS) * _PAYLOAD)


def _goodputs(curve: str) -> list[Values]:
    return [GOODPUT.values(at(curve, network)) for network in (STEADY, STEP)]


def convergence_s(curve: str) -> Measure:
    """Equivalent time in s for which all of the added capacity is unused after the step.

    This is the shortfall in bytes after the step, relative to a run with steady capacity, divided
    by the added capacity.
    """
    return of_medians(_seconds, *_goodputs(curve))


def _later(curve: str, other: str) -> Quantity:
    """Difference between the convergence times of two algorithms."""
    later = of_medians(
        lambda a, b, c, d: _seconds(a, b) - _seconds(c, d), *_goodputs(curve), *_goodputs(other)
    )
    return Quantity(f"convergence time, {curve} − {other}", later)


_claim = partial(claim, needs=all_carried)

CLAIMS = {
    **{
        f"E10.balia-{name}": _claim(nsdi11_lia.mean_shares(BALIA, core, f", {core}"))
        for name, core in (("random-loss", RANDOM_LOSS), ("red", RED_QUEUE))
    },
    "E10.balia-control": _claim(
        for_each(
            "mean share of two uncoupled subflows, {}",
            _CORES,
            lambda core: mean(nsdi11_lia.shares(UNCOUPLED, core, 2)),
        )
    ),
    "E10.balia-responsive": _claim(_later(BALIA, UNCOUPLED), _later(OLIA, BALIA)),
    **{
        f"E10.balia-scenario-c-{other.lower()}": _claim(conext12_olia.leaves_more(more, less))
        for other, more, less in ((LIA, BALIA, LIA), (OLIA, OLIA, BALIA))
    },
}


def _measured_words(results: Results) -> dict[str, object]:
    users = (
        f"{ratio}: {conext12_olia.of_tcp_users(results, ratio, IN_SCENARIO_C)}"
        for ratio in conext12_olia.RATIOS
    )
    return {
        "times": in_words(results, STYLES, convergence_s, "s"),
        "shares": nsdi11_lia.shares_in_words(results, _CORES, ONE_BOTTLENECK),
        "users": "; ".join(users),
    }


PANELS = {
    "A step of capacity": panels.series(
        {
            curve: (at(curve, STEP) | {"path_name": "two"}, "subflow_bytes_received", style)
            for curve, style in STYLES.items()
        },
        "throughput of path two (Mbit/s)",
        "time since the step (s)",
        bin_samples=20,
        zero_s=STEP_AT_S,
        down=True,
        span=(-10, STEP_MEASURED_S),
    ),
    "Convergence time": panels.bars(
        ("step",), lambda curve, _: convergence_s(curve), STYLES, "convergence time (s)"
    ),
    **nsdi11_lia.panels_of_shares(_CORES, ONE_BOTTLENECK),
    **conext12_olia.panels_of_users("Scenario C, ", IN_SCENARIO_C),
}

EXPERIMENT = Experiment(
    words={
        "after_mbps": AFTER_MBPS,
        "before_mbps": BEFORE_MBPS,
        "step_at_s": STEP_AT_S,
        "step_measured_s": STEP_MEASURED_S,
    },
    design=joined(
        grid(nsdi11_lia.next_to_tcp, core=_CORES, count=SUBFLOWS, curve=ONE_BOTTLENECK),
        _scenario_c,
        grid(_step, network=(STEP, STEADY), curve=STYLES),
    ),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview(
        "network; subflows; ratio: multipath users, relative to TCP users; "
        "curve: congestion control",
        "two",
        (GOODPUT.called("goodput of all connections"),),
    ),
    measured_words=_measured_words,
)
