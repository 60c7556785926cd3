import json
import re
from pathlib import Path

import pytest

from anabranch.cli.main import run_command
from anabranch.errors import InputError
from anabranch.explanations import nstat, socket_report, sockets

Captured = pytest.CaptureFixture[str]

RECORDED = Path(__file__).parent / "ss"
"""Output of ss -tiMnm on the sending host: Linux 6.18 over the emulated links of a live run."""


def explained(name: str) -> sockets.SocketExplanation:
    snapshots = sockets.read(RECORDED / f"{name}.txt")
    assert snapshots is not None
    (found,) = sockets.explanations(snapshots)
    return found


@pytest.mark.parametrize("name", ["receive_window", "send_buffer", "application"])
def test_the_planted_cause_of_a_multipath_connection_is_named(name: str) -> None:
    found = explained(name)
    assert found.token is not None
    assert len(found.states) == 2
    assert found.main is not None
    assert found.main[1] == name


@pytest.mark.parametrize("name", ["network", "tcp_network", "fallback"])
def test_without_a_planted_cause_the_network_is_named(name: str) -> None:
    found = explained(name)
    assert found.main is None
    assert "its paths or congestion windows were the limit" in found.finding()[1]


def test_wifi_waits_behind_3g() -> None:
    # 10.1.0.0 is the client's address on WiFi, and 10.1.0.1 that on 3G.
    first, second = explained("receive_window").finding()
    assert first.startswith("Multipath TCP 10.0.0.1:5001 to 10.1.0.0:")
    assert second.startswith("the subflow to 10.1.0.0:")
    assert " behind that to 10.1.0.1:" in second


def test_the_clock_of_plain_tcp_is_believed() -> None:
    found = explained("tcp_receive_window")
    assert found.token is None
    assert "the receive window was full for 9" in found.finding()[1]
    assert found.finding()[1].endswith("in which it had data to send (rwnd_limited).")


def test_the_clocks_of_subflows_are_not_believed() -> None:
    # The recording without a planted cause: 3G's congestion window is full in every snapshot.
    found = explained("network")
    slow = max(found.last.subflows, key=lambda each: each.number("rtt"))
    assert slow.number("sndbuf_limited") == slow.number("busy")
    assert found.share(slow.name, "network") == 1


def test_without_memory_the_send_buffer_is_unknown(tmp_path: Path) -> None:
    text = (RECORDED / "send_buffer.txt").read_text(encoding="utf-8")
    bare = tmp_path / "ss.txt"
    bare.write_text(text.replace("skmem:", "other:"), encoding="utf-8")
    report = socket_report.read([bare])
    main = report.found[0].main
    assert main is not None
    assert main[1] == "unknown"
    assert any("the option -m of ss" in note for note in report.notes())


def test_output_without_multipath_sockets_is_read(tmp_path: Path) -> None:
    # `ss -ti` has no column Netid.
    text = """State  Recv-Q Send-Q Local Address:Port Peer Address:Port Process
ESTAB 0 14480 [2001:db8::1]:22 [2001:db8::2]:50000
\t cubic wscale:7,7 rto:204 rtt:3.2/1.1 mss:1448 cwnd:10 bytes_sent:90000 bytes_acked:75521 \
bytes_received:100 send 36200000bps busy:500ms unacked:10 snd_wnd:65535 minrtt:3
"""
    file = tmp_path / "ss.txt"
    file.write_text(text, encoding="utf-8")
    snapshots = sockets.read(file)
    assert snapshots is not None
    ((socket,),) = snapshots
    assert (socket.peer, socket.send_queue) == ("[2001:db8::2]:50000", 14480)
    assert socket.values["send"] == "36200000bps"
    assert sockets.Moment(None, [socket]).state(socket) == "network"


_PROBED = """tcp ESTAB 0 154240 192.0.2.1:873 198.51.100.1:48147 {timer}
\t skmem:(r0,rb262144,t0,tb2626560,f1920,w157824,o0,bl0,d0) cubic wscale:7,7 rto:273 backoff:7 \
rtt:72.2/10.4 mss:1386 cwnd:200 bytes_sent:4265799595 bytes_acked:4261890377 {unacked} \
busy:14771068ms notsent:154240 {window} tcp-ulp-mptcp flags:Jec token:0000(id:2)/e2a38ed6(id:2)
"""
_HEADING = "Netid State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n"
_PERSISTS = "timer:(persist,41sec,0)"


