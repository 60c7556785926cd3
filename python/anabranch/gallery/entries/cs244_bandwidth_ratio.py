"""CS244 2015, Figures 2 to 4: the delay figure of NSDI 2012 with faster WiFi."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np

from anabranch.gallery import panels
from anabranch.gallery.claims import Needs, Quantity, Unnamed, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.measures import by_seed, mean, ratio_of_ratios
from anabranch.gallery.metrics import GOODPUT, MEAN, MEAN_OF_BLOCK, P50, P95, P99, share
from anabranch.gallery.shared import wifi_3g
from anabranch.gallery.shared.wifi_3g import MPTCP, MPTCP_M12, TCP_WIFI
from anabranch.reports import figures
from anabranch.results.claims import Measure
from anabranch.results.estimates import Sample
from anabranch.results.folder import Results
from anabranch.words import listed

RATES_MBPS = (8, 16, 32, 64)


@dataclass(frozen=True)
class ExperimentSetting:
    """A setting of what the source leaves open."""

    words: str
    queue: str
    """WiFi's queue."""
    queue_from: str = ""
    """The source of the queue, if it is not the source of the rest."""
    receive: str = "200KiB"
    as_requested: bool = False
    """Whether buffers are sizes that a program requests from Linux, not windows."""


SETTINGS = {
    "54p": ExperimentSetting("a queue of 54 packets", "54packets"),
    "80ms": ExperimentSetting("a queue of 80 ms", "80ms", "; queue: this project"),
    "32KiB": ExperimentSetting(
        "a queue of 54 packets and 32 KiB requested from Linux",
        "54packets",
        receive="32KiB",
        as_requested=True,
    ),
}
"""The settings, by the tag of their claims."""
CURVES = (TCP_WIFI, MPTCP, MPTCP_M12)
CURVES_WITH_2012 = (*CURVES, wifi_3g.MPTCP_M12_NSDI)
DRAWN = "54p"
"""The setting whose distributions are drawn; it also has the penalisation of 2012."""

SEND_BUFFER = "200KiB"

at = Factors("curve", "wifi_mbps", "setting")


def _curves(setting: str) -> tuple[str, ...]:
    return CURVES_WITH_2012 if setting == DRAWN else CURVES


def _cell(tier: Tier, curve: str, rate: int, tag: str) -> Cell:
    setting = SETTINGS[tag]
    wifi = dataclasses.replace(wifi_3g.WIFI, rate=f"{rate}Mbit/s", limit=setting.queue)
    main = wifi_3g.connection(curve, SEND_BUFFER, setting.receive)
    return tier.cell(
        at(curve, rate, tag),
        (wifi, dataclasses.replace(wifi_3g.THREE_G, jitter="50ms", jitter_model="fifo")),
        wifi_3g.as_requested(main) if setting.as_requested else main,
        words=(curve, f"{rate}mbps", tag),
        name=f"{curve}, WiFi {rate} Mbit/s, {setting.words}",
        keep_blocks=tag == DRAWN,
    )


def _tails(results: Results, setting: str) -> Sample:
    """The p99 of MPTCP with both mechanisms, by WiFi rate and seed."""
    cells = (at(MPTCP_M12, rate, setting) for rate in RATES_MBPS)
    return np.array([P99.values(cell)(results) for cell in cells])


@by_seed
def _tail_grows(results: Results, setting: str) -> Sample:
    """Rank correlation of WiFi's rate with the p99."""
    from scipy.stats import spearmanr  # the import takes most of a second

    tails = _tails(results, setting)
    return np.asarray(np.nan_to_num([spearmanr(RATES_MBPS, tail)[0] for tail in tails.T]))


def _tail(setting: str) -> Quantity:
    words = "rank correlation of WiFi's rate with p99(M1,2)"

    def describe(results: Results) -> str:
        medians = ", ".join(f"{np.median(tail):.0f}" for tail in _tails(results, setting))
        return f"{words} ({medians} ms)"

    return Quantity(words, mean(_tail_grows(setting)), describe=describe)


def _means(above: str, below: str, rate: int, setting: str) -> Measure:
    return MEAN.ratio(at(above, rate, setting), at(below, rate, setting))


_BOTH = (MPTCP, MPTCP_M12)


def _used(setting: str, curves: Iterable[str], rates: Iterable[int]) -> Needs:
    return wifi_3g.used(*at.every(curves, rates, setting))


