"""NSDI 2012, Figure 7: delay of 8 KiB blocks over WiFi, 3G, and both."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

from anabranch.gallery import metrics, panels
from anabranch.gallery.claims import Quantity, Unnamed, all_of, claim
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier
from anabranch.gallery.measures import derived, median, ratio_of_ratios
from anabranch.gallery.metrics import GOODPUT, MEAN, P95, WINDOW_LIMITED, share
from anabranch.gallery.shared import wifi_3g
from anabranch.gallery.shared.wifi_3g import MPTCP, MPTCP_M12, MPTCP_M12_NSDI, TCP_WIFI, used
from anabranch.reports import figures
from anabranch.results.estimates import number
from anabranch.results.folder import Factor, Results
from anabranch.results.metrics import expected_delay_ms
from anabranch.scenarios.classes import JitterOrder

CURVES = (TCP_WIFI, wifi_3g.TCP_3G, MPTCP, MPTCP_M12)
RECEIVE_KIB = (32, 64, 100, 200, 400, 1000)
JUDGED_KIB = 200
WINDOW_KIB = 100
"""The buffer below the send buffer, so that the receive window and not the send buffer limits."""
CONTROL = "6000kB"
ASKED = ("32KiB", CONTROL)
"""Receive buffers as CS244'15 requested them from Linux: its own, and one that hides the effect."""
JITTER = "50ms"
_REQUESTED = " requested"
SEND_BUFFER = 200 * 1024
REVERSE_DELAY_MS = {TCP_WIFI: 10.0, wifi_3g.TCP_3G: 75.0}

_factors = Factors("curve", "send", "receive", jitter_model="fifo")


def at(curve: str, receive_kib: int = JUDGED_KIB, jitter_model: str = "fifo") -> dict[str, Factor]:
    """The factors of a cell with a send buffer of 200 KiB."""
    return _factors(curve, "200KiB", f"{receive_kib}KiB", jitter_model)


def control(curve: str) -> dict[str, Factor]:
    """The factors of a cell of the negative control."""
    return _factors(curve, CONTROL, CONTROL)


def asked(curve: str, receive: str = ASKED[0]) -> dict[str, Factor]:
    """The factors of a cell whose buffers are sizes that a program requests from Linux."""
    return _factors(curve, f"200KiB{_REQUESTED}", f"{receive}{_REQUESTED}")


_DELAYS: panels.Curves = {
    curve: (at(curve), wifi_3g.STYLES[curve]) for curve in (*CURVES, MPTCP_M12_NSDI)
}
"""The cells whose delays are drawn."""


def cells(tier: Tier) -> list[Cell]:
    """The judged buffers, the sweep of the receive buffer, both jitter models, the control."""
    factors = [
        *(at(curve, kib) for kib in RECEIVE_KIB for curve in CURVES),
        at(MPTCP_M12_NSDI),
        *(at(curve, jitter_model="reordering") for curve in CURVES[1:]),
        *map(control, CURVES),
        *(asked(curve, receive) for receive in ASKED for curve in CURVES),
    ]
    return [_cell(tier, each) for each in factors]


def _cell(tier: Tier, factors: dict[str, Factor]) -> Cell:
    curve, send, receive, model = map(str, factors.values())
    order: JitterOrder = "reordering" if model == "reordering" else "fifo"
    three_g = dataclasses.replace(wifi_3g.THREE_G, jitter=JITTER, jitter_model=order)
    send_size, receive_size = (size.removesuffix(_REQUESTED) for size in (send, receive))
    main = wifi_3g.connection(curve, send_size, receive_size)
    is_size = receive.endswith("KiB")
    return tier.cell(
        factors | ({"receive_kib": float(receive.removesuffix("KiB"))} if is_size else {}),
        (wifi_3g.WIFI, three_g),
        wifi_3g.as_requested(main) if send.endswith(_REQUESTED) else main,
        words=(curve, send, receive, model),
        name=f"{curve}, send {send}, receive {receive}, {model} jitter",
        keep_blocks=factors in [cell for cell, _ in _DELAYS.values()],
    )


_Cells = Callable[[str], dict[str, Factor]]
"""The factors of each curve's cell."""


_FROM_LAW = "deviation of the mean delay from send buffer / goodput − reverse one-way delay"


def _little(curve: str) -> Quantity:
    """Deviation of the mean block delay from that by Little's law, in per cent."""
    measured, reverse_ms = MEAN.values(at(curve)), REVERSE_DELAY_MS[curve]
    expected = derived(
        lambda mbps: expected_delay_ms(SEND_BUFFER, mbps, reverse_ms), GOODPUT.values(at(curve))
    )
    deviation = derived(lambda mean, law: abs(mean / law - 1) * 100, measured, expected)

    def describe(results: Results) -> str:
        mean, by_law = (median(of)(results).text("ms") for of in (measured, expected))
        return f"{curve}: mean delay {mean}, expected {by_law}, deviation"

    group = f"TCP over either path: {_FROM_LAW}"
    return Quantity(f"{curve}: {_FROM_LAW}", median(deviation), group=group, describe=describe)


def _control(small: str, one: _Cells, large: str, other: _Cells, of: str) -> Quantity:
    """The effect of the mechanisms with small buffers over the effect with large buffers."""
    cells = [cell(curve) for cell in (one, other) for curve in (MPTCP, MPTCP_M12)]

    def describe(results: Results) -> str:
        a, b, c, d = (MEAN.number(results, cell) for cell in cells)
        ratios = f"{number(a / b)} at {small}, {number(c / d)} at {large}"
        return f"mean(regular) / mean(M1,2): {ratios}; ratio of the two"

    return Quantity(
        f"mean(regular) / mean(M1,2) at {small}, over the same ratio at {large} {of}",
        ratio_of_ratios(*map(MEAN.values, cells)),
        describe=describe,
    )


