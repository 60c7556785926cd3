"""Agreement of `anabranch explain` with the clocks of Linux's plain TCP.

    unshare -rn python studies/agreement.py

draws scenarios with a small receive buffer, with neither buffer small, and with a small send
buffer. Each runs with Linux at both ends of an emulated link, in real time. The sender reads the
clocks ``tcpi_rwnd_limited`` and ``tcpi_sndbuf_limited`` at the end. `explain` attributes the time
of the same scenario in virtual time. The script prints the table of docs/results/explain.md, and
``--json docs/results/explain.json`` replaces its rows. Seeds below 2001 were used while the script
was built, and those from 2001 on judge.

The sender is a program that writes with blocking calls. With ``--poll``, it writes without blocking
and waits with poll, as the hosts of live runs do. With ``--paced``, the kernel paces its segments.
Linux 6.18 starts the clock of the send buffer only if a segment is sent while the program waits,
and empties the queue (tcp_cwnd_validate). Without pacing, that did not happen once. The sender
therefore also samples, every 5 ms, whether its call waits although everything written was sent and
the congestion window has room. This share judges the send buffer.
"""

from __future__ import annotations

import argparse
import array
import ctypes
import fcntl
import multiprocessing
import os
import random
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from measured import update

from anabranch import _core
from anabranch.explanations.explanation import Explanation
from anabranch.runs.run import run_scenario
from anabranch.scenarios import loading
from anabranch.scenarios.scenario import Blocks, Connection, NetworkPath, Scenario

FIRST_JUDGED = 2001
KINDS = ("receive buffer", "neither", "send buffer")
EACH = 4
SECONDS = 10.0
MOST = 0.05
"""Share of the run by which the two may differ."""

_CLONE_NEWNET = 0x40000000
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_MTU = 1500
_WRITE = 8 << 10
_SO_MAX_PACING_RATE, _UNREACHED = 47, 125_000_000
"""A rate in bytes/s that the links do not reach: the congestion window decides the pace."""
_BUSY, _RWND_LIMITED, _SNDBUF_LIMITED = 168, 176, 184
"""Offsets in struct tcp_info of microseconds, as u64."""
_QUEUES = (24, 80, 144)
"""Offsets in struct tcp_info of segments in flight, of the congestion window in segments, and of
bytes that were not sent yet, as u32."""
_SAMPLE_S = 0.005
_SENDER, _RECEIVER, _PORT = "10.9.0.1", "10.9.0.2", 5001


@dataclass(frozen=True)
class Writing:
    """The sender's writes."""

    polls: bool = False
    paced: bool = False


@dataclass(frozen=True)
class Case:
    """A drawn scenario: one path, and what the programs request as buffers, in bytes."""

    kind: str
    mbps: float
    delay_ms: float
    queue: int
    send_buffer: int
    receive_buffer: int

    def scenario(self) -> _core.Scenario:
        """The scenario in virtual time, with the engine as Linux."""
        path = NetworkPath(
            name="path", rate=f"{self.mbps}Mbit/s", delay=f"{self.delay_ms}ms",
            limit=f"{self.queue}packets",
        )  # fmt: skip
        connection = Connection(
            name="main", protocol="tcp", congestion_control="cubic_linux",
            host={"kind": "linux", "buffers": "socket"}, send_buffer=f"{self.send_buffer}B",
            receive_buffer=f"{self.receive_buffer}B", workload=Blocks(block_size=f"{_WRITE}B"),
        )  # fmt: skip
        scenario = Scenario(
            name="agreement", duration=f"{SECONDS}s", paths=(path,), connections=(connection,)
        )
        return loading.of(scenario)


def draw(seed: int, kind: str) -> Case:
    """A case that depends on the seed and the kind alone.

    The small buffers have about the sizes for which the model of Linux is calibrated (100 kB and
    more).
    """
    draws = random.Random(f"agreement {seed} {kind}")
    mbps, delay = round(draws.uniform(15, 30), 1), round(draws.uniform(40, 80))
    product = mbps * 1e6 / 8 * 2 * delay / 1e3
    queue = max(30, round(product / _MTU * draws.uniform(0.7, 1.5)))
    small = round(product * draws.uniform(0.25, 0.6))
    ample = round(6 * (product + queue * _MTU))
    send = small if kind == "send buffer" else ample
    receive = small if kind == "receive buffer" else ample
    return Case(kind, mbps, delay, queue, send, receive)


