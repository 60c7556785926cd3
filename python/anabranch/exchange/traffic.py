#!/usr/bin/env python3
"""Traffic of a scenario over this host's sockets: traffic.py client|server JSON START.

JSON describes a flow: times in s, sizes in bytes, rates in bit/s. START is the time at which the
run begins, in s since the epoch. The host that receives the data prints the goodput. Before that,
the program switches off segmentation offload on all interfaces of its namespace, so that packets on
links have the sizes of packets on a wire.

Needs only Python's standard library, and Linux.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import random
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

MPTCP = 262  # IPPROTO_MPTCP
TCP_CONGESTION = 13  # Python has this name on Linux only
SEND_BUFFER, RECEIVE_BUFFER = 32, 33  # SO_SNDBUFFORCE and SO_RCVBUFFORCE: without the host's limits
OFFLOADS = (0x1F, 0x21, 0x24, 0x2C)  # ETHTOOL_STSO, _SUFO, _SGSO and _SGRO
SIOCETHTOOL = 0x8946
CHUNK = 1 << 16
REQUEST = struct.Struct("!QQ")  # begins a request: its length, and that of the responses


class FlowSide:
    """One side of a flow."""

    def __init__(self, role: str, about: dict[str, Any], start: float) -> None:
        self.about = about
        self.begin = start
        self.end = start + about["duration"]
        self.draws = random.Random(about["number"])
        senders = {"download": ["server"], "upload": ["client"], "both": ["client", "server"]}
        self.sends = role in senders[about["direction"]]
        self.receives = not self.sends or about["direction"] == "both"
        self.received = 0
        self.last = start
        self.error: OSError | None = None

    def draw(self, quantity: Any) -> Any:
        """A value of a constant or random quantity."""
        if not isinstance(quantity, dict):
            return float(quantity)
        kind = quantity["kind"]
        if kind == "uniform":
            return self.draws.uniform(quantity["min"], quantity["max"])
        if kind == "exponential":
            return self.draws.expovariate(1 / quantity["mean"])
        if kind == "pareto":
            shape = quantity["shape"]
            return self.draws.paretovariate(shape) * quantity["mean"] * (shape - 1) / shape
        return self.draws.lognormvariate(0, quantity["sigma"]) * quantity["median"]

    def size(self, quantity: Any) -> int:
        """A random or constant size or count, at least 1."""
        drawn: int = round(self.draw(quantity))
        return max(1, drawn)

    def is_over(self) -> bool:
        """Whether the run has ended."""
        return bool(time.time() >= self.end)

    def wait(self, until: float) -> None:
        """Wait for a time, but not beyond the end of the run."""
        time.sleep(max(0.0, min(until, self.end) - time.time()))

    def rounds(self) -> Iterator[int]:
        """The numbers of the workload's pieces, until the run ends."""
        number, count = 0, self.about["workload"].get("count")
        while not self.is_over() and (count is None or number < count):
            yield number
            number += 1

    def count(self, size: int) -> None:
        """Count received data."""
        self.last = time.time()
        if self.begin + self.about["warm_up"] <= self.last <= self.end:
            self.received += size

    def report(self, *, is_complete: bool) -> str:
        """The goodput until the end of the run, or until the last byte of a complete transfer."""
        since = self.begin + max(self.about["warm_up"], self.about["start"])
        measured = (self.last if is_complete else self.end) - since
        if measured <= 0 or self.received == 0:
            return f"{self.about['name']}: no data in the measured time"
        rate = self.received * 8 / measured / 1e6
        return (
            f"{self.about['name']}: goodput {rate:.3f} Mbit/s, {self.received} bytes in "
            f"{measured:.3f} s"
        )


def send(flow: FlowSide, connection: socket.socket) -> None:
    """Send the data of a workload that does not wait for requests."""
    work = flow.about["workload"]
    if work["kind"] == "bulk":
        remaining = work.get("size", float("inf"))
        while remaining > 0 and not flow.is_over():
            remaining -= connection.send(bytes(int(min(CHUNK, remaining))))
        return
    due = time.time()
    for _ in flow.rounds():
        if work["kind"] == "on_off":
            connection.sendall(bytes(flow.size(work["burst_size"])))
            due = max(due + flow.draw(work["interval"]), time.time())
        else:
            connection.sendall(bytes(work["block_size"]))
            due += work["block_size"] * 8 / work["rate"] if work["kind"] == "cbr" else 0.0
        flow.wait(due)


def receive(flow: FlowSide, connection: socket.socket) -> None:
    """Read and count data until the sender has finished."""
    while data := connection.recv(CHUNK):
        flow.count(len(data))


