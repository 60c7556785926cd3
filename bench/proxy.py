"""Load test of the proxy in namespaces of its own: throughput, idle latency, and many connections.

    python3 bench/proxy.py [--only PART] [--connections 1000] [--minutes 60]
                           [--json docs/results/proxy.json]

Client, relay and destination have a network namespace each. Two veth pairs without a limit join
client and relay. The script measures, in the same session:

* throughput through both proxies, through others with the kernel's Multipath TCP (both ends of
  shadowsocks, and microsocks, which is one proxy), and of the bare copy between TUN devices
  (`anabranch-bench-tun`), also per CPU second;
* the time to the first byte of small answers, compared with a direct connection;
* the SHA-256 of the received and of the generated data of a large transfer;
* a profile of both proxies' processes without privileges during transfers, with `perf`;
* memory of both proxies while connections stay open and carry messages.

It needs root, or user namespaces. A missing program is a skipped row, with the reason.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "studies"))
from measured import update  # noqa: E402

PROXY = ROOT / "target/release/anabranch-proxy"
BENCH_TUN = ROOT / "target/release/anabranch-bench-tun"
MICROSOCKS = ROOT / "target/tools/microsocks/usr/bin/microsocks"
MPTCP_WRAPPER = ROOT / "target/tools/microsocks/usr/lib"
SHADOWSOCKS = ROOT / "target/tools/shadowsocks/bin"
CIPHERS = {"none": "without encryption", "aes-128-gcm": "with AES-128-GCM"}
"""Ciphers of shadowsocks. Its users encrypt; client and relay do not."""
DESTINATION, RELAY = ("203.0.114.2", 80), "203.0.115.1"
SOCKS = {"proxy": ("127.0.0.1", 1080), "microsocks": (RELAY, 1081)}
SOCKS |= {cipher: ("127.0.0.1", 1082 + at) for at, cipher in enumerate(CIPHERS)}
"""Addresses of the SOCKS proxies. Those of shadowsocks have the names of their ciphers."""
IPPROTO_MPTCP = 262
BYTES, ROUNDS, REQUESTS = 1 << 29, 3, 300
"""Bytes of a transfer, transfers of each kind, and requests of the latency test."""
MESSAGE, PAUSE = b"m" * 100, 2.0
"""Message of an open connection, and seconds between two of them."""
BLOCK = b"\0" * (1 << 18)
LARGE = 10_000_000_000
"""Bytes of the transfer whose checksum is compared."""


# ---- programs in the namespaces


async def serve() -> None:
    """The destination: a line asks for bytes (of two kinds), or for an echo of all that follows."""
    loop = asyncio.get_running_loop()
    listener = socket.create_server(("", DESTINATION[1]), backlog=4096)
    listener.setblocking(False)
    tasks = set()
    while True:
        peer, _ = await loop.sock_accept(listener)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = loop.create_task(answer(peer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def answer(peer: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    with peer, contextlib.suppress(OSError):
        line = await loop.sock_recv(peer, 100)
        if line.startswith(b"echo"):
            while data := await loop.sock_recv(peer, 4096):
                await loop.sock_sendall(peer, data)
            return
        if line.startswith(b"various"):
            for piece in various(int(line.split()[1])):
                await loop.sock_sendall(peer, piece)
            return
        left = int(line)
        while left > 0:
            await loop.sock_sendall(peer, BLOCK[: min(left, len(BLOCK))])
            left -= len(BLOCK)


def various(count: int) -> Iterator[bytes]:
    """Pieces of a stream of `count` bytes. Each block of 256 KiB begins with its offset."""
    noise = random.Random(1).randbytes(len(BLOCK))
    for at in range(0, count, len(BLOCK)):
        piece = at.to_bytes(8, "big") + noise[8:]
        yield piece[: min(count - at, len(BLOCK))]


def checksum(through: str, count: int) -> tuple[str, str]:
    """Fetch bytes. Returns the SHA-256 of the received data, and that of the generated data."""
    received, sent = hashlib.sha256(), hashlib.sha256()
    with connect(through) as stream:
        stream.sendall(b"various %d\n" % count)
        buffer = bytearray(1 << 20)
        while more := stream.recv_into(buffer):
            received.update(memoryview(buffer)[:more])
    for piece in various(count):
        sent.update(piece)
    return received.hexdigest(), sent.hexdigest()


def connect(through: str) -> socket.socket:
    """A connection to the destination: "direct", or through one of the SOCKS proxies."""
    if through == "direct":
        return socket.create_connection(DESTINATION, timeout=60)
    if through == "microsocks":
        stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
        stream.settimeout(60)
        stream.connect(SOCKS[through])
    else:
        stream = socket.create_connection(SOCKS[through], timeout=60)
    address = socket.inet_aton(DESTINATION[0]) + DESTINATION[1].to_bytes(2, "big")
    # microsocks expects one message at a time.
    for message, length in ((b"\5\1\0", 2), (b"\5\1\0\1" + address, 10)):
        stream.sendall(message)
        reply = b""
        while len(reply) < length:
            reply += stream.recv(length - len(reply))
    if reply[1] != 0:
        raise OSError(f"SOCKS replies with code {reply[1]}")
    return stream


def fetch(through: str, count: int) -> tuple[float, float]:
    """Fetch bytes, and return the seconds until the first and until the last of them."""
    began = time.perf_counter()
    with connect(through) as stream:
        stream.sendall(b"%d\n" % count)
        buffer, first, received = bytearray(1 << 20), 0.0, 0
        while received < count:
            more = stream.recv_into(buffer)
            if more == 0:
                raise OSError(f"{received} bytes of {count}")
            first = first or time.perf_counter() - began
            received += more
    return first, time.perf_counter() - began


async def hold(connections: int, seconds: float) -> None:
    """Keep connections open, with a message on each now and then. Prints the number of answers."""
    places = asyncio.Semaphore(32)
    loop = asyncio.get_running_loop()
    counts = {"open": 0, "answers": 0, "failures": 0}
    ready = asyncio.Event()
    end = 0.0

    async def one(number: int) -> None:
        async with places:
            stream = await loop.run_in_executor(None, connect, "proxy")
        stream.setblocking(False)
        with stream:
            await loop.sock_sendall(stream, b"echo\n")
            counts["open"] += 1
            if counts["open"] == connections:
                ready.set()
            await ready.wait()
            await asyncio.sleep(PAUSE * number / connections)
            while loop.time() < end:
                began = loop.time()
                await loop.sock_sendall(stream, MESSAGE)
                left = len(MESSAGE)
                while left:
                    data = await asyncio.wait_for(loop.sock_recv(stream, left), 30)
                    if not data:
                        raise OSError("the connection has ended")
                    left -= len(data)
                counts["answers"] += 1
                await asyncio.sleep(max(0.0, PAUSE - (loop.time() - began)))

    async def safely(number: int) -> None:
        try:
            await one(number)
        except (TimeoutError, OSError) as error:
            counts["failures"] += 1
            print(f"failed: {error!r}", file=sys.stderr)

    tasks = [asyncio.create_task(safely(number)) for number in range(connections)]
    await asyncio.wait_for(ready.wait(), 300)
    end = loop.time() + seconds
    print("ready", flush=True)
    await asyncio.gather(*tasks)
    print(json.dumps(counts))


def program(arguments: list[str]) -> None:
    """Run as one of the programs."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    match arguments:
        case ["serve"]:
            asyncio.run(serve())
        case ["fetch", through, count]:
            print(fetch(through, int(count))[1])
        case ["checksum", through, count]:
            print(json.dumps(checksum(through, int(count))))
        case ["latency", through]:
            fetch(through, 1000)
            print(json.dumps([fetch(through, 1000)[0] for _ in range(REQUESTS)]))
        case ["hold", connections, seconds]:
            asyncio.run(hold(int(connections), float(seconds)))


