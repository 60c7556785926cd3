"""An independent decoder reads the captures: tshark (Debian package tshark)."""

import shutil
import subprocess
from pathlib import Path

import pytest

from anabranch import _core

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed (Debian package tshark)"
)

SCENARIO = """
name = "capture"
duration = "20s"

[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "20packets"
loss = "1%"

[[path]]
name = "3g"
rate = "2Mbit/s"
delay = "75ms"
limit = "334packets"

[[cross_traffic]]
path = "3g"
rate = "100kbit/s"
packet_size = "1kB"

[[connection]]
send_buffer = "100KiB"
receive_buffer = "100KiB"
remedies = { opportunistic_retransmission = true, penalisation = "conext13" }
workload = { kind = "bulk", size = "1MB" }
"""

CHECKS = ["tcp.check_checksum:TRUE", "udp.check_checksum:TRUE", "ip.check_checksum:TRUE"]
WRONG = " || ".join(f"{layer}.checksum.status == 0" for layer in ("tcp", "udp", "ip"))
BAD = f"_ws.malformed || {WRONG}"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("capture") / "run.pcapng"
    _core.run(
        _core.Scenario.parse(SCENARIO, "capture.toml"), 1, pcap=(str(path), None, "both", None)
    )
    return path


def tshark(path: Path, *arguments: str) -> list[str]:
    options = [part for check in CHECKS for part in ("-o", check)]
    command = ["tshark", "-r", str(path), *options, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_a_corrupted_packet_would_be_flagged(capture: Path, tmp_path: Path) -> None:
    data = bytearray(capture.read_bytes())
    # This is in the payload of a data segment in the middle of the file: the pattern is
    # far longer than any header.
    data[len(data) // 2] ^= 0x40
    data[len(data) // 2 + 1500] ^= 0x40
    corrupted = tmp_path / "corrupted.pcapng"
    corrupted.write_bytes(data)
    assert tshark(corrupted, "-Y", BAD) != []


def test_no_packet_is_malformed_and_no_checksum_wrong(capture: Path) -> None:
    assert len(tshark(capture)) > 1_000
    assert tshark(capture, "-Y", BAD) == []


def test_every_packet_is_seen_leaving_and_arriving_on_named_interfaces(capture: Path) -> None:
    names = set(tshark(capture, "-T", "fields", "-e", "frame.interface_name"))
    assert names == {"client-wifi", "server-wifi", "client-3g", "server-3g"}


def test_cross_traffic_is_udp(capture: Path) -> None:
    # 100 kbit/s in packets of 1000 bytes, for 20 s, captured at the server and at the client.
    lines = tshark(capture, "-Y", "udp", "-T", "fields", "-e", "ip.len", "-e", "udp.dstport")
    assert set(lines) == {"1000\t9"}
    assert 2 * 250 - 4 <= len(lines) <= 2 * 250


@pytest.mark.parametrize(
    ("subtype", "lengths"),
    [(0, {"4", "12", "20"}), (1, {"12", "16", "24"}), (2, {"8", "18"})],
    ids=["MP_CAPABLE", "MP_JOIN", "DSS"],
)
def test_the_options_are_recognised_with_their_lengths(
    capture: Path, subtype: int, lengths: set[str]
) -> None:
    wanted = f"tcp.options.mptcp.subtype == {subtype}"
    fields = ["-T", "fields", "-e", "tcp.option_kind", "-e", "tcp.option_len"]
    found = set()
    for line in tshark(capture, "-Y", wanted, *fields):
        kinds, byte_count = (column.split(",") for column in line.split("\t"))
        with_length = [kind for kind in kinds if kind not in ("0", "1")]
        found |= {n for kind, n in zip(with_length, byte_count, strict=True) if kind == "30"}
    assert lengths <= found


def test_data_sequence_numbers_and_acknowledgements_are_decoded(capture: Path) -> None:
    fields = ["-T", "fields", "-e", "tcp.options.mptcp.rawdataseqno"]
    numbers = tshark(capture, "-Y", "tcp.len > 0 && tcp.options.mptcp.subtype == 2", *fields)
    assert len({line for line in numbers if line}) > 500
