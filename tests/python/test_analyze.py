import dataclasses
import gzip
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import anabranch
from anabranch import _core
from anabranch.analyze import analyze
from anabranch.analyze import panels as analyze_panels
from anabranch.analyze.analysis import (
    TABLES,
    Analysis,
    largest,
    packet_filter,
    subflow_filter,
)
from anabranch.analyze.report import as_json, packets_of_violations
from anabranch.cli.main import run_command

pytestmark = pytest.mark.usefixtures("plain_pictures")

SCENARIO = """
name = "capture"
duration = "20s"

[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "30packets"
loss = "0.5%"

[[path]]
name = "3g"
rate = "2Mbit/s"
delay = "75ms"
limit = "334packets"

[[connection]]
send_buffer = "100KiB"
receive_buffer = "100KiB"
dss_checksum = true
remedies = { opportunistic_retransmission = true, penalisation = "conext13" }
workload = { kind = "bulk", size = "2MB" }
"""

DOCS = Path(__file__).parents[2] / "docs" / "analyze.md"


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("analyze") / "capture.toml"
    file.write_text(SCENARIO)
    return file


@pytest.fixture(scope="module")
def capture(scenario: Path) -> Path:
    return scenario.with_suffix(".pcapng")


@pytest.fixture(scope="module")
def made(scenario: Path, capture: Path) -> anabranch.Run:
    return anabranch.run(scenario, seed=2, pcap=str(capture))


@pytest.fixture(scope="module")
def found(made: anabranch.Run, capture: Path) -> Analysis:
    return analyze(capture)


def test_the_tables_say_what_the_run_says(found: Analysis, made: anabranch.Run) -> None:
    assert found.violations.is_empty()
    [connection] = found.connections.iter_rows(named=True)
    assert (connection["protocol"], connection["state"]) == ("MPTCP", "closed")
    assert connection["has_checksums"]
    assert connection["is_complete"]
    assert connection["bytes_in"] == connection["acked_in"] == 2_000_000
    shown = found.subflows.sort("bytes_in")
    sent = made.subflows.sort("bytes_sent")
    assert shown["bytes_in"].to_list() == sent["bytes_sent"].to_list()
    assert shown["reinjected_in"].to_list() == sent["bytes_reinjected"].to_list()
    assert shown["reinjected_in"].sum() > 0
    # The run counts a retransmitted FIN as a byte.
    again = sent["bytes_retransmitted"] - shown["retransmitted_in"]
    assert again.to_numpy().min() >= 0
    assert again.to_numpy().max() <= 2
    assert shown["seen_at"].to_list() == ["server-3g", "server-wifi"]
    assert made.connections["bytes_delivered"].to_list() == [connection["acked_in"]]
    # From the first SYN at the server until the last byte is acknowledged there: as long as from
    # the client's first SYN until that byte has arrived.
    (goodput,) = made.summary()["goodput_mbps"]
    assert connection["goodput_in_mbps"] == pytest.approx(goodput, rel=1e-3)


def test_segments_cover_the_data(found: Analysis) -> None:
    data = found.data(0, "in")
    new = data.filter(pl.col("kind") == "new").sort("start")
    assert (new["start"][0], new["end"][-1]) == (0, 2_000_000)
    assert (new["end"][:-1] == new["start"][1:]).all()
    again = data.filter(pl.col("kind") == "reinjection")["len"].sum()
    assert again == found.connections["repeated_in"][0]
    acks = found.acknowledgements(0, "in")
    # The DATA_FIN uses one data sequence number.
    assert acks["acked"].max() == 2_000_001
    assert acks["acked"].is_sorted()
    assert (acks["edge"] - acks["acked"]).to_numpy().max() <= 102_400 + 1


def test_rules_and_columns_are_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for name, clause, meaning in _core.analyse_rules():
        assert f"| `{name}` | §{clause} | {meaning} |" in text


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_decodes_the_same_numbers(found: Analysis, capture: Path) -> None:
    wanted = ["frame.number", "tcp.options.mptcp.rawdataseqno", "tcp.len"]
    fields = [part for name in wanted for part in ("-e", name)]
    shown = 'tcp.len > 0 and frame.interface_name matches "^server" and tcp.srcport == 5001'
    command = ["tshark", "-r", str(capture), "-Y", shown, "-T", "fields", *fields]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    decoded = {}
    for line in lines:
        packet, number, length = line.split("\t")
        if number:
            decoded[int(packet)] = (int(number), int(length))
    received = found.segments.filter(pl.col("direction") == "in", pl.col("len") > 0)
    numbers = {
        row["packet"]: (row["dsn"] % 2**32, row["len"]) for row in received.iter_rows(named=True)
    }
    assert len(decoded) > 1_000
    for place, expected in decoded.items():
        assert numbers[place] == (expected[0] % 2**32, expected[1])