def _claims_about(remedied: str, suffix: str = "", cell: _Cells = at) -> dict[str, Unnamed]:
    """The claims about MPTCP with both mechanisms, for one form of penalisation or of buffers."""
    m12, regular, wifi = cell(remedied), cell(MPTCP), cell(TCP_WIFI)
    return {
        f"E1.2-m12-like-wifi{suffix}": claim(
            Quantity("mean(M1,2) / mean(TCP WiFi)", MEAN.ratio(m12, wifi), "mean"),
            Quantity("p95(M1,2) / p95(TCP WiFi)", P95.ratio(m12, wifi), "p95"),
            needs=used(m12),
        ),
        f"E1.3-m12-beats-regular{suffix}": claim(
            Quantity("mean(regular) / mean(M1,2)", MEAN.ratio(regular, m12)),
            Quantity("p95(regular) / p95(M1,2)", P95.ratio(regular, m12)),
            Quantity("IQR(regular) / IQR(M1,2)", metrics.IQR.ratio(regular, m12), "IQR"),
            needs=used(regular, m12),
        ),
    }


_LARGE = "6000 kB"
_REGULAR, _REMEDIED, _WIFI = (at(each, WINDOW_KIB) for each in (MPTCP, MPTCP_M12, TCP_WIFI))

CLAIMS = {
    "E1.1-3g-slower": claim(
        Quantity("mean(TCP 3G) / mean(TCP WiFi)", MEAN.ratio(at(wifi_3g.TCP_3G), at(TCP_WIFI)))
    ),
    **_claims_about(MPTCP_M12),
    "E1.4-littles-law": claim(map(_little, REVERSE_DELAY_MS)),
    "E1.5-both-paths-used": claim(
        Quantity(f"{curve}: 3G's share of the bytes", share("3g").median(at(curve)))
        for curve in (MPTCP, MPTCP_M12)
    ),
    "E1.6-control": claim(
        _control("200 KiB", at, _LARGE, control, "in both buffers"),
        needs=used(at(MPTCP), at(MPTCP_M12)),
    ),
    **_claims_about(MPTCP_M12_NSDI, "-2012"),
    "E1.7-regular-slower-than-wifi": claim(
        Quantity("mean(regular) / mean(TCP WiFi)", MEAN.ratio(at(MPTCP), at(TCP_WIFI))),
        Quantity(
            "mean(regular) / mean(TCP WiFi), 32 KiB requested from Linux",
            MEAN.ratio(asked(MPTCP), asked(TCP_WIFI)),
        ),
        needs=all_of(used(at(MPTCP)), used(asked(MPTCP))),
    ),
    "E1.8-window-full": claim(
        Quantity(
            "share of the time in which the window stops the sender, regular",
            WINDOW_LIMITED.median(_REGULAR),
        ),
        Quantity("goodput(regular) / goodput(TCP WiFi)", GOODPUT.ratio(_REGULAR, _WIFI), "less"),
        Quantity(
            "the same share of the time, M1,2 / regular",
            WINDOW_LIMITED.ratio(_REMEDIED, _REGULAR),
            "less",
        ),
        needs=used(_REGULAR, _REMEDIED),
    ),
    **_claims_about(MPTCP_M12, "-32KiB", asked),
    "E1.6-control-receive": claim(
        _control("32 KiB", asked, _LARGE, partial(asked, receive=CONTROL), "of receive buffer"),
        needs=used(asked(MPTCP), asked(MPTCP_M12)),
    ),
}


def _sweep(metric: metrics.Metric, *drawn: str, **look: Any) -> panels.Draw:
    """A metric over the receive buffer."""
    curves = panels.curves(wifi_3g.STYLES, *drawn or CURVES, send="200KiB", jitter_model="fifo")
    words = "receive buffer (KiB); claims are judged at 200"
    look |= {"ticks": RECEIVE_KIB, "uprights": (JUDGED_KIB,)}
    return panels.over("receive_kib", metric, curves, words, **look)


def _measured_words(results: Results) -> dict[str, object]:
    return metrics.texts(
        results,
        at,
        on_3g=share("3g"),
        mean=MEAN,
        goodput=GOODPUT,
        p95=P95,
        p99=metrics.P99,
        send_limited=metrics.SEND_BUFFER_LIMITED,
        window_limited=WINDOW_LIMITED,
    )


PANELS = {
    "Delay of a block: CDF": panels.distribution(figures.cdf, _DELAYS),
    "Delay of a block: tail (CCDF)": panels.distribution(figures.ccdf, _DELAYS),
    "Delay of a block: density (PDF)": panels.distribution(figures.pdf, _DELAYS),
    "Mean delay over the receive buffer": _sweep(metrics.MEAN_OF_BLOCK, log=True),
    "Goodput over the receive buffer": _sweep(GOODPUT, top=11, lines={10: "sum of the link rates"}),
    "Share of 3G": _sweep(share("3g", "3G"), MPTCP, MPTCP_M12),
}

EXPERIMENT = Experiment(
    words={"kib": WINDOW_KIB},
    design=cells,
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview(
        "curve; send: send buffer; receive: receive buffer; jitter_model: jitter",
        "3g",
        (GOODPUT, MEAN, metrics.P50, P95, metrics.P99, metrics.IQR),
    ),
    measured_words=_measured_words,
)
