"""RFC 8382: detection of subflows that share a bottleneck."""

from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim
from anabranch.gallery.entry import Cell, Experiment, Overview, Tier
from anabranch.gallery.measures import Values, derived, mean, median, of_means, part_of
from anabranch.gallery.metrics import COUPLED, GOODPUT
from anabranch.gallery.shared.connections import access, flow, network_path
from anabranch.gallery.shared.two_path_design import at, both_used, by_setting
from anabranch.reports.figures import BLUE, ORANGE, Style
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import (
    CrossTraffic,
    Distribution,
    NetworkPath,
    SharedBottleneckDetection,
)
from anabranch.sweeps import design
from anabranch.sweeps.design import Range

SHARED, DISJOINT = "one bottleneck", "two bottlenecks"
LIA, DETECTION = "LIA", "LIA + detection"
STYLES = {LIA: Style(BLUE), DETECTION: Style(ORANGE, "D..")}
COUNTS = {"quick": 30, "full": 100}
DESIGN_SEED = 8382
SOURCES = 8
"""UDP sources at each bottleneck. Each source is on for half of the time."""

_RATE_MBPS = Range(4, 40, "log")
_DELAY_MS = Range(5, 60)
_QUEUE_MS = Range(50, 200)
_LOAD = Range(0.60, 0.95)


@dataclass(frozen=True)
class Bottleneck:
    """A link and its cross-traffic."""

    rate_mbps: float
    delay_ms: float
    queue_ms: float
    load: float

    def path(self, name: str) -> NetworkPath:
        """The link as a path of a scenario."""
        rate = f"{self.rate_mbps:.3f}Mbit/s"
        return network_path(name, rate, f"{self.delay_ms:.3f}ms", f"{self.queue_ms:.3f}ms")

    def traffic(self, name: str) -> list[CrossTraffic]:
        """UDP sources whose mean rates add up to the load."""
        period = Distribution(kind="pareto", mean="500ms", shape=1.5)
        rate = f"{2 * self.load * self.rate_mbps / SOURCES:.4f}Mbit/s"
        return [
            CrossTraffic(name=f"{name}-{n}", path=name, rate=rate, on=period, off=period)
            for n in range(SOURCES)
        ]


@cache
def settings(count: int) -> tuple[tuple[Bottleneck, Bottleneck], ...]:
    """`count` pairs of bottlenecks. Subflows that share a bottleneck cross the first of a pair."""
    unit = design.wsp(count, 8, DESIGN_SEED)
    ranges = (_RATE_MBPS, _DELAY_MS, _QUEUE_MS, _LOAD)
    values = np.column_stack([ranges[n % 4].scaled(unit[:, n]) for n in range(8)])
    return tuple(
        (Bottleneck(*map(float, row[:4])), Bottleneck(*map(float, row[4:]))) for row in values
    )


def cells(tier: Tier) -> list[Cell]:
    """Every setting with one and two bottlenecks, without and with detection."""
    return [
        _cell(tier, environment, number, pair, curve)
        for environment in (SHARED, DISJOINT)
        for number, pair in enumerate(settings(COUNTS[tier.name]))
        for curve in STYLES
    ]


def _cell(
    tier: Tier, environment: str, number: int, pair: tuple[Bottleneck, Bottleneck], curve: str
) -> Cell:
    cores = ("core",) if environment == SHARED else ("core", "other")
    last = cores[-1]
    paths = [each.path(name) for each, name in zip(pair, cores, strict=False)]
    ways = {"one": "core", "two": last, "tcp": "core"}
    paths += [access(way, via, "1ms") for way, via in ways.items()]
    detection = SharedBottleneckDetection() if curve == DETECTION else None
    multipath = flow(("one", "two"), shared_bottleneck_detection=detection)
    point = f"{environment} {number:03}"
    return tier.cell(
        at(curve, environment) | {"point": point},
        paths,
        (multipath, flow(("tcp",), name="tcp")),
        words=(curve, point),
        sample_interval="350ms",
        cross_traffic=tuple(
            source for each, name in zip(pair, cores, strict=False) for source in each.traffic(name)
        ),
    )


