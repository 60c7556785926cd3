"""Paasch, Ferlin, Alay, Bonaventure, CSWS 2014: schedulers with an application-limited source."""

import numpy as np

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim, for_each
from anabranch.gallery.entries.csws14_schedulers_bulk import BM, LOW_RTT, RP, RR, SETTINGS, STYLES
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier
from anabranch.gallery.measures import by_seed, derived, distance, mean, median, ratio
from anabranch.gallery.metrics import JITTER, MEAN, P95
from anabranch.gallery.shared import two_path_design
from anabranch.gallery.shared.connections import flow, network_path
from anabranch.gallery.shared.two_path_design import HIGH, Point, by_setting
from anabranch.results.claims import Measure
from anabranch.results.estimates import Sample
from anabranch.results.folder import Results
from anabranch.scenarios.quantities import nanoseconds
from anabranch.scenarios.scenario import Cbr

RATES_KBPS = (500, 1875)
JUDGED_KBPS = 500
COUNTS = {"quick": 40, "full": 200}
BLOCK_BYTES = 8192
ROOM = 1.5
"""The sum of a setting's capacities is at least this multiple of the application's rate."""

WIFI_3G = "WLAN + 3G"
_WLAN = network_path("one", "8Mbit/s", "10ms", "54packets", jitter="1ms")
_RTTS_3G_MS = (75, 100, 125, 150)

at = Factors("curve", "environment", "rate_kbps")
"""The factors that name a curve at a rate in an environment."""


def wifi_3g_points() -> tuple[Point, ...]:
    """WLAN next to 3G, with several round-trip times of 3G and a deep queue."""

    def point(rtt_ms: int) -> Point:
        three_g = network_path("two", "2Mbit/s", f"{rtt_ms / 2}ms", "2s", jitter="5ms")
        return Point(WIFI_3G, rtt_ms, (_WLAN, three_g), (8.0, 2.0))

    return tuple(map(point, _RTTS_3G_MS))


def cells(tier: Tier) -> list[Cell]:
    """Every setting with enough capacity for the rate, at every rate, with every scheduler."""
    settings = (*two_path_design.points(HIGH, COUNTS[tier.name]), *wifi_3g_points())
    return [
        _cell(tier, point, rate, curve)
        for point in settings
        for rate in RATES_KBPS
        if sum(point.capacities_mbps) * 1e3 >= ROOM * rate
        for curve in STYLES
    ]


def _cell(tier: Tier, point: Point, rate_kbps: int, curve: str) -> Cell:
    workload = Cbr(rate=f"{rate_kbps}kbit/s", block_size=f"{BLOCK_BYTES}B")
    return tier.cell(
        at(curve, point.environment, rate_kbps) | {"point": point.name},
        point.paths,
        flow(buffers="2MB", workload=workload, **SETTINGS[curve]),
        words=(curve, point.name, str(rate_kbps)),
        name=f"{curve}, {point.name}, {rate_kbps} kbit/s",
    )


def lowest_delay_ms(point: Point) -> float:
    """The least time in ms in which both paths together can carry one block through empty queues.

    At time t after the block is written, path i can have delivered C_i · (t − d_i) bytes, where
    C_i is its capacity and d_i its one-way delay. Headers are ignored.
    """
    bits = BLOCK_BYTES * 8
    ways = sorted(
        (nanoseconds(path.delay) / 1e6, mbps * 1e3)
        for path, mbps in zip(point.paths, point.capacities_mbps, strict=True)
    )
    (near, near_rate), (far, far_rate) = ways
    alone = near + bits / near_rate
    if alone <= far:
        return alone
    return (bits + near_rate * near + far_rate * far) / (near_rate + far_rate)


@by_seed
def increases(results: Results, curve: str, rate_kbps: int = JUDGED_KBPS) -> Sample:
    """By high-BDP setting, the increase of the mean delay over the lowest possible delay, in %."""
    measured = two_path_design.medians(results, MEAN.column, **at(curve, HIGH, rate_kbps))
    lowest = {
        point.name: lowest_delay_ms(point)
        for point in two_path_design.points(HIGH, _count(results))
    }
    return np.array([(measured[name] / lowest[name] - 1) * 100 for name in measured])


def _count(results: Results) -> int:
    used = results.rows("runs", environment=HIGH)["point"].n_unique()
    return min(count for count in COUNTS.values() if count >= used)


def _between(curve: str, low: float, high: float = np.inf) -> Measure:
    """The share of the settings whose increase is above `low` and at most `high`, in per cent."""
    inside = derived(lambda found: 100.0 * ((found > low) & (found <= high)), increases(curve))
    return mean(inside, of="settings")