@dataclass
class Direction:
    """A link in one direction: a rate, a queue that drops at its end, and a delay."""

    into: int
    out: int
    bits_per_ns: float
    delay_ns: int
    queue: int
    free_at: int = 0
    waiting: deque[int] = field(default_factory=deque)
    """Times at which packets start to be transmitted."""
    flying: deque[tuple[int, bytes]] = field(default_factory=deque)

    def take(self, now: int) -> None:
        """Take a packet from the device."""
        packet = os.read(self.into, 2 * _MTU)
        while self.waiting and self.waiting[0] <= now:
            self.waiting.popleft()
        if len(self.waiting) >= self.queue:
            return
        start = max(now, self.free_at)
        if start > now:
            self.waiting.append(start)
        self.free_at = start + round(8 * len(packet) / self.bits_per_ns)
        self.flying.append((self.free_at + self.delay_ns, packet))

    def deliver(self, now: int) -> int | None:
        """Deliver what has arrived; return when the next packet does."""
        while self.flying and self.flying[0][0] <= now:
            os.write(self.out, self.flying.popleft()[1])
        return self.flying[0][0] if self.flying else None


def emulate(case: Case, devices: tuple[int, int], until: threading.Event) -> None:
    """Carry packets between two devices."""
    delay = round(case.delay_ms * 1e6)
    links = [
        Direction(into, out, case.mbps / 1e3, delay, case.queue)
        for into, out in (devices, devices[::-1])
    ]
    by_device = {link.into: link for link in links}
    while not until.is_set():
        now = time.monotonic_ns()
        due = [at for link in links if (at := link.deliver(now)) is not None]
        left = min([*due, now + 50_000_000]) - time.monotonic_ns()
        for device in select.select([*by_device], [], [], max(left, 0) / 1e9)[0]:
            by_device[device].take(time.monotonic_ns())