# ---- the network


class Room:
    """A network namespace, which a sleeping process keeps."""

    def __init__(self, most_seconds: int) -> None:
        self.keeper = subprocess.Popen(["unshare", "--net", "sleep", str(most_seconds)])
        own = os.readlink("/proc/self/ns/net")
        for _ in range(200):
            if os.readlink(f"/proc/{self.keeper.pid}/ns/net") != own:
                break
            time.sleep(0.01)
        self.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1")
        self.run("ip link set lo up")

    def command(self, *words: str) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.keeper.pid}/ns/net", *words]

    def run(self, command: str) -> None:
        subprocess.run(self.command(*command.split()), check=True)

    def program(self, *arguments: str) -> list[str]:
        return self.command(sys.executable, __file__, "--program", *arguments)


class World:
    """Client, relay and destination, and all processes."""

    def __init__(self, most_seconds: int) -> None:
        self.client, self.relay, self.destination = (Room(most_seconds) for _ in range(3))
        self.processes: list[subprocess.Popen[str]] = []
        self.folder = Path(tempfile.mkdtemp(prefix="anabranch-proxy-load-"))
        for number in (1, 2):
            self._join(self.client, f"c{number}", f"10.{number}.0.2", self.relay, f"r{number}")
            self.relay.run(f"ip addr add 10.{number}.0.1/24 dev r{number}")
            self.client.run(f"ip route add default via 10.{number}.0.1 metric {number}00")
        self._join(self.destination, "far0", DESTINATION[0], self.relay, "near0")
        self.relay.run("ip addr add 203.0.114.1/24 dev near0")
        self.relay.run(f"ip addr add {RELAY}/32 dev lo")
        self.relay.run("sysctl -qw net.ipv4.ip_forward=1")
        self.destination.run("ip route add default via 203.0.114.1")
        # The kernel's Multipath TCP uses the second link as well.
        self.client.run("ip mptcp limits set subflows 2 add_addr_accepted 2")
        self.client.run("ip mptcp endpoint add 10.2.0.2 dev c2 subflow")
        self.relay.run("ip mptcp limits set subflows 2 add_addr_accepted 2")
        self.client.run("ip rule add from 10.2.0.2 lookup 42")
        self.client.run("ip route add default via 10.2.0.1 dev c2 table 42")
        self.start(self.destination.program("serve"))

    @staticmethod
    def _join(room: Room, name: str, address: str, other: Room, other_name: str) -> None:
        pid = other.keeper.pid
        room.run(f"ip link add dev {name} type veth peer name {other_name} netns {pid}")
        room.run(f"ip addr add {address}/24 dev {name}")
        room.run(f"ip link set dev {name} up")
        other.run(f"ip link set dev {other_name} up")

    def start(self, command: list[str], until: str | None = None) -> subprocess.Popen[str]:
        """Start a program, and wait until it prints a line with this text."""
        environment = os.environ | {"RUNTIME_DIRECTORY": str(self.folder)}
        errors = subprocess.DEVNULL if until is None else subprocess.PIPE
        process = subprocess.Popen(command, stderr=errors, text=True, env=environment)
        self.processes.append(process)
        if until is not None:
            assert process.stderr is not None
            for line in process.stderr:
                if until in line:
                    return process
            raise SystemExit(f"{command}: no line with {until!r}")
        return process

    def start_proxies(self, connections: int) -> tuple[subprocess.Popen[str], ...]:
        secret = self.folder / "secret"
        secret.touch(0o600)
        secret.write_text("0123456789abcdefghijklmnopqrstuvwxyz")
        most = str(2 * connections)
        both = ["--secret-file", str(secret)]
        relay = ["relay", "--listen", "5124", "--uplink", "r1", "--uplink", "r2", *both]
        relay += ["--max-connections", most, "--max-connections-per-client", most]
        client = ["client", "--uplink", "c1", "--uplink", "c2", "--relay", f"{RELAY}:5124", *both]
        first = self.start(self.relay.command(str(PROXY), *relay), "ready for clients")
        second = self.start(self.client.command(str(PROXY), *client), "ready for SOCKS5")
        return second, first

    def close(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(40)
            process.kill()
        for room in (self.client, self.relay, self.destination):
            room.keeper.kill()
            room.keeper.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def family(process: subprocess.Popen[str]) -> Iterator[int]:
    """A process and its children."""
    yield process.pid
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    yield from map(int, children)


def cpu_seconds(*processes: subprocess.Popen[str]) -> float:
    """User and system time of processes and their children."""
    ticks = 0
    for pid in (pid for process in processes for pid in family(process)):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory(process: subprocess.Popen[str]) -> float:
    """Memory of a proxy in MB: both of its processes."""
    total = 0
    for pid in family(process):
        status = Path(f"/proc/{pid}/status").read_text()
        if size := re.search(r"VmRSS:\s+(\d+)", status):
            total += int(size[1]) * 1024
    return total / 1e6


# ---- measurements


def output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr.strip()}")
    return done.stdout