def ask(flow: FlowSide, connection: socket.socket) -> None:
    """Send requests, and read the responses."""
    work = flow.about["workload"]
    for _ in flow.rounds():
        began = time.time()
        responses = range(flow.size(work.get("responses", 1)))
        wanted = sum(flow.size(work["response_size"]) for _ in responses)
        length = max(REQUEST.size, flow.size(work["request_size"]))
        connection.sendall(REQUEST.pack(length, wanted).ljust(length, b"\0"))
        while wanted > 0:
            data = connection.recv(min(CHUNK, wanted))
            if not data:
                return
            flow.count(len(data))
            wanted -= len(data)
        pause = flow.draw(work.get("think_time", 0))
        flow.wait(max(time.time() + pause, began + flow.draw(work.get("interval", 0))))


def answer(connection: socket.socket) -> None:
    """Send the data that requests ask for."""
    while request := connection.recv(REQUEST.size, socket.MSG_WAITALL):
        length, wanted = REQUEST.unpack(request)
        connection.recv(length - REQUEST.size, socket.MSG_WAITALL)
        connection.sendall(bytes(wanted))


def converse(flow: FlowSide, connection: socket.socket) -> None:
    """Carry the workload over an open connection."""
    if flow.about["workload"]["kind"] == "request_response":
        if flow.sends:
            answer(connection)
        else:
            ask(flow, connection)
        return
    reader = threading.Thread(target=receive, args=(flow, connection), daemon=True)
    reader.start()
    if flow.sends:
        send(flow, connection)
        connection.shutdown(socket.SHUT_WR)
    reader.join()


def open_socket(about: dict[str, Any]) -> socket.socket:
    """A socket with the options of the flow, before it is connected."""
    protocol = MPTCP if about["protocol"] == "mptcp" else socket.IPPROTO_TCP
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, about["congestion_control"].encode())
    for key, option in (("send_buffer", SEND_BUFFER), ("receive_buffer", RECEIVE_BUFFER)):
        if key in about:
            made.setsockopt(socket.SOL_SOCKET, option, about[key])
    if about["nodelay"]:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def connect(flow: FlowSide) -> None:
    """Run the client of a connection."""
    about = flow.about
    flow.wait(flow.begin + about["start"])
    with open_socket(about) as connection:
        connection.bind((about["client"], 0))
        connection.connect((about["server"], about["port"]))
        converse(flow, connection)


def listen(flow: FlowSide) -> None:
    """Run the server of a connection. Linux lets subflows join only while the server listens."""
    about = flow.about
    with open_socket(about) as listener:
        listener.bind(("", about["port"]))
        listener.listen()
        connection, _ = listener.accept()
        with connection:
            converse(flow, connection)


def cross(flow: FlowSide, role: str) -> None:
    """Send the packets of cross-traffic, which nobody reads."""
    about = flow.about
    own, peer = (about[role], about["server" if role == "client" else "client"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind((own, about["port"]))
        if not flow.sends:
            flow.wait(flow.end)
            return
        payload = bytes(about["packet_size"] - 28)  # without the headers of IP and UDP
        pause = about["packet_size"] * 8 / about["rate"]
        due = flow.begin
        while not flow.is_over():
            # An off period interrupts the time to the next packet, and does not reset it.
            until = due + flow.draw(about["on"]) if "on" in about else flow.end
            while due < until and not flow.is_over():
                flow.wait(due)
                sender.sendto(payload, (peer, about["port"]))
                due += pause
            due += flow.draw(about["off"]) if "off" in about else 0.0


def offloads_off() -> None:
    """Make this host send packets that fit its links, as an adapter without offloads does."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for _, name in socket.if_nameindex():
            for command in OFFLOADS:
                value = array.array("I", [command, 0])
                request = struct.pack("16sP16x", name.encode(), value.buffer_info()[0])
                with contextlib.suppress(OSError):  # the loopback interface lacks some of them
                    fcntl.ioctl(control, SIOCETHTOOL, request)


def play(flow: FlowSide, role: str) -> None:
    """Run one side of a flow."""
    try:
        if flow.about["protocol"] == "udp":
            cross(flow, role)
        elif role == "client":
            connect(flow)
        else:
            listen(flow)
    except OSError as error:
        flow.error = error


def main() -> None:
    """Play the role of the command line until the traffic or the run ends."""
    role, about, start = sys.argv[1], json.loads(sys.argv[2]), float(sys.argv[3])
    offloads_off()
    flow = FlowSide(role, about, start)
    worker = threading.Thread(target=play, args=(flow, role), daemon=True)
    worker.start()
    worker.join(flow.end - time.time())
    if flow.error is not None:
        sys.exit(f"{about['name']}: {role}: {flow.error}")
    if flow.receives and about["protocol"] != "udp":
        print(flow.report(is_complete=not worker.is_alive()), flush=True)


if __name__ == "__main__":
    main()
