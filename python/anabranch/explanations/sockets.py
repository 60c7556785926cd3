"""Contents of the text of ``ss -tiMm``: sockets, and the state of each subflow.

The kernel's clocks ``rwnd_limited`` and ``sndbuf_limited`` are meant for plain TCP. A subflow of
Multipath TCP is given no data that the shared window forbids, so it reports no ``rwnd_limited``.
Its ``sndbuf_limited`` starts while the connection's writer waits, and does not stop when the
subflow has data again. The states of subflows therefore come from what each snapshot shows of
queues and windows.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from anabranch.explanations.causes import BY_NAME
from anabranch.files import reading

NETWORK, UNKNOWN = "network", "unknown"
WORDS = {
    NETWORK: "limited by the path or its congestion window",
    UNKNOWN: "send buffer full, or waiting for the application",
    **{name: BY_NAME[name].words for name in (
        "recovery", "silent", "standby", "receive_window", "send_buffer", "application",
    )},
}  # fmt: skip
"""The states that snapshots show, in words."""

_BECAUSE = {
    UNKNOWN: "the send buffer was full or the application had nothing to send",
    **{name: BY_NAME[name].because for name in (
        "recovery", "silent", "standby", "receive_window", "send_buffer", "application",
    )},
}  # fmt: skip
_HEAD = re.compile(r"(Netid\s+)?State\s+Recv-Q\s+Send-Q\b")
_KINDS = ("tcp", "mptcp")
_STATES = ("ESTAB", "FIN-WAIT-1", "CLOSE-WAIT")
"""The states in which a socket may send data."""
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]{1,16}")
_RATES = ("send", "pacing_rate", "delivery_rate", "max_pacing_rate")
"""Keys whose values are separate words."""
_TOKEN = re.compile(r"(\w+)\(id:(\d+)\)/(\w+)\(id:(\d+)\)")
_NAMED = 0.15
"""Share of the snapshots from which a state is named (this project)."""
_FULL = 2 / 3
"""A writer waits until a third of the send buffer is free (sk_stream_write_space), so more than
this share of it is in use while it waits."""


@dataclass(frozen=True)
class Socket:
    """A socket in a snapshot.

    Attributes:
        kind: ``"tcp"`` or ``"mptcp"``.
        values: The values of ss by name, as text.
        flags: The words of ss that have no value, such as ``app_limited``.
    """

    kind: str
    local: str
    peer: str
    send_queue: int
    values: dict[str, str]
    flags: frozenset[str]

    def number(self, key: str, default: float = 0.0) -> float:
        """The number at the start of a value, such as 7428 of ``busy:7428ms(66.3%)``."""
        found = re.match(r"-?\d{1,20}(\.\d+)?", self.values.get(key, ""))
        return float(found.group()) if found else default

    def hexadecimal(self, key: str) -> int | None:
        """A value in hexadecimal, such as ``write_seq``; `None` if there is none."""
        found = _HEXADECIMAL.fullmatch(self.values.get(key, ""))
        return int(found.group(), 16) if found else None

    def memory(self, key: str) -> int | None:
        """A value of ``skmem``, such as ``"tb"``; `None` without the option ``-m``."""
        found = re.search(rf"\b{key}(\d{{1,20}})\b", self.values.get("skmem", ""))
        return int(found.group(1)) if found else None

    @property
    def token(self) -> str | None:
        """The connection's local token, which a subflow shares with its Multipath TCP socket."""
        if self.kind == "mptcp":
            return self.values.get("token")
        found = _TOKEN.fullmatch(self.values.get("token", ""))
        return found.group(3) if found else None

    @property
    def name(self) -> str:
        """Both ends."""
        return f"{self.local} to {self.peer}"

    @property
    def probes_window(self) -> bool:
        """Whether the peer has closed its window, which this host probes.

        Linux calls the timer of these probes ``persist`` (``-o``), and backs it off like that of
        retransmissions. It probes only while nothing is unacknowledged (tcp_check_probe_timer).
        """
        if self.values.get("timer", "").startswith("(persist"):
            return True
        return self.number("backoff") > 0 and self.number("unacked") == 0


def read(file: Path) -> list[list[Socket]] | None:
    """The snapshots in a file with the output of ss; `None` if the file has no such output.

    Raises:
        InputError: if the file cannot be read.
    """
    with reading(file, "name a readable text file"):
        text = file.read_text(encoding="utf-8", errors="replace")
    snapshots: list[list[Socket]] = []
    known: set[tuple[str, str]] = set()
    for head, details in _entries(text.splitlines()):
        if _HEAD.match(head):
            snapshots.append([])
            known.clear()
        elif socket := _socket(head.split(), details):
            key = (socket.kind, socket.name)
            # Without headings (ss -H), a snapshot begins where a socket comes again.
            if not snapshots or key in known:
                snapshots.append([])
                known.clear()
            known.add(key)
            snapshots[-1].append(socket)
    return snapshots or None


