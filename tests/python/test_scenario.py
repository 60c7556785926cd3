import dataclasses
import pathlib
import subprocess
import sys
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import anabranch
from anabranch import _core
from anabranch.results import metrics
from anabranch.scenarios.scenario import (
    Blocks,
    Bulk,
    Cbr,
    Change,
    Connection,
    CrossTraffic,
    Distribution,
    Middlebox,
    NetworkPath,
    OnOff,
    RequestResponse,
    Reverse,
    Scenario,
    Trace,
    Workload,
)
from conftest import THREE_G, WIFI, scenario


def test_the_classes_are_those_of_the_schema() -> None:
    script = pathlib.Path(__file__).parents[2] / "tools/generate/scenario_classes.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True)


@pytest.mark.parametrize(
    ("workload", "byte_count"),
    [
        (Cbr(rate="1Mbit/s", block_size="1kB", count=3), [1_000] * 3),
        (OnOff(burst_size="20kB", interval="200ms", count=2), [20_000] * 2),
        (
            OnOff(
                burst_size=Distribution(kind="uniform", min="5kB", max="5kB"),
                interval=Distribution(kind="exponential", mean="50ms"),
                count=3,
            ),
            [5_000] * 3,
        ),
        (
            RequestResponse(
                request_size="300B",
                responses=Distribution(kind="uniform", min=4, max=4),
                response_size=Distribution(kind="lognormal", median="2kB", sigma=0),
                think_time="10ms",
                count=2,
            ),
            [8_000] * 2,
        ),
    ],
)
def test_blocks_bursts_and_rounds_are_measured(workload: Workload, byte_count: list[int]) -> None:
    made = anabranch.run(
        Scenario(
            name="workload",
            duration="5s",
            paths=(WIFI,),
            connections=(Connection(workload=workload),),
        )
    )
    assert made.blocks["bytes"].to_list() == byte_count
    (row,) = metrics.connection_rows(made)
    assert (row["block_count"], row["completed"]) == (len(byte_count), True)
    assert metrics.tables(made)["blocks"]["bytes"].to_list() == byte_count


def full() -> Scenario:
    path = NetworkPath(
        name="wifi",
        rate="8Mbit/s",
        delay="10ms",
        limit="80ms",
        jitter="2ms",
        jitter_model="reordering",
        loss="0.5%",
        mtu="1400B",
        reverse=Reverse(rate="1Mbit/s", delay="12ms", limit="infinite", jitter="1ms", loss="1%"),
        middleboxes=(
            Middlebox(
                kind="strip_options",
                from_="1s",
                until="2s",
                options=("mp_join", "dss"),
                segments=("data",),
                after_packets=7,
                applies_to="forward",
            ),
            Middlebox(kind="nat", idle_timeout="30s", rebind_at="5s"),
            Middlebox(kind="split_segments", size="500B", options_on="first"),
            Middlebox(kind="coalesce", size="3kB", delay="2ms"),
            Middlebox(kind="rewrite_payload", change="insert", bytes=3, at="1MB"),
            Middlebox(kind="proactive_ack", window="10kB"),
            Middlebox(kind="blackhole_options", syns="mp_join"),
            Middlebox(kind="shrink_window", every="2s", for_="1s", to="3kB", refuse=True),
        ),
        changes=(
            Change(at="10s", state="down"),
            Change(at="20s", state="up", rate="2Mbit/s", applies_to="forward"),
        ),
    )
    connection = Connection(
        name="main",
        paths=("3g", "wifi"),
        protocol="mptcp",
        direction="upload",
        start="1s",
        send_buffer="200KiB",
        receive_buffer="200kB",
        congestion_control="new_reno",
        scheduler="min_rtt",
        path_manager="initial_only",
        remedies={"cwnd_cap": {"cap_factor": 2.5}},
        host="rfc",
        nagle=False,
        dss_checksum=True,
        ecn=True,
        sack=False,
        timestamps=False,
        hystart=True,
        workload=Blocks(block_size="16KiB", count=100),
    )
    tcp = Connection(name="bulk", paths=("3g",), protocol="tcp", workload=Bulk(size="16MiB"))
    bare = Middlebox(kind="bare_segments", probability="2%")
    return Scenario(
        name='full "of" everything',
        description="all keys\nare written",
        duration="100s",
        warm_up="5s",
        sample_interval="50ms",
        paths=(path, dataclasses.replace(THREE_G, middleboxes=(bare,))),
        connections=(connection, tcp),
    )


