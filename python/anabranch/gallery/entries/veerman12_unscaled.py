"""Veerman 2012 at full rates: 10 Gbit/s at 202 ms with 570 MB, and with smaller buffers."""

from functools import partial

import numpy as np

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, all_of, carried, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.metrics import GOODPUT, REINJECTIONS, share
from anabranch.gallery.shared import veerman12
from anabranch.reports.figures import BLUE, GREEN, ORANGE, SKY, Style
from anabranch.results.folder import Results

TWO_LINKS, THREE_LINKS, BALANCING = "two links", "three links", "balancing"

_WAN_MS, _FAR_MS, _LAN_MS = 35, 202, 5

_link = partial(veerman12.link, scale=1)
_GENEVA = (_link("small", 0.3, _WAN_MS), _link("large", 1, _WAN_MS))
_PATHS = {
    TWO_LINKS: _GENEVA,
    THREE_LINKS: (*_GENEVA, _link("far", 10, _FAR_MS)),
    BALANCING: tuple(
        _link(name, gbps, _LAN_MS, mss=veerman12.LARGE_MSS)
        for name, gbps in (("one", 1), ("two", 1), ("ten", 10))
    ),
}

RULE_MB, BALANCING_MB = 570.0, 26.0
SMALLER_MB = (16.0, 64.0)
_COLOURS = {"small": SKY, "large": BLUE, "far": GREEN}

at = Factors("curve", "buffer_mb")

RULE = at(THREE_LINKS, RULE_MB)


def _cell(tier: Tier, curve: str, buffer_mb: float) -> Cell:
    main = veerman12.connection(buffer_mb, scale=1)
    words = (curve, f"{buffer_mb:g}mb")
    return tier.cell(at(curve, buffer_mb), _PATHS[curve], main, words=words, keep_samples=True)


def _without_loss(results: Results) -> str | None:
    """The precondition that no loss reduced a window after the warm-up, with the rule's buffer."""
    halvings = veerman12.halvings_measured(results, **RULE)
    return f"{halvings} halvings after the warm-up" if halvings else None


_ALL_LINKS = ("small", "large", "far")
_BALANCED = at(BALANCING, BALANCING_MB)

CLAIMS = {
    "E9.unscaled-rule": claim(
        Quantity("goodput with 570 MB", GOODPUT.median(RULE), "sum"),
        Quantity("share of the bytes over 10 Gbit/s", share("far").median(RULE), "share"),
        needs=all_of(_without_loss, carried(_ALL_LINKS, RULE)),
    ),
    "E9.unscaled-advanced": claim(
        for_each(
            "two links / three links at {:g} MB",
            SMALLER_MB,
            lambda buffer: GOODPUT.ratio(at(TWO_LINKS, buffer), at(THREE_LINKS, buffer)),
        ),
        needs=carried(_ALL_LINKS, *at.every(THREE_LINKS, SMALLER_MB)),
    ),
    "E9.unscaled-balancing": claim(
        Quantity("share of the bytes over 10 Gbit/s, MSS 8900", share("ten").median(_BALANCED)),
        needs=carried(("one", "two"), _BALANCED),
    ),
}


def _measured_words(results: Results) -> dict[str, object]:
    far = results.rows("subflows", path_name="far", **RULE)
    retransmitted = float(np.median(far["segments_retransmitted"].to_numpy()))
    recovery_h = veerman12.recovery_s(3, 10, _FAR_MS, veerman12.SMALL_MSS, scale=1) / 3600
    return {"retransmitted": retransmitted, "recovery_h": recovery_h}


PANELS = {
    "0.3 + 1 Gbit/s, and 10 Gbit/s far away": veerman12.draw_paths(
        {
            f"{curve.replace(' ', chr(10))}\n{mb:g} MB": at(curve, mb)
            for curve, mb in (
                *((THREE_LINKS, mb) for mb in (*SMALLER_MB, RULE_MB)),
                *((TWO_LINKS, mb) for mb in SMALLER_MB),
            )
        },
        _COLOURS,
    ),
    "Three links, 570 MB: windows": panels.series(
        {
            f"path {path}": (RULE | {"path_name": path}, "cwnd", Style(colour))
            for path, colour in _COLOURS.items()
        },
        "congestion window (MB)",
        scale=1e-6,
        log=True,
        lines={10e3 / 8 * _FAR_MS / 1e3: "10 Gbit/s × 202 ms"},
    ),
    "1 + 1 + 10 Gbit/s at 5 ms, 26 MB": veerman12.draw_paths(
        {f"seed {seed}": _BALANCED | {"seed": seed} for seed in range(1, 6)},
        {"one": BLUE, "two": ORANGE, "ten": GREEN},
    ),
}

EXPERIMENT = Experiment(
    words={"mb": BALANCING_MB},
    design=joined(
        grid(_cell, curve=(THREE_LINKS,), buffer_mb=(RULE_MB,)),
        grid(_cell, curve=(TWO_LINKS, THREE_LINKS), buffer_mb=SMALLER_MB),
        grid(_cell, curve=(BALANCING,), buffer_mb=(BALANCING_MB,)),
    ),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("curve: links; buffer_mb: buffer (MB)", "far", (GOODPUT, REINJECTIONS)),
    measured_words=_measured_words,
)
