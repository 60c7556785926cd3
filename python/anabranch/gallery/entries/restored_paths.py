"""Public reports about paths that return, with the model of Linux and with the engine."""

from collections.abc import Sequence
from functools import partial

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid, joined
from anabranch.gallery.metrics import GOODPUT, share
from anabranch.gallery.shared.connections import network_path, outages, upload
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, Style
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Cbr, Connection

CUBIC, BBR, BACKUP, ENGINE = "Linux, CUBIC", "Linux, BBR", "Linux, 5G as backup", "engine"
STYLES = {
    CUBIC: Style(RED, "s-"),
    BBR: Style(ORANGE, "D--"),
    BACKUP: Style(BLUE, "v:"),
    ENGINE: Style(GREEN),
}
MESSAGES, STREAM = "messages", "stream"
_WORKLOADS = {
    MESSAGES: Cbr(rate="16kbit/s", block_size="200B"),
    STREAM: Cbr(rate="2Mbit/s", block_size="8KiB"),
}
NEVER, SHORT = "WAN stays", "WAN is away for 20 s"
TWELVE, EIGHTEEN = "WAN is silent for 12 min", "WAN is silent for 18 min"
_SILENT_S = {TWELVE: 12 * 60, EIGHTEEN: 18 * 60}
AT_S, AWAY_S = 10, 20
SILENT_LASTS_S = 2400
"""Shares are those of whole runs, so most of a run lies after the failure."""
WAN = share("wan", "WAN")

at = Factors("stack", "event", "load")


def _connection(stack: str, load: str) -> Connection:
    control = "bbr" if stack == BBR else "cubic_linux"
    return upload(
        _WORKLOADS[load],
        by_engine=stack == ENGINE,
        regular="wan" if stack == BACKUP else "",
        congestion_control=control,
    )


def cell(tier: Tier, stack: str, event: str, load: str) -> Cell:
    """A workload of a stack while WAN stays, goes away or falls silent."""
    silent = event in _SILENT_S
    back_s = AT_S + _SILENT_S.get(event, AWAY_S)
    changes = () if event == NEVER else outages(AT_S, back_s, noticed=not silent)
    paths = (
        network_path("wan", "20Mbit/s", "10ms", "100packets", changes=changes),
        network_path("5g", "50Mbit/s", "20ms", "200packets", jitter="2ms"),
    )
    duration = f"{SILENT_LASTS_S}s" if silent else tier.duration
    return tier.cell(at(stack, event, load), paths, _connection(stack, load), duration=duration)


def _shares(event: str, load: str, stacks: Sequence[str]) -> tuple[Quantity, ...]:
    return for_each(
        f"WAN's share, {load}, {{}}", stacks, lambda stack: WAN.median(at(stack, event, load))
    )


CLAIMS = {
    "RP.a-uses-wan": claim(_shares(NEVER, MESSAGES, tuple(STYLES))),
    "RP.b-hardly-returns": claim(_shares(SHORT, MESSAGES, (CUBIC, BBR))),
    "RP.c-half-returns": claim(_shares(SHORT, STREAM, (CUBIC,))),
    "RP.d-backup-returns": claim(_shares(SHORT, MESSAGES, (BACKUP,))),
    "RP.e-engine-returns": claim(_shares(SHORT, MESSAGES, (ENGINE,))),
    "RP.f-gives-up": claim(
        (
            Quantity(
                f"WAN's share, 5G as backup, silent for {minutes} min",
                WAN.median(at(BACKUP, silence, MESSAGES)),
                minutes,
            )
            for minutes, silence in (("12", TWELVE), ("18", EIGHTEEN))
        )
    ),
}


def _measured_words(results: Results) -> dict[str, object]:
    def shares(event: str, load: str) -> str:
        text = WAN.texts(results, partial(at, event=event, load=load))
        found = "; ".join(f"{stack} {text(stack)}" for stack in STYLES)
        return f"WAN's share of {load}, if {event}: {found}."

    return {
        "shares": "\n\n".join(
            shares(event, load) for event in (NEVER, SHORT) for load in _WORKLOADS
        )
    }


PANELS = {
    f"WAN's share: {load}": panels.bars_of(
        {"no failure": NEVER, "away for 20 s": SHORT}, WAN, partial(at, load=load), STYLES
    )
    for load in _WORKLOADS
}

EXPERIMENT = Experiment(
    words={"at_s": AT_S, "away_s": AWAY_S},
    design=joined(
        grid(cell, event=(NEVER, SHORT), load=_WORKLOADS, stack=STYLES),
        grid(cell, event=(TWELVE, EIGHTEEN), stack=(BACKUP,), load=(MESSAGES,)),
    ),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("event; load; stack", "wan", (WAN, GOODPUT)),
    measured_words=_measured_words,
)