def test_the_command_writes_tables_drawings_and_a_report(
    found: Analysis, capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["analyze", str(capture), "--out", str(tmp_path), "--strict"]) == 0
    printed = capsys.readouterr().out
    assert "no violations of RFC 8684" in printed
    assert "2,000,000" in printed
    for name in TABLES:
        written = pl.read_parquet(tmp_path / f"{name}.parquet")
        assert written.equals(getattr(found, name))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "no violations of RFC 8684" in page
    assert page.count('<img src="data:image/svg+xml') == 1
    assert {"c0-in.svg", "c0-in.png"} <= {file.name for file in tmp_path.iterdir()}
    assert run_command(["analyze", str(capture), "--out", str(tmp_path), "--csv"]) == 0
    assert pl.read_csv(tmp_path / "segments.csv").height == found.segments.height


@pytest.fixture
def altered(found: Analysis, capture: Path, tmp_path: Path) -> Path:
    """The capture with a wrong checksum in the middle of the data."""
    data = found.segments.filter(pl.col("len") > 0, pl.col("direction") == "in")
    packet = data["packet"][data.height // 2]
    file = tmp_path / "altered.pcapng"
    file.write_bytes(_with_another_dss_checksum(capture.read_bytes(), packet))
    return file


def test_a_violation_is_printed_and_strict_fails(
    altered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert analyze(altered).violations["rule"].to_list() == ["checksum_wrong"]
    assert run_command(["analyze", str(altered)]) == 0
    assert run_command(["analyze", str(altered), "--strict"]) == 1
    printed = capsys.readouterr().out
    assert "1 violation of RFC 8684" in printed
    assert "§3.3.1" in printed


def _with_another_dss_checksum(capture: bytes, wanted: int) -> bytes:
    """Decrease a DSS checksum by 1, and set the urgent pointer to 1 so that TCP's stays right."""
    data, at, block, number = bytearray(capture), 0, 0, 0
    while number < wanted:
        number += int.from_bytes(data[at : at + 4], "little") == 6
        block, at = at, at + int.from_bytes(data[at + 4 : at + 8], "little")
    tcp = block + 28 + 20
    option = tcp + 20
    while not (data[option] == 30 and data[option + 2] >> 4 == 2):
        option += 1 if data[option] <= 1 else data[option + 1]
    checksum = option + data[option + 1] - 2
    found = int.from_bytes(data[checksum : checksum + 2], "big")
    assert (checksum - tcp) % 2 == 0
    assert found > 0
    data[checksum : checksum + 2] = (found - 1).to_bytes(2, "big")
    data[tcp + 19] = 1
    return bytes(data)


def test_damaged_files_are_read_up_to_the_damage(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(capture.read_bytes()[:500_000])
    assert run_command(["analyze", str(cut)]) == 2
    captured = capsys.readouterr()
    assert "cut.pcapng: at byte 49" in captured.err
    assert "ends in the middle of a packet" in captured.err
    assert "MPTCP" in captured.out
    assert run_command(["analyze", str(tmp_path / "none.pcap")]) == 2
    assert "none.pcap" in capsys.readouterr().err
    assert run_command(["analyze", __file__]) == 2
    assert "not a capture: neither pcapng nor pcap" in capsys.readouterr().err


def test_a_capture_without_tcp_has_empty_tables(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    header = [0xA1B23C4D, 0x00040002, 0, 0, 65535, 101]
    empty.write_bytes(b"".join(word.to_bytes(4, "little") for word in header))
    found = analyze(empty)
    assert found.segments.is_empty()
    assert found.violations.is_empty()
    assert largest(found, 3) == []
    assert run_command(["analyze", str(empty), "--out", str(tmp_path / "out")]) == 0


def test_bars_on_the_grid_cover_what_the_segments_cover() -> None:
    rng = np.random.default_rng(1)
    times = np.sort(rng.random(20_000))
    starts = (times * 1e6 + rng.integers(0, 50_000, 20_000)).astype(np.int64)
    segments = pl.DataFrame({"seconds": times, "start": starts, "end": starts + 1_400})
    limits = (0.0, 1.0, 0.0, 1.1e6)
    x, low, high = analyze_panels._bars_on_grid(segments, limits)
    assert x.size < times.size
    columns, rows = analyze_panels._GRID
    drawn: dict[int, list[tuple[float, float]]] = {}
    for at, bottom, top in zip(x, low, high, strict=True):
        drawn.setdefault(int(at * columns), []).append((bottom, top))
    height = limits[3] / rows
    for time, start in zip(times[::50], starts[::50], strict=True):
        bars = drawn[int(time * columns)]
        assert any(b <= start + 1e-6 and start + 1_400 <= t + 1e-6 for b, t in bars)
    covered = sum(top - bottom for bottom, top in zip(low, high, strict=True))
    assert covered <= 20_000 * (1_400 + 2 * height)


def test_progress_can_stop_the_reading(capture: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        analyze(*[capture] * 20, on_progress=stop)


def test_the_same_file_twice_is_one_transfer(found: Analysis, capture: Path) -> None:
    twice = analyze(capture, capture)
    assert twice.connections.equals(found.connections)
    assert json.dumps(twice.notes).count("several places") == 1


def test_json_leads_from_each_row_to_its_packets(
    found: Analysis, altered: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["analyze", str(altered), "--json", "--out", str(tmp_path / "out")]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["files"] == [str(altered)]
    assert printed["report"] == str(tmp_path / "out" / "report.html")
    assert printed["packets"][0]["unread_packets"] == 0
    [violation] = printed["violations"]
    assert violation["packets"] == [violation["packet"]]
    assert violation["filter"] == f"frame.number == {violation['packet']}"
    [connection] = printed["connections"]
    subflows = printed["subflows"]
    assert connection["filter"] == " || ".join(each["filter"] for each in subflows)
    assert connection["version"] == 1
    assert "1 violation of RFC 8684" in " ".join(printed["finding"])
    if shutil.which("tshark") is not None:
        assert _shown(altered, violation["filter"]) == [violation["packet"]]
        # The capture has the server's interfaces only, so each packet once.
        numbers = found.segments.filter(pl.col("subflow") == subflows[0]["subflow"])["packet"]
        assert _shown(altered, subflows[0]["filter"]) == numbers.to_list()


def test_the_filter_of_a_violation_shows_all_of_its_packets(altered: Path) -> None:
    found = analyze(altered)
    several = found.violations.with_columns(packets=pl.lit("3, 7, 12"))
    changed = dataclasses.replace(found, violations=several)
    [violation] = as_json(changed)["violations"]
    assert violation["packets"] == [3, 7, 12]
    assert violation["filter"] == "frame.number in {3, 7, 12}"
    assert packets_of_violations(changed) == [f"{altered}: frame.number in {{3, 7, 12}}"]
    if shutil.which("tshark") is not None:
        assert _shown(altered, violation["filter"]) == [3, 7, 12]


def _shown(capture: Path, display_filter: str) -> list[int]:
    """Numbers of the packets that tshark shows with this filter."""
    command = ["tshark", "-r", str(capture), "-Y", display_filter, "-T", "fields"]
    done = subprocess.run(
        [*command, "-e", "frame.number"], check=True, capture_output=True, text=True
    )
    return [int(line) for line in done.stdout.split()]


def test_filters_of_ipv6_addresses_are_those_of_wireshark() -> None:
    assert subflow_filter("[fd00::1]:5001", "[fd00::2]:80") == (
        "(ipv6.addr == fd00::1 && ipv6.addr == fd00::2 && tcp.port == 5001 && tcp.port == 80)"
    )
    assert packet_filter([7]) == "frame.number == 7"
    assert packet_filter([7, 9]) == "frame.number in {7, 9}"


def test_standard_input_pipes_and_compressed_files_are_read(
    found: Analysis, capture: Path, tmp_path: Path
) -> None:
    compressed = tmp_path / "run.pcapng.gz"
    compressed.write_bytes(gzip.compress(capture.read_bytes(), 1))
    assert analyze(compressed).connections.equals(found.connections)
    command = [sys.executable, "-m", "anabranch", "analyze", "--json", "-"]
    with compressed.open("rb") as file:
        done = subprocess.run(command, stdin=file, check=True, capture_output=True)
    printed = json.loads(done.stdout)
    assert printed["files"] == ["standard input"]
    assert printed["connections"][0]["bytes_in"] == found.connections["bytes_in"][0]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(compressed.read_bytes()))
    writer.start()
    piped = analyze(pipe)
    writer.join()
    assert piped.connections.equals(found.connections)
    assert piped.files["file"].to_list() == [str(pipe)]


def test_packets_that_could_not_be_judged_are_named_and_strict_fails(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # ESP in IPv4, behind the capture of a run.
    packet = bytes([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 50, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]) + bytes(20)
    block = (0).to_bytes(12, "little") + len(packet).to_bytes(4, "little") * 2 + packet
    size = (len(block) + 12).to_bytes(4, "little")
    unread = tmp_path / "unread.pcapng"
    unread.write_bytes(capture.read_bytes() + (6).to_bytes(4, "little") + size + block + size)
    about = analyze(unread)
    assert (about.files["unread_packets"][0], about.not_judged) == (1, 1)
    assert about.files["unread"][0].startswith("1 encrypted (first: packet ")
    assert run_command(["analyze", str(unread)]) == 0
    assert run_command(["analyze", str(unread), "--strict"]) == 1
    printed = capsys.readouterr().out
    assert "no violations of RFC 8684; 1 packet could not be judged" in printed
    assert "1 packet was not read and not judged: 1 encrypted" in " ".join(printed.split())
