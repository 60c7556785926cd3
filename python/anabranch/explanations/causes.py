"""The causes of lost capacity: their names, words and colours.

The names are those of the tables ``activities`` and ``capacity`` of a run with a ledger
(``anabranch-sim/src/ledger``). The first causes are the states of a subflow.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.reports.figures import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, YELLOW

NONE = 2**32 - 1
"""The index of nothing: no path, no subflow."""


@dataclass(frozen=True)
class Cause:
    """A cause of lost capacity, or a use of capacity.

    Attributes:
        name: Name in JSON and Parquet.
        words: Words in tables and figures.
        because: Ends the sentence "PATH was idle for a part of the time because …".
        colour: Colour in figures; only states have one.
        is_idle: Whether the link carried nothing meanwhile.
        is_overhead: Whether every transfer has it: headers and acknowledgements.
    """

    name: str
    words: str
    because: str = ""
    colour: str = "#999999"
    is_idle: bool = False
    is_overhead: bool = False


def _state(name: str, words: str, because: str, colour: str) -> Cause:
    return Cause(name, words, because, colour, is_idle=True)


STATES: tuple[Cause, ...] = (
    _state("sending", "sending at the path's rate", "it was sending", BLUE),
    _state(
        "congestion_window", "congestion window full",
        "the congestion window was full", SKY,
    ),
    _state("paced", "paced", "pacing held the next segment back", "#3d7ea6"),
    _state("remedy", "limited by a remedy", "a remedy limited the data in flight", "#0b5c5c"),
    _state("recovery", "recovering a loss", "losses were being repaired", YELLOW),
    _state("silent", "silent after a timeout", "the retransmission timer had expired", RED),
    _state("standby", "standing by as backup", "it was only a backup", "#c9b7e0"),
    _state("opening", "opening a subflow", "the handshake of its subflow took long", "#eeeeee"),
    _state(
        "receive_window", "receive window full", "the receive window was full", PURPLE
    ),
    _state("send_buffer", "send buffer full", "the send buffer was full", ORANGE),
    _state(
        "scheduler", "waiting for the scheduler", "the scheduler waited for another path", "#8a5a2b"
    ),
    _state(
        "application", "waiting for the application", "the application had nothing to send",
        "#a8d8b9",
    ),
    _state("reader", "waiting for the reader", "the receiver did not read", GREEN),
    _state(
        "fallen_back", "fallen back", "the connection had fallen back to TCP", BLACK
    ),
    _state("closed", "closed", "the subflow was closed", "#bbbbbb"),
    _state("absent", "not there yet", "no subflow used it yet", "#dddddd"),
)  # fmt: skip
"""The states of a subflow."""

_USES = (
    Cause("useful", "useful data"),
    Cause("headers", "headers of data segments", is_overhead=True),
    Cause("control", "segments without data", is_overhead=True),
    Cause("retransmitted", "retransmitted needlessly"),
    Cause("reinjected", "reinjected needlessly"),
    Cause("lost", "lost later, or under way at the end"),
    Cause("other_traffic", "other traffic"),
    Cause("outage", "the path was down"),
)

BY_NAME: dict[str, Cause] = {cause.name: cause for cause in (*STATES, *_USES)}
"""All causes, by their names in the tables of runs."""
