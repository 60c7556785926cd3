"""Shared by the entries about WiFi and 3G: links, curves, and a precondition."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from anabranch.gallery.claims import Needs, carried
from anabranch.gallery.parameters import parameters
from anabranch.gallery.shared.connections import AS_LINUX_COUNTS, flow, network_path
from anabranch.gallery.systems import ON_MININET, Source
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
    TCP_WIFI: Style(BLUE, "-", "o"),
    TCP_3G: Style(PURPLE, (0, (6, 1.5, 1, 1.5)), "v"),
    MPTCP: Style(RED, (0, (4, 1.5)), "s"),
    MPTCP_M1: Style(ORANGE, (0, (2, 1)), "D"),
    MPTCP_M12: Style(GREEN, "-", "^"),
    MPTCP_M12_NSDI: Style(SKY, (0, (1, 1)), "x"),
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


STACK_PARAMETERS = parameters("""
    congestion control | <congestion control> (RFC 6356) | this project: LIA with one subflow is
        NewReno, so only the paths differ
    scheduler | lowest RTT | default of the kernels of NSDI'12 and CS244
    penalisation (M2) | the form of CoNEXT'13, unless a curve says 2012 | CS244'14 and '15 ran
        kernels of May 2014, which had this form
    sizes of buffers | as a program requests them; KiB = 1024 bytes, kB = 1000 bytes | the kernel
        doubles them, and charges the memory of segments
    start of the connection | within 200 ms; it depends on the seed
    jitter | uniform, ± the value; on Mininet's links in both directions, else in that of the data
""")


NSDI12_RAN = (
    "NSDI 2012 ran the original kernel of its time between two servers, over links shaped by tc."
)
NSDI12_SYSTEM = Source(NSDI12_RAN, ("remedies",))


def cs244_system(source: str) -> Source:
    """The system of a reproduction in Stanford's course CS244."""
    says = (
        f"{source} ran the original kernel of May 2014 (Linux 3.14) on Mininet. It does not state "
        "where delays were applied, so netem's fault is inferred."
    )
    return Source(says, ("remedies",), ON_MININET)


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