def _claims(tag: str) -> dict[str, Unnamed]:
    setting = SETTINGS[tag]
    about = {"setting": setting.words, "queue": setting.queue_from}
    return {
        **{
            f"E1s.1-like-wifi-{rate}-{tag}": claim(
                Quantity("mean(M1,2) / mean(TCP WiFi)", _means(MPTCP_M12, TCP_WIFI, rate, tag)),
                needs=_used(tag, (MPTCP_M12,), (rate,)),
                row="E1s.1-like-wifi",
                rate=rate,
                **about,
            )
            for rate in RATES_MBPS
        },
        **{
            f"E1s.2-regular-slower-{rate}-{tag}": claim(
                Quantity("mean(regular) / mean(M1,2)", _means(MPTCP, MPTCP_M12, rate, tag)),
                Quantity("mean(regular) / mean(TCP WiFi)", _means(MPTCP, TCP_WIFI, rate, tag)),
                needs=_used(tag, _BOTH, (rate,)),
                row="E1s.2-regular-slower",
                rate=rate,
                **about,
            )
            for rate in RATES_MBPS
        },
        f"E1s.3-heavier-tail-{tag}": claim(
            _tail(tag),
            needs=_used(tag, (MPTCP_M12,), RATES_MBPS),
            row="E1s.3-heavier-tail",
            **about,
        ),
        f"E1s.4-peaks-similar-{tag}": claim(
            for_each(
                f"change of the median of {{}} from {RATES_MBPS[0]} to {{}} Mbit/s",
                product(_BOTH, RATES_MBPS[1:]),
                lambda curve, rate: P50.distance(
                    at(curve, rate, tag), at(curve, RATES_MBPS[0], tag)
                ),
                f"change of the median from {RATES_MBPS[0]} Mbit/s on, without and with the "
                "mechanisms",
            ),
            needs=_used(tag, _BOTH, RATES_MBPS),
            row="E1s.4-peaks-similar",
            **about,
        ),
        f"E1s.5-less-effective-{tag}": claim(
            Quantity(
                f"mean(regular) / mean(M1,2), at {RATES_MBPS[-1]} Mbit/s / at {RATES_MBPS[0]}",
                ratio_of_ratios(
                    *(
                        MEAN.values(at(curve, rate, tag))
                        for rate in (RATES_MBPS[-1], RATES_MBPS[0])
                        for curve in _BOTH
                    )
                ),
            ),
            needs=_used(tag, _BOTH, (RATES_MBPS[0], RATES_MBPS[-1])),
            row="E1s.5-less-effective",
            **about,
        ),
    }


def _mean_over_rate(setting: str) -> panels.Draw:
    curves = panels.curves(wifi_3g.STYLES, *_curves(setting), setting=setting)
    x = "WiFi rate (Mbit/s)"
    return panels.over("wifi_mbps", MEAN_OF_BLOCK, curves, x, ticks=RATES_MBPS, log=True)


def _measured_words(results: Results) -> dict[str, object]:
    def factor(curve: str, rate: int) -> str:
        return f"{_means(curve, TCP_WIFI, rate, DRAWN)(results).value:.2f}"

    def on_3g(curve: str, rate: int, setting: str) -> str:
        return f"{share('3g').number(results, at(curve, rate, setting)):.2f} %"

    faster = RATES_MBPS[1:]
    return {
        "rates": listed(RATES_MBPS),
        "faster": listed(faster),
        "ratios": listed(factor(MPTCP_M12, rate) for rate in faster),
        "ratios_2012": listed(factor(wifi_3g.MPTCP_M12_NSDI, rate) for rate in faster),
        "packets": listed(on_3g(MPTCP_M12, rate, "54p") for rate in faster),
        "time": listed(on_3g(MPTCP_M12, rate, "80ms") for rate in faster),
        "asked": listed(on_3g(MPTCP_M12, rate, "32KiB") for rate in RATES_MBPS),
        "asked_without": listed(on_3g(MPTCP, rate, "32KiB") for rate in RATES_MBPS),
    }


PANELS = {
    **{
        f"WiFi {rate} Mbit/s: tail (CCDF)": panels.distribution(
            figures.ccdf,
            {c: (at(c, rate, DRAWN), wifi_3g.STYLES[c]) for c in CURVES_WITH_2012},
            1000,
        )
        for rate in RATES_MBPS
    },
    "Mean delay, queue 54 packets": _mean_over_rate("54p"),
    "Mean delay, queue 80 ms": _mean_over_rate("80ms"),
    "Mean delay, 32 KiB requested from Linux": _mean_over_rate("32KiB"),
}

EXPERIMENT = Experiment(
    design=joined(
        *(grid(_cell, tag=(tag,), rate=RATES_MBPS, curve=_curves(tag)) for tag in SETTINGS)
    ),
    named_claims={name: each for tag in SETTINGS for name, each in _claims(tag).items()},
    drawings=PANELS,
    overview=Overview(
        "curve; wifi_mbps: WiFi (Mbit/s); setting", "3g", (GOODPUT, MEAN, P50, P95, P99)
    ),
    measured_words=_measured_words,
)
