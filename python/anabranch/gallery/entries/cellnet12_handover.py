"""Paasch, Detal, Duchene, Raiciu, Bonaventure, CellNet 2012: handover between WiFi and 3G."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from anabranch.gallery.bounds import BOUNDS
from anabranch.gallery.entry import Cell, Entry, Factors, Overview, Tier, key_of, parameters
from anabranch.gallery.metrics import GOODPUT, P95, PAUSE_MS
from anabranch.gallery.shared.measures import median_of, ratio_of
from anabranch.gallery.shared.uncertain import WIFI_3G
from anabranch.gallery.shared.wifi_3g import THREE_G, WIFI
from anabranch.reports import figures, outages
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, SKY, Panel, Style
from anabranch.results.claims import Claim, Condition, each
from anabranch.results.estimates import Estimate, median
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Blocks, Change, Connection, Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FULL, BACKUP, SINGLE, TCP = "full", "backup", "single path", "TCP over WiFi"
FULL_M12 = "full+M1,2"
MODES = (FULL, FULL_M12, BACKUP, SINGLE)
STYLES = {
    FULL: Style(GREEN, "-", "o"),
    FULL_M12: Style(SKY, (0, (6, 1.5, 1, 1.5)), "^"),
    BACKUP: Style(BLUE, (0, (4, 1.5)), "s"),
    SINGLE: Style(ORANGE, (0, (2, 1)), "D"),
    TCP: Style(RED, (0, (1, 1)), "v"),
}
_MANAGERS = {BACKUP: "backup", SINGLE: "single_path"}
_REMEDIES = {FULL_M12: {"opportunistic_retransmission": True, "penalisation": "conext13"}}

OFF, SILENT = "WiFi is turned off", "WiFi falls silent"
"""The client notices the former. The latter, it has to find out. Its upload makes that possible."""
_DIRECTIONS: dict[str, Literal["download", "upload"]] = {OFF: "download", SILENT: "upload"}
AWAY_S, BACK_S = 20, 35

HANDOVER = (
    "C. Paasch, G. Detal, F. Duchene, C. Raiciu, O. Bonaventure: Exploring Mobile/WiFi Handover "
    "with Multipath TCP. CellNet 2012."
)
EXPERIENCE = (
    "O. Bonaventure, C. Paasch, G. Detal: Use Cases and Operational Experience with Multipath "
    "TCP, §2.2. RFC 8041, 2017."
)


at = Factors("mode", "event")
"""The factors of a cell."""


def cells(tier: Tier) -> list[Cell]:
    """Every mode in every event."""
    return [_cell(tier, mode, event) for event in _DIRECTIONS for mode in STYLES]


def _cell(tier: Tier, mode: str, event: str) -> Cell:
    noticed = event == OFF
    away = Change(at=f"{AWAY_S}s", state="down", noticed=noticed)
    back = Change(at=f"{BACK_S}s", state="up", noticed=noticed)
    scenario = Scenario(
        name=f"{mode}, {event}",
        duration=tier.duration,
        paths=(replace(WIFI, jitter="1ms", changes=(away, back)), replace(THREE_G, jitter="5ms")),
        connections=(
            Connection(
                name="main",
                paths=("wifi",) if mode == TCP else ("wifi", "3g"),
                protocol="tcp" if mode == TCP else "mptcp",
                direction=_DIRECTIONS[event],
                path_manager=_MANAGERS.get(mode, "full_mesh"),
                remedies=_REMEDIES.get(mode),
                send_buffer="500kB",
                receive_buffer="500kB",
                workload=Blocks(),
            ),
        ),
    )
    return Cell(key_of(mode, event), scenario, at(mode, event))


def _pauses(event: str) -> tuple[Condition, ...]:
    return each(
        "longest pause in every mode",
        (
            Condition(
                f"longest pause, {mode}",
                median_of("recovery_ms", at(mode, event), 1e-3),
                BOUNDS["HO.a-continues MPTCP"],
            )
            for mode in MODES
        ),
    )


def _three_g_carried(results: Results) -> str | None:
    """The precondition that each mode moved to 3G."""
    for event in _DIRECTIONS:
        for mode in MODES:
            share = results.values("share_3g", **at(mode, event)).min()
            if share < 0.01:
                return f"3G carried {share:.1%} of the bytes ({mode}, {event})"
    return None


CLAIMS = (
    Claim(
        "HO.a-continues",
        "When WiFi is turned off, the connection soon continues over 3G in every mode, and TCP "
        "waits for WiFi.",
        "CellNet'12: 'smooth handovers'",
        (
            *_pauses(OFF),
            Condition(
                "longest pause, TCP",
                median_of("recovery_ms", at(TCP, OFF), 1e-3),
                BOUNDS["HO.a-continues TCP"],
            ),
        ),
        _three_g_carried,
        "WiFi is turned off",
    ),
    Claim(
        "HO.b-single-path-dips",
        "Single-path mode pauses longer than backup mode, since it opens the next subflow only "
        "when the first is gone.",
        "CellNet'12; RFC 8041, §2.2",
        tuple(
            Condition(
                f"longest pause, single path / backup, {event}",
                ratio_of("recovery_ms", at(SINGLE, event), at(BACKUP, event)),
                BOUNDS["HO.b-single-path-dips"],
            )
            for event in _DIRECTIONS
        ),
        _three_g_carried,
    ),
    Claim(
        "HO.c-full-adds-up",
        "Full mode has more goodput than backup mode, which keeps 3G for the time without WiFi.",
        "CellNet'12; RFC 8041, §2.2",
        (
            Condition(
                "goodput, full / backup",
                ratio_of("goodput_mbps", at(FULL, OFF), at(BACKUP, OFF)),
                BOUNDS["HO.c-full-adds-up"],
            ),
            Condition(
                "3G's share of the bytes, backup",
                median_of("share_3g", at(BACKUP, OFF), 100),
                BOUNDS["HO.c-full-adds-up share"],
            ),
        ),
        _three_g_carried,
        "WiFi is turned off",
    ),
    Claim(
        "HO.e-cured",
        "With opportunistic retransmission and penalisation, full mode has more goodput than "
        "backup mode.",
        "ours; NSDI'12",
        (
            Condition(
                "goodput, full+M1,2 / backup",
                ratio_of("goodput_mbps", at(FULL_M12, OFF), at(BACKUP, OFF)),
                BOUNDS["HO.e-cured"],
            ),
        ),
        _three_g_carried,
        "WiFi is turned off",
    ),
    Claim(
        "HO.d-silence",
        "When WiFi falls silent without notice, an upload continues after retransmission timeouts.",
        "ours",
        _pauses(SILENT),
        _three_g_carried,
        "WiFi falls silent",
    ),
)


def _draw_pauses(results: Results, axes: Axes) -> None:
    def points(mode: str) -> list[Estimate]:
        cells = (at(mode, event) for event in _DIRECTIONS)
        return [median(results.values("recovery_ms", **cell) / 1e3) for cell in cells]

    bars = {mode: (points(mode), STYLES[mode]) for mode in MODES}
    figures.grouped_bars(axes, ["turned off", "falls silent"], bars)
    axes.set(xlabel="WiFi", ylabel="longest pause (s)")


def _draw_over_time(results: Results, axes: Axes) -> None:
    lines = {}
    for mode, style in STYLES.items():
        key = key_of(mode, OFF)
        samples = results.samples.filter(results.samples["cell"] == key)
        samples = samples.unique("time_ns", maintain_order=True)
        seconds = samples["time_ns"].to_numpy() / 1e9
        rates = np.diff(samples["bytes_delivered"].to_numpy()[::10]) * 8e-6
        lines[mode] = (seconds[10::10][: rates.size], rates, style)
    figures.series(axes, lines, "goodput, bins of 1 s (Mbit/s)")
    outages.shade(axes, results.scenarios[key])
    axes.set(xlabel="time (s)", xlim=(AWAY_S - 10, BACK_S + 15))


def notes(results: Results) -> Sequence[str]:
    """Why the pauses differ."""

    def pause(mode: str, event: str) -> str:
        return median_of("recovery_ms", at(mode, event), 1e-3)(results).text("s")

    def goodput(mode: str) -> str:
        return median_of("goodput_mbps", at(mode, OFF))(results).text("Mbit/s")

    return [
        "In full and backup mode, both subflows are open, and the client's REMOVE_ADDR over 3G "
        f"tells the server to move. The longest pauses are {pause(FULL, OFF)} and "
        f"{pause(BACKUP, OFF)}. In single-path mode, a handshake over 3G comes first: "
        f"{pause(SINGLE, OFF)}.",
        "In full mode, 3G's share of the data waits in a queue of 2 s and fills the receive "
        f"window, while WiFi idles: {goodput(FULL)}, and {goodput(BACKUP)} in backup mode. The "
        f"mechanisms of NSDI'12 against a full receive window give {goodput(FULL_M12)}.",
    ]


ENTRY = Entry(
    id="cellnet12-handover",
    title="Handover from WiFi to 3G and back in three modes (CellNet 2012)",
    question="A phone leaves its WiFi. How long does a connection pause if 3G is always used, open "
    "and idle, or not open at all?",
    references=(HANDOVER, EXPERIENCE),
    parameters=parameters(f"""
        WiFi | 8 Mbit/s, 20 ms RTT ± 1 ms, 54 packets (80 ms) | as in nsdi12-fig7
        3G | 2 Mbit/s, 150 ms RTT ± 5 ms, 334 packets (2 s) | as in nsdi12-fig7
        outage | WiFi is away from {AWAY_S} s to {BACK_S} s | ours
        WiFi is turned off | the client notices; download | CellNet'12
        WiFi falls silent | nobody notices; upload | ours
        modes | full_mesh, backup, single_path | CellNet'12
        M1,2 | opportunistic retransmission and penalisation | NSDI'12
        workload | 8 KiB blocks; 500 kB in both buffers | ours
    """),
    quick=Tier("quick", seeds=10, measured_s=60),
    full=Tier("full", seeds=20, measured_s=120),
    cells=cells,
    uncertain_parameters=WIFI_3G,
    claims=CLAIMS,
    panels=(
        Panel(
            "Longest pause",
            "Longest time without a delivered block around the moment when WiFi goes away.",
            _draw_pauses,
        ),
        Panel(
            "WiFi is turned off and on again",
            "Goodput in bins of one second, first seed. WiFi is down in the shaded time.",
            _draw_over_time,
        ),
    ),
    overview=Overview(
        {"event": "event", "mode": "mode"}, (GOODPUT, P95.called("p95 delay"), PAUSE_MS), "3g"
    ),
    notes=notes,
)
