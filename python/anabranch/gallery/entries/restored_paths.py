"""Public reports about paths that return, with the model of Linux and with the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim, for_each
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, grid
from anabranch.gallery.metrics import GOODPUT, share
from anabranch.gallery.parameters import parameters
from anabranch.gallery.references import cited
from anabranch.gallery.shared.connections import flow, model_of_linux, network_path
from anabranch.gallery.shared.uncertain import LINKS
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, Panel, Style
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Cbr, Change, Connection

CUBIC, BBR, BACKUP, ENGINE = "Linux, CUBIC", "Linux, BBR", "Linux, 5G as backup", "engine"
STYLES = {
    CUBIC: Style(RED, "-", "s"),
    BBR: Style(ORANGE, (0, (4, 1.5)), "D"),
    BACKUP: Style(BLUE, (0, (1, 1)), "v"),
    ENGINE: Style(GREEN, "-", "o"),
}
NEVER, SHORT = "WAN stays", "WAN is away for 20 s"
FOURTEEN, EIGHTEEN = "WAN is silent for 14 min", "WAN is silent for 18 min"
AT_S, AWAY_S = 10, 20
LASTS_MIN, SILENT_LASTS_MIN = 10, 40
"""Shares are those of whole runs, so most of a run lies after the failure."""
_STREAM = Cbr(rate="2Mbit/s", block_size="8KiB")
_MESSAGES = Cbr(rate="16kbit/s", block_size="200B")
WAN = share("wan", "WAN")

at = Factors("stack", "event")


def _connection(stack: str, workload: Cbr) -> Connection:
    shared: dict[str, Any] = {"direction": "upload", "workload": workload}
    if stack == ENGINE:
        return flow(path_manager="full_mesh", **shared)
    manager = {"kind": "backup", "regular": "wan"} if stack == BACKUP else "full_mesh"
    linux = model_of_linux(scheduler="linux", path_manager=manager, **shared)
    return replace(linux, congestion_control="bbr") if stack == BBR else linux


def _cell(tier: Tier, stack: str, event: str) -> Cell:
    minutes = {FOURTEEN: 14, EIGHTEEN: 18}.get(event)
    away_s = AWAY_S if minutes is None else 60 * minutes
    changes = (
        Change(at=f"{AT_S}s", state="down", noticed=minutes is None),
        Change(at=f"{AT_S + away_s}s", state="up", noticed=minutes is None),
    )
    paths = (
        network_path(
            "wan", "20Mbit/s", "10ms", "100packets", changes=() if event == NEVER else changes
        ),
        network_path("5g", "50Mbit/s", "20ms", "200packets", jitter="2ms"),
    )
    return tier.cell(
        at(stack, event),
        paths,
        _connection(stack, _STREAM if minutes is None else _MESSAGES),
        warm_up="2s",
        duration=f"{LASTS_MIN if minutes is None else SILENT_LASTS_MIN}min",
    )


def _design(tier: Tier) -> list[Cell]:
    silent = grid(_cell, event=(FOURTEEN, EIGHTEEN), stack=(BACKUP,))
    return [*grid(_cell, event=(NEVER, SHORT), stack=STYLES)(tier), *silent(tier)]


CLAIMS = (
    claim(
        "RP.a-uses-wan",
        "While no path fails, the stream uses the path with the lower delay; otherwise the other claims "
        "would show nothing.",
        "this project",
        for_each("WAN's share, {}", STYLES, lambda stack: WAN.median(at(stack, NEVER))),
    ),
    claim(
        "RP.b-hardly-returns",
        "After WAN's address was removed and added again, Linux sends almost nothing over the new "
        "subflow.",
        "mptcp_net-next 581: almost nothing, for minutes or for ever",
        for_each("WAN's share, {}", (BBR, CUBIC), lambda stack: WAN.median(at(stack, SHORT))),
    ),
    claim(
        "RP.c-backup-returns",
        "With 5G as a backup, Linux returns to WAN.",
        "mptcp_net-next 581: a developer's proposal",
        Quantity("WAN's share, Linux, 5G as backup", WAN.median(at(BACKUP, SHORT))),
    ),
    claim(
        "RP.d-engine-returns",
        "The engine's scheduler returns to WAN.",
        "this project",
        Quantity("WAN's share, engine", WAN.median(at(ENGINE, SHORT))),
    ),
    claim(
        "RP.e-gives-up",
        "On a path that is silent, Linux gives up the subflow after about 16 minutes: a path that is "
        "back after 14 minutes is used again, and one that is back after 18 minutes is not.",
        "mptcp_net-next 616: '~16 minutes'",
        Quantity("WAN's share, silent for 14 min", WAN.median(at(BACKUP, FOURTEEN)), bound="14"),
        Quantity("WAN's share, silent for 18 min", WAN.median(at(BACKUP, EIGHTEEN)), bound="18"),
    ),
)


def notes(results: Results) -> Sequence[str]:
    """The shares, and what the reports leave open."""
    texts = {event: WAN.texts(results, lambda stack, event=event: at(stack, event)) for event in (NEVER, SHORT)}
    return [
        *(
            f"WAN's share if {event}: "
            + "; ".join(f"{stack} {texts[event](stack)}" for stack in STYLES)
            + "."
            for event in texts
        ),
        "The reports state neither rates nor delays, so both paths are choices of this project.",
    ]


ENTRY = Entry(
    title="Public reports about paths that return",
    question="Does a stream use a path again that has failed and come back, in Linux and with the engine?",
    references=cited("mptcp_net-next 581", "mptcp_net-next 616"),
    parameters=parameters(f"""
        WAN | <path.wan>
        5G | <path.5g>
        short failure | WAN's address is removed at {AT_S} s and added at {AGAIN_S} s; measured from {FROM_S} s
        silence | everything on WAN is lost without a notice from {AT_S} s, for 14 or 18 min
        stream | upload of 2 Mbit/s in blocks of 8 KiB; during silences, 200 B every 100 ms | mptcp_net-next 554
        Linux | the model of Linux 6.18, with tuned buffers and its scheduler
        engine | full_mesh and min_rtt, with the engine's own buffers
    """),
    quick=Tier("quick", seeds=5, measured_s=60),
    full=Tier("full", seeds=20, measured_s=120),
    design=_design,
    uncertain_parameters=LINKS,
    claims=CLAIMS,
    headline="RP.b-hardly-returns",
    panels=(
        Panel(
            "WAN's share of the bytes",
            "Share of the bytes that leave over WAN from 60 s on.",
            panels.bars_of({"never": NEVER, "short": SHORT}, WAN, at, STYLES, x="event"),
        ),
    ),
    overview=Overview("event; stack", "wan", (WAN, GOODPUT)),
    notes=notes,
)