def host(address: str, pipe: socket.socket, case: Case, *, how: Writing) -> None:
    """A process with its own network: a device, and the sender or the receiver."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", b"tun0", _IFF_TUN | _IFF_NO_PI))
    for command in (
        f"addr add {address}/24 dev tun0",
        f"link set tun0 mtu {_MTU} up",
    ):
        subprocess.run(["ip", *command.split()], check=True)
    _set("net/ipv4/tcp_no_metrics_save", "1")
    _set("net/ipv4/tcp_ecn", "0")
    pipe.sendmsg([b"d"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [device]))])
    pipe.recv(1)
    made = socket.socket()
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, case.send_buffer)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, case.receive_buffer)
    if address == _RECEIVER:
        receive(made, pipe)
    else:
        send(made, pipe, how=how)


def _set(name: str, value: str) -> None:
    with open(f"/proc/sys/{name}", "w", encoding="ascii") as file:
        file.write(value)


def receive(listener: socket.socket, pipe: socket.socket) -> None:
    """Read as fast as possible."""
    listener.bind((_RECEIVER, _PORT))
    listener.listen()
    pipe.send(b"l")
    connection, _ = listener.accept()
    while connection.recv(1 << 16):
        pass


def send(made: socket.socket, pipe: socket.socket, *, how: Writing) -> None:
    """Write as fast as possible, and report the clocks after the duration of the run."""
    started = time.monotonic()
    made.connect((_RECEIVER, _PORT))
    made.setblocking(not how.polls)
    if how.paced:
        made.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, _UNREACHED)
    waits = threading.Event()
    threading.Thread(target=_write, args=(made, waits), daemon=True).start()
    samples = []
    while time.monotonic() < started + SECONDS:
        info = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        unacked, cwnd, notsent = (struct.unpack_from("I", info, at)[0] for at in _QUEUES)
        samples.append(waits.is_set() and not notsent and unacked < cwnd)
        time.sleep(_SAMPLE_S)
    pipe.send(info + struct.pack("d", sum(samples) / len(samples)))
    os._exit(0)


def _write(made: socket.socket, waits: threading.Event) -> None:
    """Write, and tell when a call waits for room."""
    data = bytes(_WRITE)
    room = select.poll()
    room.register(made, select.POLLOUT)
    while True:
        waits.set()
        try:
            made.send(data)
        except BlockingIOError:
            room.poll()
        waits.clear()


def kernels(case: Case, *, how: Writing) -> tuple[float, float, float]:
    """Shares of the run with Linux at both ends.

    They are ``rwnd_limited``, the samples in which only the send buffer stopped the program, and
    ``sndbuf_limited``.
    """
    processes, pipes, devices = [], [], []
    for address in (_SENDER, _RECEIVER):
        mine, theirs = socket.socketpair()
        process = multiprocessing.get_context("fork").Process(
            target=host, args=(address, theirs, case), kwargs={"how": how}, daemon=True
        )
        process.start()
        theirs.close()
        _, passed, _, _ = socket.recv_fds(mine, 1, 1)
        processes.append(process)
        pipes.append(mine)
        devices.append(passed[0])
    over = threading.Event()
    network = threading.Thread(target=emulate, args=(case, (devices[0], devices[1]), over))
    network.start()
    pipes[1].send(b"g")
    pipes[1].recv(1)
    pipes[0].send(b"g")
    info = pipes[0].recv(1024)
    over.set()
    network.join()
    for process in processes:
        process.terminate()
        process.join()
    for device in devices:
        os.close(device)
    receive_us, send_us = (
        struct.unpack_from("Q", info, at)[0] for at in (_RWND_LIMITED, _SNDBUF_LIMITED)
    )
    (sampled,) = struct.unpack_from("d", info, len(info) - 8)
    return receive_us / 1e6 / SECONDS, sampled, send_us / 1e6 / SECONDS


def explained_shares(case: Case) -> tuple[float, float]:
    """The same shares, as `explain` attributes the time of the run in virtual time."""
    explained = Explanation(run_scenario(case.scenario(), 1, ledger=True), 0)

    def share(state: str) -> float:
        rows = explained.activities.filter(pl.col("state") == state)
        return float((rows["until_ns"] - rows["from_ns"]).sum()) / 1e9 / SECONDS

    return share("receive_window"), share("send_buffer")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--from", dest="first", type=int, default=FIRST_JUDGED, metavar="SEED")
    parser.add_argument("--kind", choices=KINDS, help="Only these scenarios.")
    parser.add_argument("--each", type=int, default=EACH)
    parser.add_argument("--poll", action="store_true", help="Write without blocking, with poll.")
    parser.add_argument("--paced", action="store_true", help="Let the kernel pace segments.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Replace the rows of the result.")
    chosen = parser.parse_args()
    how = Writing(polls=chosen.poll, paced=chosen.paced)
    print("| small | path | window: explain | clock | send buffer: explain | samples | clock | |")
    print("|---|---|--:|--:|--:|--:|--:|---|")
    kinds = [chosen.kind] if chosen.kind else KINDS
    agreed: dict[str, int] = dict.fromkeys(kinds, 0)
    rows: list[tuple[str, ...]] = []
    for kind in agreed:
        for seed in range(chosen.first, chosen.first + chosen.each):
            case = draw(seed, kind)
            window, sampled, clock = kernels(case, how=how)
            pairs = [*zip(explained_shares(case), (window, sampled), strict=True)]
            agrees = all(abs(one - other) <= MOST for one, other in pairs)
            agreed[kind] += agrees
            path = f"{case.mbps} Mbit/s, {2 * case.delay_ms} ms"
            cells = [f"{each * 100:.1f} %" for each in (*pairs[0], *pairs[1], clock)]
            rows.append((kind, path, *cells, "yes" if agrees else "no"))
            print(f"| {' | '.join(rows[-1])} |", flush=True)
    print("\n" + ", ".join(f"{kind}: {count} of {chosen.each}" for kind, count in agreed.items()))
    if chosen.json:
        update(chosen.json, "clocks", rows, f"unshare -rn python {' '.join(sys.argv)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