def _entries(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each line of a socket, with the indented lines that follow it."""
    head, details = "", ""
    for line in lines:
        if line[:1].isspace():
            details += f" {line}"
            continue
        if head:
            yield head, details
        head, details = line, ""
    if head:
        yield head, details


def _socket(words: list[str], details: str) -> Socket | None:
    # `ss -t` alone has no column Netid.
    kind = words.pop(0) if words[:1] and words[0] in _KINDS else "tcp"
    if len(words) < 5 or words[0] not in _STATES:
        return None
    _, _, queue, local, peer, *rest = words
    if not re.fullmatch(r"[0-9]{1,18}", queue):
        return None
    values, flags = _information([*rest, *details.split()])
    local, peer = (re.sub(r"%[^:\]]+", "", each) for each in (local, peer))
    return Socket(kind, local, peer, int(queue), values, flags)


def _information(words: list[str]) -> tuple[dict[str, str], frozenset[str]]:
    values: dict[str, str] = {}
    flags = set()
    places = iter(words)
    for word in places:
        key, colon, value = word.partition(":")
        if word in _RATES:
            values[word] = next(places, "")
        elif colon and key not in values:
            values[key] = value
        elif not colon:
            flags.add(word)
    return values, frozenset(flags)


@dataclass(frozen=True)
class Moment:
    """A connection in one snapshot. Plain TCP has one subflow and no `whole`.

    Attributes:
        whole: The Multipath TCP socket; `None` if ss did not show it.
    """

    whole: Socket | None
    subflows: Sequence[Socket]

    @property
    def waiting(self) -> int:
        """Bytes that the program wrote and the peer did not acknowledge."""
        if self.whole is not None:
            written, acked = (self.whole.hexadecimal(key) for key in ("write_seq", "snd_una"))
            if written is not None and acked is not None:
                return (written - acked) % 2**64
        return sum(each.send_queue for each in self.subflows)

    @property
    def window(self) -> float | None:
        """The receive window in bytes, which the subflows share; `None` if ss does not show it."""
        known = [each.number("snd_wnd") for each in self.subflows if "snd_wnd" in each.values]
        return max(known, default=None)

    @property
    def is_closed(self) -> bool:
        """Whether the peer has closed the window."""
        return any(each.probes_window for each in self.subflows)

    def state(self, subflow: Socket) -> str:
        """The state of a subflow at this moment, in the order in which the engine checks."""
        if subflow.probes_window:
            return "receive_window"
        if subflow.number("backoff") > 0:
            return "silent"
        if subflow.number("lost") > 0 or subflow.number("retrans") > 0:
            return "recovery"
        queued, mss = subflow.number("notsent"), subflow.number("mss", 1)
        if subflow.number("unacked") >= subflow.number("cwnd", 1):
            return NETWORK
        if queued >= mss:  # less than a segment may wait for Nagle's algorithm
            in_flight = subflow.send_queue - queued
            is_full = in_flight + mss > subflow.number("snd_wnd", math.inf)
            return "receive_window" if is_full else NETWORK
        if subflow.send_queue == 0 and {*_flags_of(subflow)} & {"B", "b"}:
            return "standby"
        if self.waiting == 0:
            return "application"
        if self.is_closed or (self.window and self.waiting + mss > self.window):
            return "receive_window"
        return self._of_writer()

    def _of_writer(self) -> str:
        """The send buffer or the application, for a subflow with room."""
        owner = self.whole or self.subflows[0]
        used, size = owner.memory("w"), owner.memory("tb")
        if used is None or not size:
            return UNKNOWN
        return "send_buffer" if used >= _FULL * size else "application"


def _flags_of(subflow: Socket) -> str:
    return subflow.values.get("flags", "")


@dataclass(frozen=True)
class SocketExplanation:
    """A connection that sends, over all snapshots."""

    token: str | None
    moments: Sequence[Moment] = field(repr=False)

    @property
    def last(self) -> Moment:
        """The last snapshot."""
        return self.moments[-1]

    @property
    def name(self) -> str:
        """Both ends of the first subflow, and the protocol."""
        protocol = "TCP" if self.token is None else "Multipath TCP"
        return f"{protocol} {(self.last.whole or self.last.subflows[0]).name}"

    @property
    def sent(self) -> float:
        """Bytes acknowledged on all subflows."""
        return sum(each.number("bytes_acked") for each in self.last.subflows)

    @cached_property
    def states(self) -> dict[str, Counter[str]]:
        """Number of snapshots in which each subflow was in each state."""
        found: dict[str, Counter[str]] = {}
        for moment in self.moments:
            for subflow in moment.subflows:
                found.setdefault(subflow.name, Counter())[moment.state(subflow)] += 1
        return found

    @cached_property
    def labels(self) -> dict[str, str]:
        """A short name of each subflow: the end that tells it from the others."""
        every = {each.name: each for moment in self.moments for each in moment.subflows}
        ends = {f"to {each.peer}": name for name, each in every.items()}
        if len(ends) < len(every):
            ends = {f"from {each.local}": name for name, each in every.items()}
        known = {name: label for label, name in ends.items()}
        return known if len(known) == len(every) else {name: name for name in every}

    def share(self, subflow: str, state: str) -> float:
        """Share of a subflow's snapshots in a state."""
        counts = self.states[subflow]
        return counts[state] / counts.total()

    @cached_property
    def main(self) -> tuple[str, str, float] | None:
        """Subflow, state and share of the most frequent state other than the network.

        Of several subflows, the one with the shortest round-trip time is named. `None` if no such
        state is frequent.
        """
        rtt = {each.name: each.number("rtt") for each in self.last.subflows}
        found = [
            (subflow, state, self.share(subflow, state))
            for subflow, counts in self.states.items()
            for state in counts
            if state not in (NETWORK, "standby")
        ]
        best = max(found, key=lambda each: (each[2], -rtt.get(each[0], 0.0)), default=None)
        return best if best is not None and best[2] >= _NAMED else None

    def finding(self) -> list[str]:
        """Limits of the connection, in a few sentences."""
        count = len(self.moments)
        where = "the snapshot" if count == 1 else f"{count} snapshots"
        clock = self._clock()
        if clock is not None:
            return [f"{self.name}:", clock]
        if self.main is None:
            return [f"{self.name}:", f"in {where}, its paths or congestion windows were the limit."]
        subflow, state, share = self.main
        ends = f"the subflow {self.labels[subflow]}" if self.token else "it"
        verb = (
            "was repairing losses" if state == "recovery" else f"waited because {_BECAUSE[state]}"
        )
        if state == "receive_window" and self.is_closed(subflow):
            verb, behind = "waited because the receiver had closed its window", ""
        elif state == "receive_window" and self.token:
            behind = f" behind {self.behind(subflow)}"
        else:
            behind = ""
        often = "at this moment" if count == 1 else f"in {share * 100:.0f} % of {where}"
        return [f"{self.name}:", f"{ends} {verb}{behind} {often}."]

    def _clock(self) -> str | None:
        """Evidence of plain TCP's clock about the receive window, if that was the limit."""
        if self.token is not None:
            return None
        subflow = self.last.subflows[0]
        busy, limited = (subflow.number(key) for key in ("busy", "rwnd_limited"))
        if not busy or limited < 0.5 * busy:
            return None
        return (
            f"the receive window was full for {limited / busy * 100:.0f} % of the "
            f"{busy / 1e3:.1f} s in which it had data to send (rwnd_limited)."
        )

    def is_closed(self, subflow: str) -> bool:
        """Whether the window was closed in most snapshots in which the subflow waited for it."""
        closed = [
            moment.is_closed
            for moment in self.moments
            for each in moment.subflows
            if each.name == subflow and moment.state(each) == "receive_window"
        ]
        return 2 * sum(closed) > len(closed)

    def behind(self, waiting: str) -> str:
        """The subflow that probably has the oldest data: that with the longest round-trip time."""
        others = [each for each in self.last.subflows if each.send_queue and each.name != waiting]
        if not others:
            return "its own data"
        return f"that {self.labels[max(others, key=lambda each: each.number('rtt')).name]}"


def explanations(snapshots: Sequence[Sequence[Socket]]) -> list[SocketExplanation]:
    """The connections that send, those that sent most first.

    Raises:
        InputError: if there is none.
    """
    moments: dict[str, tuple[str | None, list[Moment]]] = {}
    for snapshot in snapshots:
        whole = {each.token: each for each in snapshot if each.kind == "mptcp"}
        grouped: dict[str, list[Socket]] = {}
        for each in snapshot:
            if each.kind == "tcp":
                grouped.setdefault(each.token or each.name, []).append(each)
        for key, subflows in grouped.items():
            token = subflows[0].token
            found = moments.setdefault(key, (token, []))[1]
            found.append(Moment(whole.get(token) if token else None, subflows))
    known = [SocketExplanation(token, found) for token, found in moments.values()]
    sending = [each for each in known if any(_sends(each.last, s) for s in each.last.subflows)]
    return sorted(sending, key=lambda each: -each.sent)


def _sends(moment: Moment, subflow: Socket) -> bool:
    """Whether the subflow sends more than requests and acknowledgements."""
    return subflow.number("bytes_acked") > subflow.number("bytes_received")
