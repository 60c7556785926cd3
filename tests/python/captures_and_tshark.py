"""Compare `anabranch analyze` with tshark over a folder of captures.

    python tests/python/captures_and_tshark.py FOLDER [--jobs N]

tshark (Debian package tshark) decodes each packet. This script counts from its fields, with its own
code, and compares: TCP connections (by addresses and ports), Multipath TCP subflows (by the options
of their SYNs), unique and retransmitted bytes of each direction, and tokens (from the keys of the
handshakes). It prints each difference with its reason, if it knows one, and exits with 1 if a
difference has none.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from anabranch.analyze import analyze
from anabranch.analyze.analysis import Analysis
from anabranch.errors import InputError

Flow = tuple[str, str]
"""Two addresses with their ports: from and to."""

FIELDS = (
    "frame.number", "frame.protocols", "frame.time_epoch", "ip.src", "ip.dst", "ipv6.src",
    "ipv6.dst", "tcp.srcport", "tcp.dstport", "tcp.stream", "tcp.seq_raw", "tcp.len", "tcp.flags",
    "tcp.checksum.status", "tcp.options.mptcp.subtype", "tcp.options.mptcp.version",
    "tcp.options.mptcp.sendkey", "tcp.options.mptcp.recvkey", "ip.id", "tcp.ack_raw",
    "tcp.window_size_value", "_ws.malformed", "frame.interface_id", "ip.src_rt",
)  # fmt: skip

BATCH = 40
"""Number of files that are joined."""

SYN, RST, ACK = 0x02, 0x04, 0x10
BAD = "0"
"""`tcp.checksum.status` of a wrong checksum."""


@dataclass
class Counted:
    """Numbers of a capture, counted from tshark's fields."""

    flows: dict[Flow, list[int]] = field(default_factory=dict)
    """Unique bytes and all bytes of payload of each direction."""
    subflows: Counter[str] = field(default_factory=Counter)
    tokens: set[int] = field(default_factory=set)
    copied: Counter[Flow] = field(default_factory=Counter)
    """Payload of copies: the same header and IPv4 identification within 100 ms."""
    malformed: int = 0
    """Packets that tshark does not read to the end."""
    routed: int = 0
    """Packets with a source route (RFC 791 §3.1), of whose addresses tshark shows the last."""
    inner: int = 0
    """Segments in whose payload tshark finds packets, such as those of OpenFlow."""
    fabric: int = 0
    """Frames of FabricPath, whose last four bytes tshark takes for a checksum."""

    @property
    def reason(self) -> str | None:
        """Reasons why numbers of tshark may be wrong, if its fields show that."""
        reasons = (
            (self.routed, "tshark shows the last address of a source route as the destination"),
            (self.inner, "tshark shows addresses of packets within the payload of TCP"),
            (self.fabric, "tshark takes the end of the payload for the checksum of FabricPath"),
            (self.malformed, "tshark calls packets malformed, and does not read them"),
        )
        return next((words for count, words in reasons if count), None)


@dataclass(frozen=True)
class Difference:
    """A number that differs, with the reason if it is known."""

    what: str
    reason: str | None


@dataclass(frozen=True)
class Compared:
    """The comparison of one file."""

    name: str
    differences: tuple[Difference, ...] = ()
    skipped: str | None = None
    connections: int = 0
    subflows: int = 0


def tshark() -> str | None:
    """The path of tshark, if it is installed."""
    return shutil.which("tshark")


Row = dict[str, str]
"""The fields of a packet."""


@dataclass(frozen=True)
class Decoded:
    """Output of tshark about a file."""

    rows: list[Row]
    complaint: str = ""


