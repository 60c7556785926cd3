"""Shared by the entries about WiFi and 3G: links, curves, and a precondition."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from anabranch.gallery.claims import Needs, carried
from anabranch.gallery.shared.connections import AS_LINUX_COUNTS, flow, network_path
from anabranch.reports.figures import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, Style
from anabranch.results.folder import Factor
from anabranch.scenarios.scenario import Blocks, Bulk, Connection

TCP_WIFI = "TCP over WiFi"
TCP_3G = "TCP over 3G"
MPTCP = "MPTCP"
MPTCP_M1 = "MPTCP+M1"
MPTCP_M12 = "MPTCP+M1,2"
MPTCP_M12_NSDI = "MPTCP+M1,2 (2012)"

STYLES = {
    TCP_WIFI: Style(BLUE),
    TCP_3G: Style(PURPLE, "v-."),
    MPTCP: Style(RED, "s--"),
    MPTCP_M1: Style(ORANGE, "D.."),
    MPTCP_M12: Style(GREEN, "^-"),
    MPTCP_M12_NSDI: Style(SKY, "x:"),
}

M12: dict[str, Any] = {"opportunistic_retransmission": True, "penalisation": "conext13"}
"""Opportunistic retransmission (M1) and penalisation (M2) in the form of CoNEXT'13."""
_REMEDIES: dict[str, dict[str, Any]] = {
    MPTCP_M1: {"opportunistic_retransmission": True},
    MPTCP_M12: M12,
    MPTCP_M12_NSDI: {**M12, "penalisation": "nsdi12"},
}

_BLOCKS = Blocks(block_size="8KiB")
WIFI = network_path("wifi", "8Mbit/s", "10ms", "54packets")
THREE_G = network_path("3g", "2Mbit/s", "75ms", "334packets")


def connection(
    curve: str, send: str, receive: str, workload: Bulk | Blocks = _BLOCKS
) -> Connection:
    """The connection of a curve, with the given buffers. By default, it carries 8 KiB blocks."""
    return flow(
        {TCP_WIFI: ("wifi",), TCP_3G: ("3g",)}.get(curve, ("wifi", "3g")),
        send_buffer=send,
        receive_buffer=receive,
        remedies=_REMEDIES.get(curve),
        workload=workload,
    )


def as_requested(connection: Connection) -> Connection:
    """The connection with buffers and scheduler of Linux, as for a program that requests buffers.

    Linux doubles the requested sizes and charges overhead to them. With windows as small as these,
    its own scheduler still uses both paths, and the lowest-RTT scheduler does not.
    """
    scheduler = "linux" if connection.protocol == "mptcp" else connection.scheduler
    return dataclasses.replace(connection, host=AS_LINUX_COUNTS, scheduler=scheduler)


def used(*cells: Mapping[str, Factor]) -> Needs:
    """The precondition that 3G carried over 1 % of the bytes in the runs of each cell."""
    return carried("3g", *cells, of=np.median)