def _above_double(curve: str, bound: str = "") -> Quantity:
    words = f"settings in which {curve} more than doubles the lowest possible delay"
    return Quantity(words, _between(curve, 100), bound)


_DELAYS = {curve: by_setting(MEAN, at(curve, HIGH, JUDGED_KBPS)) for curve in STYLES}
_JITTERS = {curve: by_setting(JITTER, at(curve, WIFI_3G, JUDGED_KBPS)) for curve in STYLES}

CLAIMS = {
    "E5.3a-rr-tail": claim(_above_double(RR), needs=two_path_design.both_used(RR)),
    "E5.3b-low-rtt-near-lowest": claim(
        _above_double(LOW_RTT, "doubled"),
        Quantity(
            "median increase with LowRTT", median(increases(LOW_RTT), of="settings"), "median"
        ),
    ),
    "E5.4-remedies-alike": claim(
        for_each(
            "|median delay, {} / LowRTT − 1|",
            (RP, BM),
            lambda curve: distance(_DELAYS[curve], _DELAYS[LOW_RTT], of="settings"),
        )
    ),
    "E5.5-rr-jitter": claim(
        Quantity("p95 jitter, RR / LowRTT", ratio(_JITTERS[RR], _JITTERS[LOW_RTT], of="settings")),
        needs=two_path_design.both_used(RR),
    ),
}


def _increases_at(rate_kbps: int) -> panels.Draw:
    drawn = {
        curve: (derived(lambda found: np.maximum(found, 1), increases(curve, rate_kbps)), style)
        for curve, style in STYLES.items()
    }
    x = "increase of the mean delay (%)"
    return panels.settings(drawn, x, {100: "twice"}, ticks=(1, 10, 100, 1000, 10_000))


_CLASSES = {
    "below 10 %": (-np.inf, 10.0),
    "10 to 100 %": (10.0, 100.0),
    "100 to 1500 %": (100.0, 1500.0),
    "above": (1500.0, np.inf),
}
"""Increases of the delay that CSWS'14 counts, with the ends of each class in per cent."""
_CSWS14 = {LOW_RTT: (None, 70, None, None), RR: (None, None, 40, None)}
"""CSWS'14: settings in a class, in per cent (second-hand)."""


def _draw_jitter(results: Results, axes: panels.Axes) -> None:
    for index, (curve, style) in enumerate(STYLES.items()):
        for group, rate in enumerate(RATES_KBPS):
            values = by_setting(JITTER, at(curve, WIFI_3G, rate))(results)
            centre = group + (index - (len(STYLES) - 1) / 2) * 0.8 / len(STYLES)
            axes.plot(
                [centre] * len(values), values, linestyle="none", marker=style.marker,
                markersize=5, color=style.colour, label=curve if group == 0 else None,
            )  # fmt: skip
    axes.set_xticks(range(len(RATES_KBPS)), [f"{rate} kbit/s" for rate in RATES_KBPS])
    axes.set_xlim(-0.5, len(RATES_KBPS) - 0.5)
    panels.dress(axes, {}, y="95th percentile of the jitter (ms)")


def _measured_words(results: Results) -> dict[str, object]:
    words = []
    for rate in RATES_KBPS:
        found = {curve: increases(curve, rate)(results) for curve in STYLES}
        each = [
            f"{curve} {np.median(values):.0f} % "
            f"(above 100 % in {np.mean(values > 100):.0%} of the settings)"
            for curve, values in found.items()
        ]
        words.append(f"{rate} kbit/s, median increase: {', '.join(each)}.")
    return {"increases": " ".join(words)}


PANELS = {
    **{f"High-BDP settings, {rate} kbit/s": _increases_at(rate) for rate in RATES_KBPS},
    f"Settings by increase, {JUDGED_KBPS} kbit/s": panels.bars(
        _CLASSES,
        lambda curve, ends: _between(curve, *ends),
        STYLES,
        "share of the settings (%)",
        _CSWS14,
        "increase of the mean delay",
        top=105,
    ),
    "WLAN and 3G": _draw_jitter,
}

EXPERIMENT = Experiment(
    words={"design_seed": two_path_design.DESIGN_SEED, "kbps": JUDGED_KBPS},
    design=cells,
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview(
        "environment; rate_kbps: rate (kbit/s); curve: scheduler",
        "two",
        (MEAN, P95.called("p95 delay"), JITTER),
    ),
    measured_words=_measured_words,
)
