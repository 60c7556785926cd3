"""Public reports of pauses after a path fails, with the model of Linux and with the engine."""

from functools import partial

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim, for_each, named
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, grid
from anabranch.gallery.metrics import GOODPUT, STALL_S
from anabranch.gallery.shared.connections import LINUX_6_18, network_path, outages, upload
from anabranch.gallery.shared.uncertain import LINKS
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, Style
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Cbr, Connection

LINUX, SOON, BACKUP, ENGINE = "Linux", "Linux, stale_loss_cnt 1", "Linux, b as backup", "engine"
STYLES = {
    LINUX: Style(RED, "-", "s"),
    SOON: Style(ORANGE, (0, (4, 1.5)), "D"),
    BACKUP: Style(BLUE, (0, (1, 1)), "v"),
    ENGINE: Style(GREEN, "-", "o"),
}
ONE, ALL = "one path fails", "both paths fail"
AT_S, AGAIN_S = 20, 40


at = Factors("stack", "event")


def _connection(stack: str) -> Connection:
    workload = Cbr(rate="2Mbit/s", block_size="8KiB")
    host = {**LINUX_6_18, "stale_loss_cnt": 1} if stack == SOON else LINUX_6_18
    regular = "a" if stack == BACKUP else ""
    return upload(workload, by_engine=stack == ENGINE, regular=regular, host=host)


def cell(tier: Tier, stack: str, event: str) -> Cell:
    """The stream of a stack while one path fails, or both."""
    failure = outages(AT_S, AGAIN_S)
    path = partial(network_path, limit="100packets", jitter="1ms")
    paths = (
        path("a", "20Mbit/s", "15ms", changes=failure),
        path("b", "10Mbit/s", "30ms", changes=failure if event == ALL else ()),
    )
    return tier.cell(at(stack, event), paths, _connection(stack), warm_up=None)


CLAIMS = {
    "FP.a-one-path": claim(
        for_each(
            "longest stall in s, {}",
            (LINUX, SOON, BACKUP),
            lambda stack: STALL_S.median(at(stack, ONE)),
        )
    ),
    "FP.b-all-paths": claim(Quantity("longest stall in s, Linux", STALL_S.median(at(LINUX, ALL)))),
    "FP.c-sooner": claim(
        Quantity("longest stall, with 1 / with 4", STALL_S.ratio(at(SOON, ONE), at(LINUX, ONE)))
    ),
    "FP.d-engine": claim(
        Quantity("longest stall, engine / Linux", STALL_S.ratio(at(ENGINE, ONE), at(LINUX, ONE)))
    ),
}


def _notes(results: Results) -> list[str]:
    one, both = (
        "; ".join(f"{stack} {STALL_S.text(results, at(stack, event))}" for stack in STYLES)
        for event in (ONE, ALL)
    )
    return [
        f"Longest stalls if one path fails: {one}. If both fail: {both}.",
        "The reports state neither rates nor delays, so both paths are choices of this project. "
        "Their pauses fit paths that failed together, or addresses that Linux did not join again.",
    ]


PANELS = {
    "Longest stall": (
        "Longest time in which the application got nothing although data was waiting.",
        panels.bars_of({"one": ONE, "both": ALL}, STALL_S, at, STYLES, x="failing paths"),
    ),
}

ENTRY = Entry(
    parameters=f"""
        a | <path.a>
        b | <path.b>
        failure | everything is lost without a notice, from {AT_S} s to {AGAIN_S} s
        workload | upload of 2 Mbit/s in blocks of 8 KiB
        Linux | the model of Linux 6.18, with tuned buffers
        stale_loss_cnt | 4, and 1
        engine | full_mesh, with the engine's own buffers
    """,
    quick=Tier("quick", seeds=5, measured_s=90),
    design=grid(cell, event=(ONE, ALL), stack=STYLES),
    uncertain_parameters=LINKS,
    claims=named(CLAIMS),
    panels=panels.titled(PANELS),
    overview=Overview("event; stack", "b", (STALL_S, GOODPUT)),
    notes=_notes,
)