def verdicts(environment: str) -> Values:
    """By setting, the share of time in which both subflows were coupled."""
    return by_setting(COUPLED, at(DETECTION, environment) | {"connection": "main"})


def _goodputs(curve: str, environment: str, connection: str = "main") -> Values:
    return by_setting(GOODPUT, at(curve, environment) | {"connection": connection})


def tcp_shares(curve: str) -> Values:
    """TCP's share of the total goodput of TCP and Multipath TCP, by setting with one bottleneck."""
    return part_of(_goodputs(curve, SHARED, "tcp"), _goodputs(curve, SHARED))


_RIGHT = {
    SHARED: derived(lambda coupled: 100.0 * (coupled > 0.5), verdicts(SHARED)),
    DISJOINT: derived(lambda coupled: 100.0 * (coupled <= 0.5), verdicts(DISJOINT)),
}
"""100 for each setting with a right verdict, and 0 for the others."""

_ACCURACY = of_means(lambda a, b: (a + b) / 2, *_RIGHT.values(), of="settings")
"""The mean of two shares of right verdicts; a detector that always says the same has 50 %."""

_GAIN = derived(np.divide, _goodputs(DETECTION, DISJOINT), _goodputs(LIA, DISJOINT))
_claim = partial(claim, needs=both_used(DETECTION))

CLAIMS = {
    "E12.a-shared": _claim(
        Quantity(
            "settings in which both subflows were coupled most of the time",
            mean(_RIGHT[SHARED], of="settings"),
        )
    ),
    "E12.b-disjoint": _claim(
        Quantity(
            "settings in which the subflows were coupled at most half of the time",
            mean(_RIGHT[DISJOINT], of="settings"),
        )
    ),
    "E12.e-balanced-accuracy": _claim(
        Quantity(
            "balanced accuracy: mean of the shares of settings with a right verdict", _ACCURACY
        )
    ),
    "E12.c-uncoupled-gains": claim(
        Quantity("median of goodput with detection / always coupled", median(_GAIN, of="settings")),
        needs=both_used(*STYLES),
    ),
    "E12.d-fair": _claim(
        Quantity(
            "median share of TCP, one bottleneck", median(tcp_shares(DETECTION), of="settings")
        )
    ),
}


_VERDICTS = {
    environment: (derived(lambda coupled: coupled * 100, verdicts(environment)), style)
    for environment, style in zip((SHARED, DISJOINT), STYLES.values(), strict=True)
}


def _goodput(environment: str, connection: str) -> panels.Draw:
    drawn = {
        curve: (_goodputs(curve, environment, connection), style) for curve, style in STYLES.items()
    }
    return panels.settings(drawn, GOODPUT.heading, {}, xlog=True)


def _measured_words(results: Results) -> dict[str, object]:
    shared, disjoint = (100 * np.mean(verdicts(each)(results)) for each in (SHARED, DISJOINT))
    shares = [f"{curve} {np.median(tcp_shares(curve)(results)):.2f}" for curve in STYLES]
    return {"shared": shared, "disjoint": disjoint, "shares": ", ".join(shares)}


PANELS = {
    "Verdicts": panels.settings(
        _VERDICTS, "time in which both are coupled (%)", {50: ""}, span=(0, 100)
    ),
    "Two bottlenecks: Multipath TCP": _goodput(DISJOINT, "main"),
    "One bottleneck: TCP next to Multipath TCP": _goodput(SHARED, "tcp"),
}

EXPERIMENT = Experiment(
    words={"design_seed": DESIGN_SEED},
    design=cells,
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("environment; curve; connection", "two", (GOODPUT, COUPLED)),
    measured_words=_measured_words,
)