Row = list[str]
RATES = ("", "Gbit/s", "Gbit per CPU s")
DELAYS = ("", "median ms", "99th percentile ms")
MEMORY = ("minute", "client MB", "relay MB", "client kB each", "relay kB each")
INTEGRITY = (
    "GB",
    "SHA-256 of the received and of the generated data",
    "s, with both checksums",
    "MB of the larger proxy, after the transfer",
)
PARTS = ("latency", "throughput", "integrity", "profile-throughput", "connections")


def throughput(world: World, proxies: tuple[subprocess.Popen[str], ...]) -> list[Row]:
    """Rows with Gbit/s and Gbit per CPU second. The kinds take turns."""
    kinds: dict[str, tuple[subprocess.Popen[str], ...]] = {"direct": (), "proxy": proxies}
    kinds |= start_shadowsocks(world)
    if other := start_microsocks(world):
        kinds["microsocks"] = (other,)
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind, processes in kinds.items():
            before = cpu_seconds(*processes)
            command = world.client.program("fetch", kind, str(BYTES))
            seconds = float(output(command))
            used = cpu_seconds(*processes) - before
            gigabits = BYTES * 8e-9
            found[kind].append((gigabits / seconds, gigabits / max(used, 1e-9)))
    names = {
        "direct": "TCP over one veth pair, without a proxy",
        "proxy": "client and relay",
        "microsocks": "microsocks with the kernel's Multipath TCP (one proxy)",
    }
    for cipher, words in CIPHERS.items():
        names[cipher] = f"shadowsocks-rust {words}, with the kernel's Multipath TCP"
    rows = []
    for kind, values in found.items():
        rate, per_cpu = (statistics.median(each) for each in zip(*values, strict=True))
        rows.append([names[kind], f"{rate:.2f}", f"{per_cpu:.2f}" if kinds[kind] else "–"])
    return rows + bare_copy()