@pytest.mark.parametrize("timer", ["", _PERSISTS])
@pytest.mark.parametrize("window", ["", "snd_wnd:0", "snd_wnd:4294967295"])
@pytest.mark.parametrize("heading", ["", _HEADING])
def test_probes_of_a_closed_window_are_no_timeout(
    timer: str, window: str, heading: str, tmp_path: Path
) -> None:
    file = tmp_path / "ss.txt"
    text = _PROBED.format(timer=timer, unacked="", window=window)
    file.write_text(heading + text, encoding="utf-8")
    (found,) = socket_report.read([file]).found
    assert found.main is not None
    assert found.main[1] == "receive_window"
    assert found.finding()[1] == (
        "the subflow to 198.51.100.1:48147 waited because the receiver had closed its window at "
        "this moment."
    )


def test_backed_off_with_data_in_flight_is_a_timeout(tmp_path: Path) -> None:
    file = tmp_path / "ss.txt"
    file.write_text(
        _PROBED.format(timer="timer:(on,41sec,7)", unacked="unacked:3", window=""), encoding="utf-8"
    )
    (found,) = socket_report.read([file]).found
    assert found.main is not None
    assert found.main[1] == "silent"


def test_without_a_window_none_is_full(tmp_path: Path) -> None:
    # An ss that does not know snd_wnd leaves it out.
    file = tmp_path / "ss.txt"
    text = _PROBED.replace(" backoff:7", "")
    file.write_text(text.format(timer="", unacked="", window=""), encoding="utf-8")
    (found,) = socket_report.read([file]).found
    assert found.main is None
    assert json.loads(json.dumps(socket_report._json(found)))["window_bytes"] is None


def test_text_without_headings_has_the_same_snapshots(tmp_path: Path) -> None:
    # The heading of a table, and ss -H.
    whole = RECORDED / "receive_window.txt"
    lines = whole.read_text(encoding="utf-8").splitlines(keepends=True)
    bare = tmp_path / "bare.txt"
    bare.write_text("".join(each for each in lines if "Recv-Q" not in each), encoding="utf-8")
    assert sockets.read(bare) == sockets.read(whole)


@pytest.mark.parametrize("number", ["", "zz", "-1", "0x12", "f" * 17])
def test_sequence_numbers_that_are_none_leave_the_queues(number: str, tmp_path: Path) -> None:
    text = (RECORDED / "application.txt").read_text(encoding="utf-8")
    file = tmp_path / "ss.txt"
    file.write_text(re.sub(r"write_seq:\w+", f"write_seq:{number}", text), encoding="utf-8")
    snapshots = sockets.read(file)
    assert snapshots is not None
    (found,) = sockets.explanations(snapshots)
    for moment in found.moments:
        assert moment.waiting == sum(each.send_queue for each in moment.subflows)


def test_counters_name_a_fallback(tmp_path: Path) -> None:
    counters = nstat.read(RECORDED / "fallback-nstat.txt")
    assert counters is not None
    names = {name: (count, meaning) for name, count, meaning in nstat.meanings(counters)}
    count, meaning = names["MPTcpExtMPCapableFallbackSYNACK"]
    assert count == 1
    assert meaning.startswith("fell back to TCP")
    assert "MPTcpExtRcvWndShared" not in names


def test_the_command_explains_both_files(tmp_path: Path, capsys: Captured) -> None:
    files = [str(RECORDED / name) for name in ("fallback.txt", "fallback-nstat.txt")]
    out = tmp_path / "why"
    assert run_command(["explain", *files, "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["connections"][0]["protocol"] == "tcp"
    assert any(each["counter"].endswith("FallbackSYNACK") for each in told["counters"])
    assert "MPCapableFallbackSYNACK" in (out / "report.html").read_text(encoding="utf-8")
    assert run_command(["explain", files[0]]) == 0
    assert "its paths or congestion windows were the limit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello\n", "neither the output of ss nor of nstat; make it with: ss -tiMm > ss.txt"),
        ("#kernel\nTcpInSegs 5 0.0\n", "the output of nstat alone; add that of: ss -tiMm"),
        ("State Recv-Q Send-Q Local Address:Port\n", "no connection of this host sends data"),
    ],
)
def test_files_that_explain_nothing_are_named(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        socket_report.read([file])
    assert str(error.value).startswith(f"{file}: {message}")


def test_text_cannot_be_run_again(capsys: Captured) -> None:
    file = str(RECORDED / "network.txt")
    assert run_command(["explain", file, "--what-if"]) == 2
    assert "--what-if: the text of ss cannot be run again" in capsys.readouterr().err
    assert run_command(["explain", file, "run.pcap"]) == 2
    assert "captures only, or text of ss and nstat" in capsys.readouterr().err
