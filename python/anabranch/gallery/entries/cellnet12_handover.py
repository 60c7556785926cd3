"""Paasch, Detal, Duchene, Raiciu, Bonaventure, CellNet 2012: handover between WiFi and 3G."""

from dataclasses import replace
from functools import partial
from typing import Literal

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, carried, claim, each, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid
from anabranch.gallery.metrics import GOODPUT, P95, PAUSE, PAUSE_MS, share, texts
from anabranch.gallery.shared.connections import flow, outages
from anabranch.gallery.shared.wifi_3g import M12, THREE_G, WIFI
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, SKY, Style
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Blocks

FULL, BACKUP, SINGLE, TCP = "full", "backup", "single path", "TCP over WiFi"
FULL_M12 = "full+M1,2"
MODES = (FULL, FULL_M12, BACKUP, SINGLE)
STYLES = {
    FULL: Style(GREEN),
    FULL_M12: Style(SKY, "^-."),
    BACKUP: Style(BLUE, "s--"),
    SINGLE: Style(ORANGE, "D.."),
    TCP: Style(RED, "v:"),
}

_MANAGERS = {BACKUP: "backup", SINGLE: "single_path"}

OFF, SILENT = "WiFi is turned off", "WiFi falls silent"
"""The client notices the former. The latter, it has to find out. Its upload makes that possible."""
_DIRECTIONS: dict[str, Literal["download", "upload"]] = {OFF: "download", SILENT: "upload"}

AWAY_S, BACK_S = 20, 35

at = Factors("mode", "event")


def _cell(tier: Tier, mode: str, event: str) -> Cell:
    outage = outages(AWAY_S, BACK_S, noticed=event == OFF)
    connection = flow(
        ("wifi",) if mode == TCP else None,
        buffers="500kB",
        congestion_control=None,
        direction=_DIRECTIONS[event],
        path_manager=_MANAGERS.get(mode),
        remedies=M12 if mode == FULL_M12 else None,
        workload=Blocks(),
    )
    paths = (replace(WIFI, jitter="1ms", changes=outage), replace(THREE_G, jitter="5ms"))
    return tier.cell(at(mode, event), paths, connection, warm_up=None)


def _pauses(event: str, bound: str = "") -> tuple[Quantity, ...]:
    cases = {f"longest pause, {mode}": PAUSE.median(at(mode, event)) for mode in MODES}
    return each("longest pause in every mode", cases, bound)


_noticed = partial(claim, needs=carried("3g", *at.every(MODES, OFF)))

CLAIMS = {
    "HO.a-continues": _noticed(
        _pauses(OFF, "MPTCP"), Quantity("longest pause, TCP", PAUSE.median(at(TCP, OFF)), "TCP")
    ),
    "HO.b-single-path-dips": claim(
        for_each(
            "longest pause, single path / backup, {}",
            _DIRECTIONS,
            lambda event: PAUSE.ratio(at(SINGLE, event), at(BACKUP, event)),
        )
    ),
    "HO.c-full-adds-up": _noticed(
        Quantity("goodput, full / backup", GOODPUT.ratio(at(FULL, OFF), at(BACKUP, OFF))),
        Quantity("3G's share of the bytes, backup", share("3g").median(at(BACKUP, OFF)), "share"),
    ),
    "HO.e-cured": _noticed(
        Quantity("goodput, full+M1,2 / backup", GOODPUT.ratio(at(FULL_M12, OFF), at(BACKUP, OFF)))
    ),
    "HO.d-silence": claim(_pauses(SILENT)),
}


def _measured_words(results: Results) -> dict[str, object]:
    return texts(results, at, pause=PAUSE, goodput=GOODPUT)


PANELS = {
    "Longest pause": panels.bars_of(
        {"turned off": OFF, "falls silent": SILENT},
        PAUSE,
        at,
        {mode: STYLES[mode] for mode in MODES},
        x="WiFi",
    ),
    "WiFi is turned off and on again": panels.goodput_around(
        panels.curves(STYLES, by="mode", event=OFF), AWAY_S, BACK_S
    ),
}

EXPERIMENT = Experiment(
    words={"away_s": AWAY_S, "back_s": BACK_S},
    design=grid(_cell, event=_DIRECTIONS, mode=STYLES),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("event; mode", "3g", (GOODPUT, P95.called("p95 delay"), PAUSE_MS)),
    measured_words=_measured_words,
)