def start_shadowsocks(world: World) -> dict[str, tuple[subprocess.Popen[str], ...]]:
    """Both ends of shadowsocks for each cipher."""
    if not (SHADOWSOCKS / "ssserver").exists():
        print(f"shadowsocks skipped: {SHADOWSOCKS}/ssserver is missing; see tools/speed.mk")
        return {}
    started: dict[str, tuple[subprocess.Popen[str], ...]] = {}
    for port, cipher in enumerate(CIPHERS, 8388):
        both = [f"--encrypt-method={cipher}", "--password=secret", "--tcp-multipath"]
        both += [f"--server-addr={RELAY}:{port}"]
        server = world.start(world.relay.command(str(SHADOWSOCKS / "ssserver"), *both))
        host, own = SOCKS[cipher]
        both += [f"--local-addr={host}:{own}"]
        local = world.start(world.client.command(str(SHADOWSOCKS / "sslocal"), *both))
        started[cipher] = (local, server)
    time.sleep(0.5)
    return started


def start_microsocks(world: World) -> subprocess.Popen[str] | None:
    wrapper = next(MPTCP_WRAPPER.rglob("libmptcpwrap.so*"), None)
    if not MICROSOCKS.exists() or wrapper is None:
        print(f"microsocks skipped: {MICROSOCKS} or mptcpize is missing; see tools/speed.mk")
        return None
    words = ["env", f"LD_PRELOAD={wrapper}", str(MICROSOCKS), "-i", RELAY, "-p", "1081"]
    process = world.start(world.relay.command(*words))
    time.sleep(0.5)
    return process


