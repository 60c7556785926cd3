import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import anabranch
from anabranch.analyze import qlog
from anabranch.analyze.analysis import Analysis, analyze
from anabranch.cli.main import run_command
from conftest import scenario

Captured = pytest.CaptureFixture[str]

# What draft-ietf-quic-qlog-main-schema (0.3) requires of a contained JSON file, and what it says of
# the types of optional fields that are written here. Times are milliseconds.
SCHEMA = {
    "type": "object",
    "required": ["qlog_version", "traces"],
    "properties": {
        "qlog_version": {"const": "0.3"},
        "qlog_format": {"const": "JSON"},
        "title": {"type": "string"},
        "description": {"type": "string"},
        "traces": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["events"],
                "properties": {
                    "title": {"type": "string"},
                    "vantage_point": {
                        "required": ["type"],
                        "properties": {
                            "name": {"type": "string"},
                            "type": {"enum": ["client", "server", "network", "unknown"]},
                        },
                    },
                    "common_fields": {
                        "properties": {
                            "time_format": {"const": "relative"},
                            "reference_time": {"type": "number"},
                            "protocol_type": {"type": "array", "items": {"type": "string"}},
                            "group_id": {"type": "string"},
                            "path_id": {"type": "string"},
                        }
                    },
                    "events": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["time", "name", "data"],
                            "properties": {
                                "time": {"type": "number", "minimum": 0},
                                "name": {"type": "string", "pattern": "^[a-z]+:[a-z_]+$"},
                                "data": {"type": "object"},
                            },
                        },
                    },
                },
            },
        },
    },
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Analysis, dict[str, Any], str]:
    folder = tmp_path_factory.mktemp("qlog")
    anabranch.run(scenario("6s"), pcap=folder / "run.pcapng")
    analysis = analyze(folder / "run.pcapng")
    qlog.save(analysis, folder / "run.qlog")
    text = (folder / "run.qlog").read_text(encoding="utf-8")
    return analysis, json.loads(text), text


def named(trace: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [event["data"] for event in trace["events"] if event["name"] == name]


def test_the_file_has_the_fields_that_the_schema_requires(
    made: tuple[Analysis, dict[str, Any], str],
) -> None:
    _, log, text = made
    jsonschema.validate(log, SCHEMA)
    # Readers look for the version in the first 256 bytes.
    assert '"qlog_version":"0.3","qlog_format":"JSON"' in text[:256]


def test_each_subflow_is_a_trace_of_the_sender(
    made: tuple[Analysis, dict[str, Any], str],
) -> None:
    analysis, log, _ = made
    assert len(log["traces"]) == analysis.subflows.height == 2
    assert [trace["common_fields"]["path_id"] for trace in log["traces"]] == ["0", "1"]
    for trace, subflow in zip(log["traces"], analysis.subflows.iter_rows(named=True), strict=True):
        assert trace["vantage_point"]["type"] == "server"  # a download
        times = [event["time"] for event in trace["events"]]
        assert times == sorted(times)
        sent = named(trace, "transport:packet_sent")
        assert [each["header"]["packet_number"] for each in sent] == [*range(len(sent))]
        carried = sum(each["raw"]["length"] for each in sent)
        assert carried == subflow["bytes_in"] + subflow["retransmitted_in"]


def test_segments_are_acknowledged_or_lost_once(
    made: tuple[Analysis, dict[str, Any], str],
) -> None:
    analysis, log, _ = made
    losses = 0
    for trace in log["traces"]:
        sent = {each["header"]["packet_number"] for each in named(trace, "transport:packet_sent")}
        lost = [each["header"]["packet_number"] for each in named(trace, "recovery:packet_lost")]
        acked = [
            number
            for packet in named(trace, "transport:packet_received")
            for frame in packet["frames"]
            if frame["frame_type"] == "ack"
            for low, high in frame["acked_ranges"]
            for number in range(low, high + 1)
        ]
        assert len({*acked, *lost}) == len(acked) + len(lost)
        assert {*acked, *lost} <= sent
        losses += len(lost)
    again = analysis.segments["kind"].cast(str) == "retransmission"
    assert losses == again.sum() > 0


def test_metrics_are_those_that_packets_show(made: tuple[Analysis, dict[str, Any], str]) -> None:
    _, log, _ = made
    wifi, cellular = (named(trace, "recovery:metrics_updated") for trace in log["traces"])
    # 20 and 150 ms without queues, and the time to send a segment of 1500 bytes.
    assert 20 <= wifi[-1]["min_rtt"] < 23
    assert 100 <= cellular[-1]["min_rtt"] < 160
    assert all(each["bytes_in_flight"] >= 0 for each in wifi + cellular)


def test_runs_and_captures_write_the_same_events(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "short.toml"
    file.write_text(scenario("2s").to_toml(), encoding="utf-8")
    of_run, of_capture, pcap = (tmp_path / name for name in ("a.qlog", "b.qlog", "c.pcapng"))
    assert run_command(["run", str(file), "--qlog", str(of_run)]) == 0
    assert run_command(["run", str(file), "--pcap", str(pcap)]) == 0
    assert run_command(["analyze", str(pcap), "--qlog", str(of_capture)]) == 0
    first, second = (json.loads(each.read_text(encoding="utf-8")) for each in (of_run, of_capture))
    assert first["traces"] == second["traces"]
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "a.qlog", "b.qlog", "c.pcapng", "short.toml",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "2"], "--qlog needs a single scenario without --seeds"),
        ([], "--qlog {out}: no such file or directory; name a writable file"),
    ],
)
def test_wrong_use_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: Captured
) -> None:
    file, out = tmp_path / "short.toml", tmp_path / "none" / "x.qlog"
    file.write_text(scenario("1s").to_toml(), encoding="utf-8")
    assert run_command(["run", str(file), "--qlog", str(out), *arguments]) == 2
    assert message.format(out=out) in capsys.readouterr().err


def test_a_capture_without_multipath_tcp_has_no_qlog(tmp_path: Path, capsys: Captured) -> None:
    tcp = anabranch.Connection(protocol="tcp", workload=anabranch.Bulk(size="100kB"))
    path = anabranch.NetworkPath(name="a", rate="8Mbit/s", delay="10ms", limit="100ms")
    plain = anabranch.Scenario(name="tcp", duration="2s", paths=(path,), connections=(tcp,))
    anabranch.run(plain, pcap=tmp_path / "tcp.pcapng")
    out = tmp_path / "tcp.qlog"
    assert run_command(["analyze", str(tmp_path / "tcp.pcapng"), "--qlog", str(out)]) == 2
    assert "the capture has no Multipath TCP subflow" in capsys.readouterr().err
    assert not out.exists()


def test_as_a_program_it_converts_the_capture_on_its_standard_input(tmp_path: Path) -> None:
    capture, direct = tmp_path / "run.pcapng", tmp_path / "run.qlog"
    file = tmp_path / "run.toml"
    file.write_text(scenario("2s").to_toml(), encoding="utf-8")
    run_command(["run", str(file), "--pcap", str(capture), "--qlog", str(direct)])
    command = [sys.executable, "-m", "anabranch.analyze.qlog"]
    with capture.open("rb") as packets:
        done = subprocess.run(command, stdin=packets, capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout)["traces"] == json.loads(direct.read_text())["traces"]
    empty = subprocess.run(command, input=b"", capture_output=True, check=False, timeout=60)
    assert empty.returncode == 1
    assert empty.stderr.startswith(b"anabranch proxy: ")
    assert empty.stderr.count(b"\n") == 1
