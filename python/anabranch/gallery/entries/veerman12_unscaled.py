"""Veerman 2012 at full rates: 10 Gbit/s at 202 ms with 570 MB, and with smaller buffers."""

from functools import partial

import numpy as np

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, all_of, carried, claim, for_each, named
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, grid, joined
from anabranch.gallery.metrics import GOODPUT, REINJECTIONS, share
from anabranch.gallery.parameters import parameters
from anabranch.gallery.shared import veerman12
from anabranch.gallery.shared.uncertain import BUFFERS, LINKS
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
        where="after slow start",
    ),
    "E9.unscaled-advanced": claim(
        for_each(
            "two links / three links at {:g} MB",
            SMALLER_MB,
            lambda buffer: GOODPUT.ratio(at(TWO_LINKS, buffer), at(THREE_LINKS, buffer)),
        ),
        needs=carried(_ALL_LINKS, *at.every(THREE_LINKS, SMALLER_MB)),
        where="goodput",
    ),
    "E9.unscaled-balancing": claim(
        Quantity("share of the bytes over 10 Gbit/s, MSS 8900", share("ten").median(_BALANCED)),
        needs=carried(("one", "two"), _BALANCED),
        where=f"{BALANCING_MB:g} MB",
    ),
}


def _notes(results: Results) -> list[str]:
    far = results.rows("subflows", path_name="far", **RULE)
    retransmitted = float(np.median(far["segments_retransmitted"].to_numpy()))
    recovery_h = veerman12.recovery_s(3, 10, _FAR_MS, veerman12.SMALL_MSS, scale=1) / 3600
    return [
        f"Slow start overshoots the far link's queue once: {retransmitted:.0f} segments are lost "
        "and retransmitted within a few round trips. The remaining half of the window is one "
        "bandwidth-delay product and fills the link. No further loss follows in the time measured. "
        f"LIA would need {recovery_h:.0f} hours to recover the other half.",
        "With 64 MB, all three links together give more than the two near links alone. With 16 MB "
        "they give less. One buffer per 202 ms is 0.6 Gbit/s at 16 MB and 2.5 Gbit/s at 64 MB, and "
        "the near links wait for the far link.",
        "The page of this entry shows how the cost of a segment grows with the window.",
    ]


PANELS = {
    "0.3 + 1 Gbit/s, and 10 Gbit/s far away": (
        "Throughput by path, first seed. 570 MB is the rule's buffer.",
        veerman12.draw_paths(
            {
                f"{curve.replace(' ', chr(10))}\n{mb:g} MB": at(curve, mb)
                for curve, mb in (
                    *((THREE_LINKS, mb) for mb in (*SMALLER_MB, RULE_MB)),
                    *((TWO_LINKS, mb) for mb in SMALLER_MB),
                )
            },
            _COLOURS,
        ),
    ),
    "Three links, 570 MB: windows": (
        "First seed. Slow start doubles the far window every 202 ms.",
        panels.series(
            {
                f"path {path}": (RULE | {"path_name": path}, "cwnd", Style(colour))
                for path, colour in _COLOURS.items()
            },
            "congestion window (MB)",
            scale=1e-6,
            log=True,
            lines={10e3 / 8 * _FAR_MS / 1e3: "10 Gbit/s × 202 ms"},
        ),
    ),
    "1 + 1 + 10 Gbit/s at 5 ms, 26 MB": (
        "Throughput by path for the first five seeds, which differ only in their jitter.",
        veerman12.draw_paths(
            {f"seed {seed}": _BALANCED | {"seed": seed} for seed in range(1, 6)},
            {"one": BLUE, "two": ORANGE, "ten": GREEN},
        ),
    ),
}

ENTRY = Entry(
    parameters=parameters("""
        scaling | none | the other entries after Veerman use a tenth
        links | 0.3 + 1 Gbit/s at 35 ms, 10 Gbit/s at 202 ms RTT | slides
        rule for buffers | 2 × 202 ms × 11.3 Gbit/s: 570 MB | slides
        smaller buffers | 16 and 64 MB | this project; slides: “different”
        balancing | 1 + 1 + 10 Gbit/s at 5 ms, 26 MB, MSS 8900 | slides
        warm-up | 6 s: slow start and its losses
    """)
    + veerman12.STACK_PARAMETERS,
    quick=Tier("quick", seeds=5, measured_s=2, warm_up_s=6),
    full=Tier("full", seeds=20, measured_s=10, warm_up_s=6),
    design=joined(
        grid(_cell, curve=(THREE_LINKS,), buffer_mb=(RULE_MB,)),
        grid(_cell, curve=(TWO_LINKS, THREE_LINKS), buffer_mb=SMALLER_MB),
        grid(_cell, curve=(BALANCING,), buffer_mb=(BALANCING_MB,)),
    ),
    uncertain_parameters={**LINKS, **BUFFERS},
    source=veerman12.source(),
    claims=named(CLAIMS),
    panels=panels.titled(PANELS),
    overview=Overview("curve: links; buffer_mb: buffer (MB)", "far", (GOODPUT, REINJECTIONS)),
    notes=_notes,
)
