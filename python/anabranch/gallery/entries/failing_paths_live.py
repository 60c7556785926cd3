"""Paths that fail and come back: Linux in real time, compared with the model of Linux."""

import dataclasses
from functools import partial

from anabranch.gallery import panels
from anabranch.gallery.claims import claim, for_each
from anabranch.gallery.entries import failing_paths, restored_paths
from anabranch.gallery.entries.failing_paths import AGAIN_S, ALL, AT_S, BACKUP, LINUX, ONE, SOON
from anabranch.gallery.entries.restored_paths import CUBIC, MESSAGES, SHORT, STREAM
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, key_of
from anabranch.gallery.metrics import STALL_S, share
from anabranch.gallery.shared import real_time
from anabranch.gallery.shared.real_time import KERNEL, VIRTUAL
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


def _measured_words(results: Results) -> dict[str, object]:
    stalls, shares = STALL_S.texts(results, at), WAN.texts(results, at)
    return {
        "stalls": "\n\n".join(
            f"Longest stall of {stack}, {event}: {stalls(VIRTUAL, stack, event)} in the model, "
            f"{stalls(KERNEL, stack, event)} in Linux."
            for stack, event in _FAILURES
        ),
        "shares": "\n\n".join(
            f"WAN's share of {load}, {stack}: {shares(VIRTUAL, stack, SHORT, load)} in the model, "
            f"{shares(KERNEL, stack, SHORT, load)} in Linux."
            for stack, load in RETURNS
        ),
        "lateness": real_time.lateness(results),
    }


PANELS = {
    **{
        f"Longest stall, {event}": panels.bars_of(
            SETTINGS, STALL_S, partial(at, event=event), STYLES
        )
        for event in EVENTS
    },
    "WAN's share of the bytes": panels.bars(
        {f"{stack}\n{load}": (stack, load) for stack, load in RETURNS},
        lambda hosts, case: WAN.median(at(hosts, case[0], SHORT, case[1])),
        STYLES,
        WAN.heading,
    ),
}

EXPERIMENT = Experiment(
    words={
        "at_s": AT_S,
        "again_s": AGAIN_S,
        "away_s": _AWAY_S,
        "back_s": _BACK_S,
        "return_lasts_s": _RETURN_LASTS_S,
    },
    design=_cells,
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("hosts; event; stack; load", "a", (STALL_S,)),
    measured_words=_measured_words,
)
