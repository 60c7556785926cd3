"""CS244 2014: how jitter on 3G changes the delay of blocks."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, Unnamed, claim
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.metrics import GOODPUT, MEAN, MEAN_OF_BLOCK, MODE, P50, P99, share
from anabranch.gallery.shared import wifi_3g
from anabranch.gallery.shared.connections import network_path
from anabranch.gallery.shared.wifi_3g import MPTCP, MPTCP_M12, STYLES
from anabranch.reports.figures import BLUE, ORANGE, RED, SKY, pdf, stated
from anabranch.results.claims import Measure
from anabranch.results.folder import Factor, Results
from anabranch.scenarios.classes import JitterOrder

JITTERS_MS = (100, 150, 200, 250)
RECEIVE_KIB = (30, 60, 200)
JUDGED_KIB = (30, 200)
MODELS: tuple[JitterOrder, ...] = ("fifo", "reordering")
WORDS = {"fifo": "order kept", "reordering": "reordering"}
_JITTER_WORDS = {"fifo": "jitter that keeps the order", "reordering": "reordering jitter"}

WIFI = network_path("wifi", "30Mbit/s", "6ms", "1000packets", loss="0.75%")
THREE_G = network_path("3g", "3Mbit/s", "31ms", "1000packets", loss="0.1%")

at = Factors("curve", "receive_kib", "jitter_ms", "jitter_model")


def _cell(tier: Tier, curve: str, kib: int, jitter: int, model: JitterOrder) -> Cell:
    return tier.cell(
        at(curve, kib, jitter, model),
        (WIFI, replace(THREE_G, jitter=f"{jitter}ms", jitter_model=model)),
        wifi_3g.connection(curve, "200KiB", f"{kib}KiB"),
        words=(curve, f"{kib}kib", f"{jitter}ms", model),
        name=f"{curve}, receive {kib} KiB, 3G jitter {jitter} ms ({model})",
        keep_blocks=True,
    )


def _ends(curve: str, kib: int, model: str) -> list[dict[str, Factor]]:
    """The cells with the smallest and with the largest jitter."""
    return at.every(curve, kib, (JITTERS_MS[0], JITTERS_MS[-1]), model)


_MEANS = {MPTCP: "mean(regular)", MPTCP_M12: "mean(M1,2)"}


def _claims(kib: int, model: str) -> dict[str, Unnamed]:
    setting = f"receive buffer of {kib} KiB, {_JITTER_WORDS[model]}"
    chosen = "; model: this project" if model == "fifo" else ""

    def both_ends(
        curve: str, quantity: str, measure: Callable[..., Measure], then: str, row: str
    ) -> Unnamed:
        ends = _ends(curve, kib, model)

        def describe(results: Results) -> str:
            first, last = (MEAN.text(results, each) for each in ends)
            return f"{_MEANS[curve]}: {first} at 100 ms of jitter, {last} at 250 ms; {then}"

        changed = Quantity(quantity, measure(*ends[::-1]), describe=describe)
        needs = wifi_3g.used(*ends)
        return claim(changed, needs=needs, row=row, setting=setting, model=chosen)

    moves, stays = "E1j.1-regular-moves", "E1j.2-m12-stays"
    ratio = f"{_MEANS[MPTCP]}, jitter of 250 ms / of 100 ms"
    change = f"change of {_MEANS[MPTCP_M12]} from 100 to 250 ms of jitter"
    return {
        f"{moves}-{kib}KiB-{model}": both_ends(MPTCP, ratio, MEAN.ratio, "ratio", moves),
        f"{stays}-{kib}KiB-{model}": both_ends(MPTCP_M12, change, MEAN.distance, "change", stays),
    }


_CS244_MODES_MS = (105, 345)
"""CS244'14: modes with both mechanisms and of MPTCP at 100 ms of jitter, read off the plot."""


def _densities(kib: int, model: str) -> panels.Draw:
    curves: panels.Curves = {
        f"{curve}, jitter {jitter} ms": (
            at(curve, kib, jitter, model),
            replace(STYLES[curve], colour=colour),
        )
        for curve, colours in ((MPTCP, (ORANGE, RED)), (MPTCP_M12, (SKY, BLUE)))
        for jitter, colour in zip((JITTERS_MS[0], JITTERS_MS[-1]), colours, strict=True)
    }

    def draw(results: Results, axes: panels.Axes) -> None:
        panels.distribution(pdf, curves, share=0.999)(results, axes)
        if (kib, model) == (RECEIVE_KIB[0], "reordering"):
            height = 0.03 * axes.get_ylim()[1]
            stated(axes, _CS244_MODES_MS, [height] * len(_CS244_MODES_MS))

    return draw


_LINES = {30: ":", 60: "--", 200: "-"}


def _means(model: str) -> panels.Draw:
    curves: panels.Curves = {
        f"{curve}, {kib} KiB": (
            {"curve": curve, "receive_kib": kib, "jitter_model": model},
            replace(STYLES[curve], fmt=STYLES[curve].marker + line),
        )
        for (kib, line), curve in product(_LINES.items(), (MPTCP, MPTCP_M12))
    }
    x = "jitter of 3G (± ms)"
    return panels.over("jitter_ms", MEAN_OF_BLOCK, curves, x, xticks=JITTERS_MS)


def _measured_words(results: Results) -> dict[str, object]:
    def on_3g(curve: str, kib: int) -> str:
        cells = (at(curve, kib, jitter, "reordering") for jitter in JITTERS_MS)
        shares = [share("3g").number(results, cell) for cell in cells]
        return f"{min(shares):.1f}–{max(shares):.1f} %"

    def means(curve: str, kib: int) -> str:
        first, last = (MEAN.number(results, cell) for cell in _ends(curve, kib, "reordering"))
        return f"{first:.0f} → {last:.0f} ms"

    shares = (
        f"{on_3g(MPTCP, kib)} of MPTCP's bytes and {on_3g(MPTCP_M12, kib)} with both mechanisms "
        f"at {kib} KiB"
        for kib in RECEIVE_KIB
    )
    changes = (
        f"{kib} KiB: MPTCP {means(MPTCP, kib)}, with both mechanisms {means(MPTCP_M12, kib)}"
        for kib in RECEIVE_KIB
    )
    wifi = MEAN.text(results, at(wifi_3g.TCP_WIFI, 200, 0, "fifo"))
    return {"shares": "; ".join(shares), "wifi": wifi, "changes": "; ".join(changes)}


PANELS = {
    **{
        f"{kib} KiB, {WORDS[model]}: PDF": _densities(kib, model)
        for kib in JUDGED_KIB
        for model in MODELS[::-1]
    },
    **{f"Mean over jitter, {WORDS[model]}": _means(model) for model in MODELS[::-1]},
}

EXPERIMENT = Experiment(
    design=joined(
        grid(_cell, kib=RECEIVE_KIB, jitter=(0,), model=MODELS[:1], curve=(wifi_3g.TCP_WIFI,)),
        grid(_cell, model=MODELS, kib=RECEIVE_KIB, jitter=JITTERS_MS, curve=(MPTCP, MPTCP_M12)),
    ),
    named_claims={
        name: each
        for kib in JUDGED_KIB
        for model in MODELS[::-1]
        for name, each in _claims(kib, model).items()
    },
    drawings=PANELS,
    overview=Overview(
        "curve; receive_kib: receive buffer (KiB); jitter_ms: jitter (ms); jitter_model: model",
        "3g",
        (GOODPUT, MODE, MEAN, P50, P99),
    ),
    measured_words=_measured_words,
)
