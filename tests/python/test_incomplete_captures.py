"""Answers of `explain` and `twin` to incomplete captures."""

import json
import random
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anabranch
import captures
from anabranch.analyze import flights, records
from anabranch.analyze.analysis import analyze
from anabranch.cli.main import run_command
from anabranch.errors import InputError
from anabranch.explanations import capture
from anabranch.explanations.capture import CaptureExplanation, SubflowStates
from anabranch.twins import observed
from captures import Packets

Captured = pytest.CaptureFixture[str]

RECORDED = Path(__file__).parent / "recorded"

_WIFI = anabranch.NetworkPath(name="wifi", rate="8Mbit/s", delay="10ms", limit="54packets")
_LTE = anabranch.NetworkPath(name="lte", rate="4Mbit/s", delay="30ms", limit="60packets")
_SLOW = anabranch.NetworkPath(name="slow", rate="2Mbit/s", delay="75ms", limit="334packets")


def captured(
    folder: Path, *paths: anabranch.NetworkPath, duration: str = "5s", **settings: Any
) -> list[captures.Packet]:
    connection = anabranch.Connection(name="main", workload=anabranch.Bulk(), **settings)
    scenario = anabranch.Scenario(
        name="short", duration=duration, paths=paths, connections=(connection,)
    )
    return captures.of_run(folder, scenario)


@pytest.fixture(scope="module")
def two_paths(tmp_path_factory: pytest.TempPathFactory) -> Packets:
    folder = tmp_path_factory.mktemp("two")
    return captured(folder, _WIFI, _LTE, send_buffer="4MiB", receive_buffer="4MiB")


@pytest.fixture(scope="module")
def full_window(tmp_path_factory: pytest.TempPathFactory) -> Packets:
    """WiFi waits for the receive window behind a slow path."""
    folder = tmp_path_factory.mktemp("full")
    return captured(folder, _WIFI, _SLOW, send_buffer="2MiB", receive_buffer="150KiB")


def explained(folder: Path, packets: Packets) -> CaptureExplanation:
    (found,) = capture.explanations(analyze(written(folder, packets)))
    return found


def written(folder: Path, packets: Packets) -> Path:
    file = folder / "given.pcap"
    file.write_bytes(captures.pcap(packets))
    return file


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "c60",
            "c60.pcap: connection 0: 41 data segments without a data sequence number; "
            "capture whole headers (a snap length of 128)",
        ),
        ("unanswered", "unanswered.pcap: connection 0: no data: its handshake was not answered"),
        ("refused", "refused.pcap: connection 0: no data: its handshake was reset"),
    ],
)
@pytest.mark.parametrize("command", ["explain", "twin"])
def test_a_capture_without_data_gets_one_line(
    command: str, name: str, message: str, capsys: Captured
) -> None:
    assert run_command([command, str(RECORDED / f"{name}.pcap")]) == 2
    assert capsys.readouterr().err == f"anabranch: {message}\n"