def bare_copy() -> list[Row]:
    if not BENCH_TUN.exists():
        print(f"bare copy skipped: {BENCH_TUN} is missing; see tools/speed.mk")
        return []
    command = [str(BENCH_TUN), "--rounds", str(ROUNDS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = []
    for line in done.stdout.splitlines():
        name = line[18:35].strip()
        if line.startswith("yes") and line[8:18].strip() == "MPTCP":
            rate, per_cpu = line[35:].split()[:2]
            rows.append([f"{name}, TUN with offload (make bench-tun)", rate, per_cpu])
    if not rows:
        print(f"bare copy skipped: {done.stdout.strip() or done.stderr.strip()}")
    return rows


PARTS_OF_A_PROFILE = {
    "tun_chr_write_iter": "write packets to the TUN device, with routing, translation and the veth "
    "pair behind it",
    "tun_chr_read_iter": "read packets from the TUN device",
    "tcp_recvmsg": "read from the sockets of programs and destinations",
    "tcp_sendmsg": "write to these sockets, with the veth pair behind them",
    "epoll_wait": "wait for events",
}
"""Functions of the kernel, and the parts of a profile in which they are called."""
Sample = list[tuple[int, str]]
"""Addresses and functions, the innermost first."""
COPIES, ENGINE, REST = (
    "copies between buffers of the process",
    "engine, tasks and allocator",
    "other work of the kernel: interrupts, system calls, switches between processes",
)


def profile(world: World, proxies: tuple[subprocess.Popen[str], ...]) -> list[Row]:
    """Rows with shares of CPU time during transfers, or none if perf cannot measure them."""
    try:
        samples = record(world, proxies)
    except OSError as error:
        print(f"profile skipped: {error}")
        return []
    counts = Counter(map(part_of, samples))
    return [[f"{100 * count / len(samples):.0f} %", part] for part, count in counts.most_common()]


def record(world: World, proxies: tuple[subprocess.Popen[str], ...]) -> list[Sample]:
    """The samples of the processes without privileges during transfers.

    Raises:
        OSError: if perf is missing, fails, or does not see the kernel.
    """
    workers = ",".join(str(pid) for each in proxies for pid in list(family(each))[1:])
    file = world.folder / "perf.data"
    recorder = subprocess.Popen(["perf", "record", "-q", "-g", "-o", str(file), "-p", workers])
    time.sleep(0.5)
    for _ in range(ROUNDS):
        output(world.client.program("fetch", "proxy", str(BYTES)))
    recorder.send_signal(signal.SIGINT)
    # perf ends by the signal that stops it, after it has written the file.
    if (status := recorder.wait()) not in (0, -signal.SIGINT) or not file.exists():
        raise OSError(f"perf record fails with status {status}")
    command = ["perf", "script", "-i", str(file), "-F", "ip,sym"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"perf script fails: {done.stderr.strip()}")
    samples = [sample for each in done.stdout.split("\n\n") if (sample := frames(each))]
    if not any(in_kernel(address) for sample in samples for address, _ in sample):
        raise OSError("perf has no sample in the kernel; see kernel.perf_event_paranoid")
    return samples


def frames(text: str) -> Sample:
    """The addresses and functions of a sample: one a line, the innermost first."""
    found = []
    for line in filter(str.strip, text.splitlines()):
        address, _, name = line.strip().partition(" ")
        found.append((int(address, 16), name))
    return found


def in_kernel(address: int) -> bool:
    return bool(address >> 63)


def part_of(sample: Sample) -> str:
    """The part of a profile that a sample belongs to."""
    kernel = [name for address, name in sample if in_kernel(address)]
    for function, part in PARTS_OF_A_PROFILE.items():
        if any(function in name for name in kernel):
            return part
    address, name = sample[0]
    if in_kernel(address):
        return REST
    return COPIES if "memmove" in name or "memcpy" in name else ENGINE


def latency(world: World, _: tuple[subprocess.Popen[str], ...]) -> list[Row]:
    rows = []
    for kind, name in (("direct", "without a proxy"), ("proxy", "client and relay")):
        command = world.client.program("latency", kind)
        times = sorted(json.loads(output(command)))
        p50, p99 = (1e3 * times[int(len(times) * share)] for share in (0.5, 0.99))
        rows.append([name, f"{p50:.2f}", f"{p99:.2f}"])
    return rows


def integrity(world: World, proxies: tuple[subprocess.Popen[str], ...]) -> list[Row]:
    """A row with the checksum of a large transfer, and with the memory after it."""
    began = time.monotonic()
    received, sent = json.loads(output(world.client.program("checksum", "proxy", str(LARGE))))
    if received != sent:
        raise SystemExit(f"the received data differs: SHA-256 {received} instead of {sent}")
    seconds = time.monotonic() - began
    largest = max(memory(each) for each in proxies)
    return [[f"{LARGE / 1e9:g}", received, f"{seconds:.0f}", f"{largest:.0f}"]]


def load(
    world: World, proxies: tuple[subprocess.Popen[str], ...], connections: int, seconds: float
) -> tuple[list[Row], dict[str, int]]:
    """Rows with the memory of both proxies over time, and the counts of the programs."""
    empty = [memory(each) for each in proxies]
    rows = [["0, no connection", *(f"{each:.1f}" for each in empty), "", ""]]
    command = world.client.program("hold", str(connections), str(seconds))
    holding = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert holding.stdout is not None
    if holding.stdout.readline() != "ready\n":
        raise SystemExit("the connections do not open")
    began = time.monotonic()
    for share in (0.0, 0.1, 0.25, 0.5, 0.75, 0.95):
        time.sleep(max(0.0, began + share * seconds - time.monotonic()))
        sizes = [memory(each) for each in proxies]
        each = [
            f"{(size - start) * 1e3 / connections:.1f}"
            for size, start in zip(sizes, empty, strict=True)
        ]
        minute = (time.monotonic() - began) / 60
        rows.append([f"{minute:.1f}", *(f"{size:.1f}" for size in sizes), *each])
        print("  ".join(rows[-1]), flush=True)
    left = began + seconds - time.monotonic()
    rest, _ = holding.communicate(timeout=left + 120)
    counts: dict[str, int] = json.loads(rest)
    return rows, counts


def results(
    parts: Sequence[str], connections: int, minutes: float
) -> Generator[tuple[str, list[Row]]]:
    """The rows of each result of docs/results/proxy.json, as soon as they are measured."""
    world = World(int(minutes * 60) + 1800)
    try:
        proxies = world.start_proxies(connections)
        for part, measure, title, columns in (
            ("latency", latency, "Time to the first byte of 1,000 bytes", DELAYS),
            ("throughput", throughput, "Throughput", RATES),
            ("integrity", integrity, "A large transfer", INTEGRITY),
            ("profile-throughput", profile, "Profile of a transfer", ("share", "part")),
        ):
            if part in parts:
                rows = measure(world, proxies)
                show(title, columns, rows)
                yield part, rows
        if "connections" in parts:
            # A transfer leaves buffers behind.
            for process in proxies:
                process.terminate()
            for process in proxies:
                process.wait(60)
            proxies = world.start_proxies(connections)
            rows, counts = load(world, proxies, connections, 60 * minutes)
            rows.append(
                [f"{counts['answers']:,} answers, {counts['failures']} failures", *[""] * 4]
            )
            show(f"{counts['open']} connections at once", MEMORY, rows)
            yield "connections", rows
    finally:
        world.close()


def show(title: str, columns: Sequence[str], rows: list[Row]) -> None:
    widths = [max(len(row[at]) for row in [columns, *rows]) for at in range(len(columns))]
    print(f"\n{title}")
    for row in [columns, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


def main() -> None:
    if sys.argv[1:2] == ["--program"]:
        return program(sys.argv[2:])
    parser = argparse.ArgumentParser(description="Load test of the proxy.")
    parser.add_argument(
        "--only", action="append", choices=PARTS, help="measure this part; repeat it for others"
    )
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--json", type=Path, help="replace the results in this file")
    options = parser.parse_args()
    if os.geteuid() != 0:
        again = [sys.executable, *sys.argv]
        os.execvp("unshare", ["unshare", "--user", "--map-root-user", "--mount", *again])
    for missing in (each for each in ("ip", "nft", "nsenter") if shutil.which(each) is None):
        return print(f"bench-proxy skipped: the program {missing} is missing")
    if not PROXY.exists():
        return print(f"bench-proxy skipped: {PROXY} is missing; run make bench-proxy")
    load = "".join(f"--only {part} " for part in options.only or ())
    load += f"--connections {options.connections} --minutes {options.minutes:g}"
    measured = results(options.only or PARTS, options.connections, options.minutes)
    with contextlib.closing(measured):
        for name, rows in measured:
            if rows and options.json is not None:
                update(options.json, name, rows, f"make bench-proxy LOAD='{load}'")
    return None


if __name__ == "__main__":
    main()
