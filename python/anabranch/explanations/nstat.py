"""Findings about Multipath TCP in the counters of ``nstat``.

The counters belong to the host, or to its network namespace, and count all of its connections.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from anabranch.files import reading

_LINE = re.compile(r"([A-Z]\w+)\s+(\d{1,20})(?:\s+[\d.]+)?\s*")

_MEANING = {
    "MPTcpExtMPCapableFallbackSYNACK": "fell back to TCP: the SYN/ACK lacked MP_CAPABLE",
    "MPTcpExtMPCapableFallbackACK": "fell back to TCP: the third ACK lacked MP_CAPABLE",
    "MPTcpExtMPCapableDataFallback": "fell back to TCP: the first data had no option",
    "MPTcpExtMPFallbackTokenInit": "were plain TCP from the start: no token could be made",
    "MPTcpExtMPCapableSYNTXDrop": "sent SYNs without MP_CAPABLE after losses of SYNs with it",
    "MPTcpExtMPCapableSYNTXDisabled": "were plain TCP: earlier SYNs with MP_CAPABLE were lost",
    "MPTcpExtDssFallback": "fell back to TCP: data arrived without a mapping",
    "MPTcpExtDSSCorruptionFallback": "fell back to TCP: a checksum was wrong",
    "MPTcpExtMD5SigFallback": "were plain TCP because of TCP's MD5 signatures",
    "MPTcpExtSimultConnectFallback": "fell back to TCP: both ends connected at once",
    "MPTcpExtInfiniteMapTx": "fallbacks announced by infinite mappings",
    "MPTcpExtInfiniteMapRx": "fallbacks that the peer announced by infinite mappings",
    "MPTcpExtFallbackFailed": "fallbacks that were no longer possible",
    "MPTcpExtBlackhole": "times that Multipath TCP was switched off because SYNs with it were lost",
    "MPTcpExtMPJoinNoTokenFound": "joins whose token was unknown (a load balancer?)",
    "MPTcpExtMPJoinSynAckHMacFailure": "joins refused: the HMAC of the SYN/ACK was wrong",
    "MPTcpExtMPJoinAckHMacFailure": "joins refused: the HMAC of the third ACK was wrong",
    "MPTcpExtMPJoinRejected": "joins refused by the limits (ip mptcp limits)",
    "MPTcpExtMPJoinSynTxConnectErr": "joins that found no route",
    "MPTcpExtAddAddrDrop": "announced addresses ignored (ip mptcp limits)",
    "MPTcpExtSubflowStale": "subflows set aside after repeated timeouts",
    "MPTcpExtDSSCorruptionReset": "subflows reset: a checksum was wrong",
    "MPTcpExtMPFailRx": "checksum failures that the peer reported",
    "MPTcpExtMPRstRx": "subflows that the peer reset",
    "MPTcpExtRcvPruned": "segments dropped: the receive buffer had no memory",
    "MPTcpExtNoDSSInWindow": "segments beyond the receive window, dropped",
    "MPTcpExtOFOQueue": "segments that waited for earlier data (head-of-line blocking)",
    "MPTcpExtDuplicateData": "segments whose data had arrived before",
    "MPTcpExtMPTCPRetrans": "retransmissions at the data level",
    "TcpRetransSegs": "segments retransmitted on their subflow",
    "TcpExtTCPTimeouts": "retransmission timeouts",
}
"""Meaning of a counter above zero.

Other counters only say that Multipath TCP is in use. ``SndWndShared`` and ``RcvWndShared`` count
that a subflow takes over the connection's window, not that the window is full.
"""


def read(file: Path) -> dict[str, int] | None:
    """The counters in the output of nstat; `None` if the file has no such output.

    Raises:
        InputError: if the file cannot be read.
    """
    with reading(file, "name a readable text file"):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    found = {each[1]: int(each[2]) for line in lines if (each := _LINE.fullmatch(line))}
    return found or None


def meanings(counters: Mapping[str, int]) -> list[tuple[str, int, str]]:
    """Name, count and meaning of the counters that say why Multipath TCP is slow or absent."""
    return [
        (name, counters[name], meaning)
        for name, meaning in _MEANING.items()
        if counters.get(name, 0) > 0
    ]