def decode(file: Path) -> Decoded:
    """The fields of each TCP segment, and what tshark complains about."""
    command = [
        "tshark", "-n", "-r", str(file), "-Y", "tcp || _ws.malformed", "-T", "fields",
        "-E", "separator=\t", "-E", "occurrence=l", "-o", "tcp.check_checksum:TRUE",
        "-o", "tcp.desegment_tcp_streams:FALSE",
        *(part for name in FIELDS for part in ("-e", name)),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300)
    lines = (line.split("\t") for line in done.stdout.split("\n"))
    rows = [dict(zip(FIELDS, line, strict=True)) for line in lines if len(line) == len(FIELDS)]
    return Decoded(rows, done.stderr.strip())


def decode_all(files: list[Path]) -> dict[Path, Decoded]:
    """The same for several files. Starting tshark takes longer than most files, so small files of
    one interface are joined, and told apart by the interface.
    """
    small = [file for file in files if file.stat().st_size < 4 << 20 and _is_pcap(file)]
    joined: dict[Path, Decoded] = {}
    if len(small) > 1:
        with tempfile.TemporaryDirectory() as folder:
            whole = Path(folder) / "joined.pcapng"
            command = ["mergecap", "-a", "-I", "none", "-w", str(whole), *map(str, small)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace")
            if done.returncode == 0 and not done.stderr.strip():
                found = decode(whole)
                rows: dict[str, list[Row]] = defaultdict(list)
                for row in found.rows:
                    rows[row["frame.interface_id"]].append(row)
                joined = {file: Decoded(rows[str(n)]) for n, file in enumerate(small)}
    return {file: joined.get(file) or decode(file) for file in files}


def _is_pcap(file: Path) -> bool:
    """Whether the file has the classic format, and so one interface."""
    with file.open("rb") as start:
        magic = start.read(4)
    numbers = (0xA1B2C3D4, 0xA1B23C4D)
    return len(magic) == 4 and (
        int.from_bytes(magic, "little") in numbers or int.from_bytes(magic, "big") in numbers
    )


def count(rows: Iterable[Row], *, with_bad: bool = True) -> Counted:
    """Count connections, subflows, bytes and tokens from the fields of segments."""
    found = Counted()
    ranges: dict[tuple[str, Flow], list[tuple[int, int]]] = defaultdict(list)
    last: dict[tuple[str, Flow], int] = {}
    kinds: dict[str, str] = {}
    recent: dict[tuple[str, ...], float] = {}
    for row in rows:
        found.malformed += bool(row["_ws.malformed"])
        found.routed += bool(row.get("ip.src_rt"))
        found.fabric += ":cfp:" in row["frame.protocols"]
        found.inner += bool(_INNER.search(row["frame.protocols"]))
        # ICMP quotes the headers of other packets. Headers that were cut have no flags.
        if "icmp" in row["frame.protocols"] or not (row.get("tcp.len") and row["tcp.flags"]):
            continue
        source = row["ip.src"] or row["ipv6.src"]
        target = row["ip.dst"] or row["ipv6.dst"]
        if row["frame.protocols"].rfind("ipv6:tcp") > row["frame.protocols"].rfind("ip:tcp"):
            source, target = row["ipv6.src"], row["ipv6.dst"]
        flow = (f"{source}:{row['tcp.srcport']}", f"{target}:{row['tcp.dstport']}")
        flags, length = int(row["tcp.flags"], 16), int(row["tcp.len"])
        is_bad = row["tcp.checksum.status"] == BAD
        total = found.flows.setdefault(flow, [0, 0])
        if (is_bad and not with_bad) or flags & RST:
            continue
        names = ("ip.id", "tcp.seq_raw", "tcp.ack_raw", "tcp.len", "tcp.flags")
        identity = (*flow, *(row[name] for name in names), row["tcp.window_size_value"])
        time = float(row["frame.time_epoch"])
        found.copied[flow] += length * (abs(time - recent.get(identity, -1.0)) <= 0.1)
        recent[identity] = time
        stream = row["tcp.stream"]
        _options(found, row, flags, stream, kinds)
        if length:
            key = (stream, flow)
            at = int(row["tcp.seq_raw"]) + bool(flags & SYN)
            near = last.get(key, at)
            at = near + (at - near + 2**31) % 2**32 - 2**31
            last[key] = max(near, at + length)
            ranges[key].append((at, at + length))
            total[1] += length
    for (_, flow), parts in ranges.items():
        found.flows[flow][0] += _covered(parts)
    found.subflows = Counter(kinds.values())
    return found


_INNER = re.compile(r":tcp:.*:(ip|ipv6):")


def _options(found: Counted, row: Row, flags: int, stream: str, kinds: dict[str, str]) -> None:
    """Note what the Multipath TCP options of a segment say."""
    subtype, version = row["tcp.options.mptcp.subtype"], row["tcp.options.mptcp.version"]
    if flags & SYN and not flags & ACK and subtype in ("0", "1"):
        kinds[stream] = "initial" if subtype == "0" else "join"
    if subtype == "0" and version in ("0", "1"):
        digest = hashlib.sha1 if version == "0" else hashlib.sha256
        for name in ("tcp.options.mptcp.sendkey", "tcp.options.mptcp.recvkey"):
            if row[name]:
                key = int(row[name], 0).to_bytes(8, "big")
                found.tokens.add(int.from_bytes(digest(key).digest()[:4], "big"))


def _covered(parts: list[tuple[int, int]]) -> int:
    covered, end = 0, -(2**63)
    for start, stop in sorted(parts):
        covered += max(0, stop - max(start, end))
        end = max(end, stop)
    return covered


def compare(file: Path, decoded: Decoded | None = None) -> Compared:
    """Compare one capture."""
    try:
        found = analyze(file)
    except InputError as error:
        found, problem = None, str(error)
    decoded = decoded or decode(file)
    if found is None:
        if not decoded.rows:
            return Compared(file.name, skipped=f"not read by either: {problem.rpartition(': ')[2]}")
        return Compared(file.name, (Difference(f"not read: {problem}", None),))
    analysed: dict[Flow, list[int]] = defaultdict(lambda: [0, 0])
    for row in found.subflows.iter_rows(named=True):
        ends = (row["initiator"].translate(_BRACKETS), row["listener"].translate(_BRACKETS))
        for way, flow in (("out", ends), ("in", ends[::-1])):
            analysed[flow][0] += row[f"bytes_{way}"]
            analysed[flow][1] += row[f"bytes_{way}"] + row[f"retransmitted_{way}"]
    corrupted = int(found.subflows["corrupted"].sum())
    every, right = count(decoded.rows), count(decoded.rows, with_bad=False)
    reference = right if corrupted else every
    differences = (
        *_bytes(
            analysed,
            every,
            reference,
            at_several_places="several places" in " ".join(found.notes),
        ),
        *(
            Difference(what, _reason(what, found.notes, reference, decoded.complaint))
            for what in _differences(found, analysed, reference)
        ),
    )
    return Compared(
        file.name,
        differences,
        connections=len({frozenset(flow) for flow in reference.flows}),
        subflows=reference.subflows.total(),
    )


_BRACKETS = str.maketrans("", "", "[]")


def _bytes(
    analysed: dict[Flow, list[int]], every: Counted, right: Counted, *, at_several_places: bool
) -> Iterator[Difference]:
    """The differences in bytes, from tshark's numbers with all segments, and without those whose
    checksums are wrong.

    The analysis ignores such segments, except in a direction in which most checksums are wrong:
    there, the network card was to fill them in. So one of the two numbers must be the analysis's.
    """
    for flow in every.flows.keys() & analysed.keys():
        unique, total = analysed[flow]
        for counted in (every, right):
            without_copies = counted.flows[flow][1] - counted.copied[flow]
            if counted.flows[flow][0] == unique and total in (
                counted.flows[flow][1],
                without_copies,
            ):
                break
        else:
            there, least = every.flows[flow], right.flows[flow]
            which = int(unique == there[0])
            reason = every.reason
            if which == 1 and at_several_places and total < there[1]:
                # Queues may delay a copy from elsewhere by more than 100 ms.
                reason = "tshark counts copies from several places as retransmissions"
            elif least[which] < (unique, total)[which] < there[which]:
                reason = "some segments with wrong checksums were ignored"
            yield Difference(
                f"{('unique', 'all')[which]} bytes of {flow[0]} > {flow[1]}: "
                f"{(unique, total)[which]}, tshark {there[which]}",
                reason,
            )


def _differences(
    found: Analysis, analysed: dict[Flow, list[int]], reference: Counted
) -> Iterator[str]:
    pairs = [{frozenset(flow) for flow in flows} for flows in (analysed, reference.flows)]
    if pairs[0] != pairs[1]:
        here, there = len(pairs[0] - pairs[1]), len(pairs[1] - pairs[0])
        yield f"connections: {here} only here, {there} only there"
    kinds: Counter[str] = Counter(found.subflows["kind"].to_list())
    for kind in ("initial", "join"):
        if kinds[kind] != reference.subflows[kind]:
            yield f"subflows {kind}: {kinds[kind]}, tshark {reference.subflows[kind]}"
    tokens = {
        token
        for name in ("token_initiator", "token_listener")
        for token in found.connections[name].drop_nulls()
    }
    if tokens != reference.tokens:
        here, there = len(tokens - reference.tokens), len(reference.tokens - tokens)
        yield f"tokens: {here} only here, {there} only there"


def _reason(what: str, notes: Iterable[str], reference: Counted, complaint: str) -> str | None:
    """Reason why tshark's number differs, if it is known."""
    told = " ".join(notes)
    if " 0 only here" in what and "not read and not judged" in told:
        return "the analysis says that it does not read some packets"
    if reference.reason:
        return reference.reason
    if "damaged" in complaint or "cut short" in complaint:
        return "the file is damaged, and tshark reads another part of it"
    return None


def compare_all(files: list[Path]) -> list[Compared]:
    """Compare several captures."""
    return [compare(file, decoded) for file, decoded in decode_all(files).items()]


def show(compared: Compared) -> None:
    """Print the first differences of a file that have no reason."""
    unknown = [each.what for each in compared.differences if each.reason is None]
    if unknown:
        print(f"{compared.name}:", *unknown[:3], sep="\n    ", flush=True)


def report(results: list[Compared]) -> int:
    """Print the numbers, and return the number of differences without a reason."""
    compared = [each for each in results if each.skipped is None]
    agreeing = [each for each in compared if not each.differences]
    reasons = Counter(
        difference.reason or "unknown" for each in compared for difference in each.differences[:1]
    )
    print(
        f"{len(results)} files: {len(compared)} compared, {len(agreeing)} agree in "
        f"{sum(each.connections for each in agreeing)} connections and "
        f"{sum(each.subflows for each in agreeing)} Multipath TCP subflows"
    )
    for reason, many in reasons.most_common():
        print(f"  {many} differ: {reason}")
    for reason, many in Counter(
        re.sub(r"\d+", "N", each.skipped) for each in results if each.skipped
    ).most_common():
        print(f"  {many} skipped: {reason}")
    return sum(any(d.reason is None for d in each.differences) for each in compared)


def main() -> int:
    """Run the comparison from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    if tshark() is None:
        print("skipped: tshark is not installed (Debian package tshark)")
        return 0
    files = sorted(path for path in chosen.folder.rglob("*") if path.is_file())
    results = []
    with ProcessPoolExecutor(chosen.jobs) as pool:
        batches = [files[at : at + BATCH] for at in range(0, len(files), BATCH)]
        for batch in pool.map(compare_all, batches):
            results += batch
            for compared in batch:
                show(compared)
    return 1 if report(results) else 0


if __name__ == "__main__":
    sys.exit(main())
