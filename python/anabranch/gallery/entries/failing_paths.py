"""Public reports of pauses after a path fails, with the model of Linux and with the engine."""

from functools import partial

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier, grid
from anabranch.gallery.metrics import GOODPUT, STALL_S
from anabranch.gallery.shared.connections import LINUX_6_18, network_path, outages, upload
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, Style
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Cbr, Connection

LINUX, SOON, BACKUP, ENGINE = "Linux", "Linux, stale_loss_cnt 1", "Linux, b as backup", "engine"
STYLES = {
    LINUX: Style(RED, "s-"),
    SOON: Style(ORANGE, "D--"),
    BACKUP: Style(BLUE, "v:"),
    ENGINE: Style(GREEN),
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


def _measured_words(results: Results) -> dict[str, object]:
    one, both = (
        "; ".join(f"{stack} {STALL_S.text(results, at(stack, event))}" for stack in STYLES)
        for event in (ONE, ALL)
    )
    return {"one": one, "both": both}


PANELS = {
    "Longest stall": panels.bars_of(
        {"one": ONE, "both": ALL}, STALL_S, at, STYLES, x="failing paths"
    )
}

EXPERIMENT = Experiment(
    words={"at_s": AT_S, "again_s": AGAIN_S},
    design=grid(cell, event=(ONE, ALL), stack=STYLES),
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview("event; stack", "b", (STALL_S, GOODPUT)),
    measured_words=_measured_words,
)
