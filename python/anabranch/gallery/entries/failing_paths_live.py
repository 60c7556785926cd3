"""Paths that fail and come back: Linux in real time, compared with the model of Linux."""

import dataclasses
from functools import partial

from anabranch.gallery import panels
from anabranch.gallery.claims import claim, for_each, named
from anabranch.gallery.entries import failing_paths, restored_paths
from anabranch.gallery.entries.failing_paths import AGAIN_S, ALL, AT_S, BACKUP, LINUX, ONE, SOON
from anabranch.gallery.entries.restored_paths import CUBIC, MESSAGES, SHORT, STREAM
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, key_of
from anabranch.gallery.metrics import STALL_S, share
from anabranch.gallery.parameters import parameters
from anabranch.gallery.shared import real_time
from anabranch.gallery.shared.real_time import KERNEL, VIRTUAL
from anabranch.gallery.shared.uncertain import REAL_TIME
from anabranch.reports.figures import BLUE, ORANGE, Style
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Scenario

HOSTS = (VIRTUAL, KERNEL)
SHORT_NAMES = {VIRTUAL: "model", KERNEL: "Linux"}
STYLES = {VIRTUAL: Style(BLUE), KERNEL: Style(ORANGE)}
SETTINGS = {"default": LINUX, "stale_loss_cnt 1": SOON, "b as backup": BACKUP}
EVENTS = (ONE, ALL)
_FAILURES = [(stack, event) for event in EVENTS for stack in SETTINGS.values()]
RETURNS = ((CUBIC, MESSAGES), (CUBIC, STREAM), (restored_paths.BACKUP, MESSAGES))
"""Stacks and workloads of restored-paths whose WAN comes back."""
_RETURN_LASTS_S = 60
_AWAY_S, _BACK_S = restored_paths.AT_S, restored_paths.AT_S + restored_paths.AWAY_S
WAN = share("wan", "WAN")

at = Factors("hosts", "stack", "event", load="")


def _cells(tier: Tier) -> list[Cell]:
    """The cells of both entries that Linux can run, in the model and with Linux."""
    cells = [failing_paths.cell(tier, *case) for case in _FAILURES]
    cells += [_shorter(restored_paths.cell(tier, stack, SHORT, load)) for stack, load in RETURNS]
    return [_on(hosts, cell) for hosts in HOSTS for cell in cells]


def _on(hosts: str, cell: Cell) -> Cell:
    placed = real_time.on(hosts, cell)
    return dataclasses.replace(
        placed, key=key_of(cell.key, SHORT_NAMES[hosts]), factors={"load": "", **placed.factors}
    )


def _shorter(cell: Cell) -> Cell:
    """The cell in a run that lasts a minute."""
    assert isinstance(cell.scenario, Scenario)
    shorter = dataclasses.replace(cell.scenario, duration=f"{_RETURN_LASTS_S}s")
    return dataclasses.replace(cell, scenario=shorter)


CLAIMS = {
    "FL1-stalls": claim(
        for_each(
            "longest stall, Linux / model, {}, {}",
            _FAILURES,
            lambda *case: STALL_S.ratio(at(KERNEL, *case), at(VIRTUAL, *case)),
        )
    ),
    "FL2-shares": claim(
        for_each(
            "WAN's share, Linux / model, {}, {}",
            RETURNS,
            lambda stack, load: WAN.ratio(
                at(KERNEL, stack, SHORT, load), at(VIRTUAL, stack, SHORT, load)
            ),
        )
    ),
}


def _notes(results: Results) -> list[str]:
    stalls, shares = STALL_S.texts(results, at), WAN.texts(results, at)
    return [
        *(
            f"Longest stall of {stack}, {event}: {stalls(VIRTUAL, stack, event)} in the model, "
            f"{stalls(KERNEL, stack, event)} in Linux."
            for stack, event in _FAILURES
        ),
        *(
            f"WAN's share of {load}, {stack}: {shares(VIRTUAL, stack, SHORT, load)} in the model, "
            f"{shares(KERNEL, stack, SHORT, load)} in Linux."
            for stack, load in RETURNS
        ),
        real_time.lateness(results),
    ]


_QUICK = Tier("quick", seeds=3, measured_s=80)
_FAILING_LASTS_S = _QUICK.warm_up_s + _QUICK.measured_s

PANELS = {
    **{
        f"Longest stall, {event}": (
            "Longest time in which the application got nothing although data was waiting.",
            panels.bars_of(SETTINGS, STALL_S, partial(at, event=event), STYLES),
        )
        for event in EVENTS
    },
    "WAN's share of the bytes": (
        f"WAN is away from {_AWAY_S} s to {_BACK_S} s; runs of {_RETURN_LASTS_S} s.",
        panels.bars(
            {f"{stack}\n{load}": (stack, load) for stack, load in RETURNS},
            lambda hosts, case: WAN.median(at(hosts, case[0], SHORT, case[1])),
            STYLES,
            WAN.heading,
        ),
    ),
}

ENTRY = Entry(
    parameters=parameters(f"""
        paths that fail | a: <path.a>; b: <path.b> | as in failing-paths
        paths that come back | WAN: <path.wan>; 5G: <path.5g> | as in restored-paths
        failures | one path or both: silent from {AT_S} s to {AGAIN_S} s | as in failing-paths
        WAN's address | removed at {_AWAY_S} s, added at {_BACK_S} s | as in restored-paths
        runs | {_FAILING_LASTS_S} s, and {_RETURN_LASTS_S} s with paths that come back
        congestion control | CUBIC, in the model and in Linux
        buffers | tuned by the host; the model charges the memory of each segment, as Linux does
    """)
    + real_time.PARAMETERS[2:],
    quick=_QUICK,
    full=Tier("full", seeds=10, measured_s=80),
    design=_cells,
    not_varied_because=REAL_TIME,
    claims=named(CLAIMS),
    panels=panels.titled(PANELS),
    overview=Overview("hosts; event; stack; load", "a", (STALL_S,)),
    notes=_notes,
)