def test_every_field_reaches_the_core_unchanged() -> None:
    written = tomllib.loads(full().to_toml())
    normalised = tomllib.loads(_core.Scenario.parse(full().to_toml(), "full.toml").to_toml())

    def contained(part: Any, whole: Any) -> None:
        if isinstance(part, dict):
            for key in part:
                contained(part[key], whole[key])
        elif isinstance(part, list):
            assert len(part) == len(whole)
            for one, other in zip(part, whole, strict=True):
                contained(one, other)
        else:
            assert part == whole

    contained(written, normalised)


def test_a_fallback_is_in_the_metrics() -> None:
    def row(*middleboxes: Middlebox) -> dict[str, Any]:
        path = dataclasses.replace(WIFI, middleboxes=middleboxes)
        connection = Connection(workload=Bulk(size="100kB"))
        made = anabranch.run(
            Scenario(name="box", duration="5s", paths=(path,), connections=(connection,))
        )
        return metrics.connection_rows(made)[0]

    unharmed, stripped = row(), row(Middlebox(kind="strip_options", segments=("syn_ack",)))
    assert (unharmed["is_mptcp"], unharmed["fallback"]) == (True, "")
    assert (stripped["is_mptcp"], stripped["fallback"]) == (False, "syn_ack")
    assert stripped["bytes_delivered"] == 100_000


def test_a_trace_is_a_file_or_its_content(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lte.trace").write_text("2\n2\n5\n")
    monkeypatch.chdir(tmp_path)

    def over(trace: str | Trace) -> Scenario:
        path = NetworkPath(name="lte", trace=trace, delay="20ms", limit="100ms")
        connection = Connection(workload=Bulk())
        return Scenario(name="a/b", duration="1s", paths=(path,), connections=(connection,))

    from_file = anabranch.run(over("lte.trace"))
    assert from_file.settings["path"][0]["trace"] == {"milliseconds": "2*2 5"}
    inline = anabranch.run(over(Trace(milliseconds="2 5")))
    assert anabranch.run(over(Trace(milliseconds="2*2 5"))).digest == from_file.digest
    assert inline.digest != from_file.digest
    with pytest.raises(anabranch.ScenarioError, match=r"path\[0\]\.trace: .*gone\.trace"):
        anabranch.run(over("gone.trace"))


def test_cross_traffic_takes_its_share_of_a_path() -> None:
    others = CrossTraffic(
        path="wifi",
        rate="4Mbit/s",
        packet_size="1kB",
        on=Distribution(kind="exponential", mean="200ms"),
        off="200ms",
    )
    alone = scenario("10s", workload=Bulk())
    shared = dataclasses.replace(alone, cross_traffic=(others,))
    quiet, loaded = anabranch.run(alone), anabranch.run(shared)
    assert loaded.settings["cross_traffic"][0]["name"] == "cross-traffic-1"
    assert loaded.digest != quiet.digest
    (less,), (more,) = map(metrics.connection_rows, (loaded, quiet))
    assert less["goodput_mbps"] < more["goodput_mbps"]


def test_what_is_left_out_is_not_written() -> None:
    assert WIFI.reverse is None
    text = Scenario(
        name="a", duration="1s", paths=(WIFI,), connections=(Connection(workload=Bulk()),)
    ).to_toml()
    assert text == (
        'name = "a"\nduration = "1s"\n\n'
        '[[path]]\nname = "wifi"\ndelay = "10ms"\nlimit = "54packets"\nrate = "8Mbit/s"\n\n'
        '[[connection]]\n\n[connection.workload]\nkind = "bulk"\n'
    )


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives(text: str) -> None:
    written = dataclasses.replace(scenario(), description=text).to_toml()
    assert tomllib.loads(written)["description"] == text


def test_a_wrong_scenario_is_explained_by_the_core() -> None:
    wrong = dataclasses.replace(scenario(), duration="3")
    with pytest.raises(anabranch.ScenarioError, match="duration") as caught:
        anabranch.run(wrong)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"send_buffer": 2**70},
            r"connection\[0\]\.send_buffer: 1180591620717411303424: write text",
        ),
        ({"send_buffer": pathlib.Path("x")}, r"send_buffer: \S*Path\('x'\): write text"),
        ({"remedies": {"penalisation": None}}, r"\[0\]\.remedies\.penalisation: None: write text"),
    ],
)
def test_a_value_that_toml_cannot_hold_is_named(values: dict[str, Any], words: str) -> None:
    with pytest.raises(anabranch.ScenarioError, match=words):
        anabranch.run(scenario(**values))


def test_starting_at_moves_every_connection() -> None:
    moved = full().starting_at("7ms")
    assert [each.start for each in moved.connections] == ["7ms", "7ms"]
    assert moved.paths == full().paths