def test_a_capture_that_begins_in_the_middle_has_a_twin_that_starts_afresh(
    capsys: Captured, tmp_path: Path
) -> None:
    file, out = str(RECORDED / "mid4.pcap"), tmp_path / "twin.toml"
    assert run_command(["twin", file, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "the twin starts afresh" in printed
    assert "the twin has the host's default receive buffer" in printed
    assert "receive_buffer" not in out.read_text(encoding="utf-8")
    assert run_command(["explain", file, "--what-if", "--seeds", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["connections"][0]["knows_window"] is False
    assert told["what_if"] is not None


def test_without_the_handshake_a_full_window_is_only_possible(
    full_window: Packets, tmp_path: Path
) -> None:
    analysis = analyze(written(tmp_path, full_window))
    (whole,) = capture.explanations(analysis)
    assert whole.main is not None
    assert whole.main[0] == "receive_window"
    # Without the handshakes, the scale of the windows is unknown, and so are they.
    unscaled = analysis.segments.with_columns(window=pl.lit(None, dtype=pl.UInt64))
    (found,) = capture.explanations(replace(analysis, segments=unscaled))
    assert not found.knows_window
    assert found.main is not None
    assert found.main[0] == "unknown"
    assert "because the receive window, the send buffer, the scheduler or" in found.finding()[-1]
    rows = [row[0] for row in capture.table(found).rows]
    assert "receive window, send buffer, scheduler or application" in rows


def test_data_without_sequence_numbers_is_counted(two_paths: Packets, tmp_path: Path) -> None:
    analysis = analyze(written(tmp_path, two_paths))
    bare = analysis.segments.with_columns(dsn=pl.lit(None, dtype=pl.UInt64))
    with pytest.raises(InputError, match=r"[\d,]+ data segments without a data sequence number"):
        [*capture.explanations(replace(analysis, segments=bare))]


# ---- clocks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("days", [30, 56 * 365])
def test_a_step_of_the_clock_costs_nothing(
    days: int, two_paths: Packets, tmp_path: Path, capsys: Captured
) -> None:
    half = len(two_paths) // 2
    later = [
        replace(each, time_ns=each.time_ns + days * captures.DAY_NS) for each in two_paths[half:]
    ]
    file = written(tmp_path, [*two_paths[:half], *later])
    analysis = analyze(file)
    tracemalloc.start()
    (found,) = capture.explanations(analysis)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    assert found.seconds == pytest.approx(days * 86_400, rel=1e-3)
    for each in found.subflows:
        assert sum(each.seconds.values()) == pytest.approx(found.seconds)
    assert run_command(["twin", str(file)]) == 2
    error = capsys.readouterr().err
    assert "no packet for " in error
    assert "(a step of the clock?), which no twin can repeat" in error
    assert error.count("\n") == 1


def test_a_twin_of_a_transfer_has_no_outages(two_paths: Packets, tmp_path: Path) -> None:
    half = len(two_paths) // 2
    later = [replace(each, time_ns=each.time_ns + 30 * 10**9) for each in two_paths[half:]]
    with pytest.raises(InputError, match=r"no packet for 30 s, 2\.\d s after its first"):
        observed.read([written(tmp_path, [*two_paths[:half], *later])])


def test_bins_of_a_capture_without_pauses_are_those_of_its_time(
    two_paths: Packets, tmp_path: Path
) -> None:
    # 5 s are 25 bins of 200 ms, and every one has segments.
    analysis = analyze(written(tmp_path, two_paths))
    (about,) = records.connections(analysis)
    edges = capture._edges(flights.seen(analysis, about, about.larger))
    assert len(edges) == 25


def test_the_largest_numbers_of_a_field_are_numbers(two_paths: Packets, tmp_path: Path) -> None:
    # A sequence number of 2**32 - 1 is like any other. The largest of a column once meant "none".
    client = two_paths[0].source
    wifi = [each for each in two_paths if each.addresses == two_paths[0].addresses]
    answer = next(each for each in wifi if each.source != client)
    base = int.from_bytes(answer.data[24:28], "big")

    def moved(packet: captures.Packet) -> captures.Packet:
        # The SYN/ACK gets the largest number, and the data begins at 0.
        at = 28 if packet.source == client else 24
        number = int.from_bytes(packet.data[at : at + 4], "big")
        return captures.rewritten(packet, at, ((number - base - 1) % 2**32).to_bytes(4, "big"))

    analysis = analyze(written(tmp_path, [wifi[0], *map(moved, wifi[1:])]))
    assert analysis.segments["seq"].null_count() == 0
    assert 2**32 - 1 in analysis.segments["seq"].to_list()
    assert [*capture.explanations(analysis)]


def test_a_twin_needs_data_under_way(two_paths: Packets, tmp_path: Path) -> None:
    one_time = [replace(each, time_ns=two_paths[0].time_ns) for each in two_paths]
    with pytest.raises(InputError, match="captured near the receiver"):
        observed.read([written(tmp_path, one_time)])


# ---- subflows and packets that are not in the capture ----------------------------------------


def of_path(packets: Packets, place: int) -> list[captures.Packet]:
    """The packets of the first or of the second path that the capture shows."""
    pairs = [*dict.fromkeys(each.addresses for each in packets)]
    return [each for each in packets if each.addresses == pairs[place]]


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("which", ["two_paths", "full_window"])
def test_one_path_of_two_is_said_and_no_cause_is_made_up(
    which: str,
    place: int,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: Captured,
) -> None:
    packets = of_path(request.getfixturevalue(which), place)
    found = explained(tmp_path, packets)
    # What the other path carried, from the capture of both.
    whole = analyze(written(tmp_path, request.getfixturevalue(which)))
    sent = whole.subflows["bytes_in"] - whole.subflows["reinjected_in"]
    assert found.elsewhere == pytest.approx(sent[1 - place] / sent.sum(), abs=0.05)
    # The last DATA_ACK on one path may be half a second earlier than that on the other.
    assert found.goodput_mbps == pytest.approx(whole.connections["goodput_in_mbps"][0], rel=0.12)
    assert found.finding()[1].startswith("1 of at least 2 subflows is in the capture: ")
    assert not found.knows_window
    assert found.main is None or found.main[0] != "receive_window"
    assert "nearly all the time" not in " ".join(found.finding())
    file = str(written(tmp_path, packets))
    assert run_command(["explain", file, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["connections"][0]
    assert told["carried_elsewhere"] == found.elsewhere
    assert run_command(["twin", file]) == 2
    error = capsys.readouterr().err
    assert "% of the data came over subflows that are not in the capture" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("part", ["first half", "every third", "headers"])
def test_packets_that_the_capture_lost_are_no_missing_subflow(
    part: str, two_paths: Packets, tmp_path: Path
) -> None:
    parts = {
        "first half": two_paths[: len(two_paths) // 2],
        "every third": [*two_paths[:300], *two_paths[300::3]],  # both handshakes, too
        "headers": captures.snapped(two_paths, 96),
    }
    found = explained(tmp_path, parts[part])
    assert found.elsewhere is None
    assert " over 2 subflows." in found.finding()[0]


def test_a_flood_of_joins_costs_no_more_than_the_subflows_that_are_shown(
    two_paths: Packets, tmp_path: Path
) -> None:
    first = two_paths[0].addresses
    at, join = next(
        (at, each) for at, each in enumerate(two_paths) if each.addresses != first
    )  # fmt: skip
    # Each has its own port, sequence number and nonce. RFC 8684 §3.2: the nonce ends the option.
    nonce = join.data.index(b"\x1e\x0c") + 8
    flood = []
    for number in range(2_000):
        ends = (20_000 + number).to_bytes(2, "big") + join.data[22:24]
        own = captures.rewritten(join, nonce, number.to_bytes(4, "big"))
        flood.append(captures.rewritten(own, 20, ends + (number * 7919).to_bytes(4, "big")))
    analysis = analyze(written(tmp_path, [*two_paths[:at], *flood, *two_paths[at:]]))
    assert analysis.connections["subflows"].to_list() == [2_002]
    tracemalloc.start()
    (found,) = capture.explanations(analysis)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    assert len(found.subflows) == 64
    assert found.left_out == 2_002 - 64
    assert "over 64 subflows (1,938 more carried less)." in found.finding()[0]
    carried = [each.subflow for each in found.subflows if each.rate_mbps > 0]
    assert len(carried) == 2


@pytest.mark.parametrize("which", ["two_paths", "full_window"])
def test_a_state_loses_no_more_than_its_time_could_carry(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    found = explained(tmp_path, request.getfixturevalue(which))
    for each in found.subflows:
        assert_possible(each, found.seconds)


def assert_possible(subflow: SubflowStates, seconds: float) -> None:
    for key, lost in subflow.lost_mbps.items():
        if key[0] != "reinjected":
            share = subflow.seconds.get(key, 0.0) / seconds
            assert lost <= subflow.rate_mbps * share + 1e-6


# ---- any part of a good capture --------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("which", ["two_paths", "full_window"])
def test_what_is_said_of_a_part_of_a_capture_is_possible(
    which: str, seed: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    packets: Packets = request.getfixturevalue(which)
    analysis = analyze(
        written(tmp_path, captures.cut(random.Random(f"part {which} {seed}"), packets))
    )
    for about in records.connections(analysis):
        way = about.ways[about.larger]
        if way.base is not None:
            # The analyser and the explanation count the same. A DATA_FIN has a number too.
            una = flights.Rows(analysis, about, about.larger, way.base).una[-1]
            assert 0 <= una - way.acked <= 1
    try:
        every = [*capture.explanations(analysis)]
    except InputError:
        return
    for found in every:
        goodput = analysis.connections[f"goodput_{found.direction}_mbps"][found.connection]
        assert found.goodput_mbps == goodput
        assert goodput is None or 0 < goodput < 13  # the paths have up to 12 Mbit/s
        for each in found.subflows:
            assert sum(each.seconds.values()) == pytest.approx(found.seconds)
            assert_possible(each, found.seconds)
        if not found.knows_window:
            states = {state for each in found.subflows for state, _ in each.seconds}
            assert "receive_window" not in states
