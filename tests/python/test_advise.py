import dataclasses
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anabranch
from anabranch import _core
from anabranch.advice import commands, goals, report, search, space, subject
from anabranch.advice.search import LINUX, Advice, Predicted
from anabranch.cli.main import run_command
from anabranch.errors import InputError
from anabranch.explanations.pairs import changed, changed_connections
from anabranch.results.estimates import Estimate
from anabranch.runs.run import run_scenario
from anabranch.scenarios import loading
from anabranch.scenarios.overrides import Overrides
from conftest import scenario

pytestmark = pytest.mark.usefixtures("plain_pictures")

Captured = pytest.CaptureFixture[str]

PATHS = ["8Mbit/s,20ms,54packets", "2Mbit/s,150ms,loss=0.5%"]


def connection_of(scenario: _core.Scenario) -> dict[str, Any]:
    return changed_connections(scenario.settings)[0]


def linux(**changes: object) -> _core.Scenario:
    asked = loading.of_text(scenario("8s", **changes).to_toml(), "short.toml")
    made = changed(asked, subject.as_linux(connection_of(asked)))
    assert made is not None
    return made


def test_goals_have_weights() -> None:
    assert goals.parsed(["throughput=2,latency"]) == {"throughput": 2.0, "latency": 1.0}
    assert goals.parsed(["failover", "latency=0.5"]) == {"failover": 1.0, "latency": 0.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("thruput", '--for: unknown goal "thruput"; did you mean "throughput"?'),
        ("latency,latency", "--for: latency is given twice"),
        ("latency=-1", '--for: latency: the weight "-1" is not a number above zero'),
        ("latency=", '--for: latency: the weight "" is not a number above zero'),
    ],
)
def test_wrong_goals_are_named(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        goals.parsed([text])
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("8Mbit/s", "write a rate, a round-trip time, and optionally a queue and a loss"),
        ("8Mbit/s,fast", '"fast" is not a round-trip time; write a number and a unit'),
        ("8,20ms", "rate: "),
        ("8Mbit/s,20ms,54", "limit: "),
        ("8Mbit/s,20ms,loss=2", "loss: "),
    ],
)
def test_wrong_paths_are_named(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        subject.of_paths([text])
    assert str(error.value).startswith(f"--path {text}: {message}")


def test_paths_make_a_scenario() -> None:
    settings = subject.of_paths(PATHS).settings
    first, second = settings["path"]
    # Half of the round-trip time each way.
    assert (first["rate"], first["delay"], first["limit"]) == ("8Mbit/s", "10ms", "54packets")
    assert (second["delay"], second["limit"], second["loss"]) == ("75ms", "100ms", "0.5%")
    assert settings["connection"][0]["protocol"] == "mptcp"
    assert subject.of_paths(PATHS[:1]).settings["connection"][0]["protocol"] == "tcp"


def test_the_rule_is_twice_the_sum_of_the_rates_times_the_longest_round_trip() -> None:
    # 2 · 10 Mbit/s · 150 ms = 375,000 bytes.
    settings = subject.of_paths(PATHS).settings
    assert subject.rule_bytes(settings, settings["connection"][0]) == 375_000


def test_jitter_counts_in_the_rule_of_wifi_and_3g() -> None:
    # 2 · 10 Mbit/s · (150 + 50) ms = 500,000 bytes = 488 KiB.
    asked = subject.of_file(Path("examples/wifi_3g.toml"))
    assert subject.rule_bytes(asked.settings, connection_of(asked)) == 500_000


def test_gains_are_the_weighted_geometric_mean_of_improvements() -> None:
    # Twice the goodput with weight 2, and twice the delay: (2² / 2)^(1/3).
    now = np.array([[4.0, 100.0, np.nan]])
    new = np.array([[8.0, 200.0, np.nan]])
    gain = goals.gains({"throughput": 2.0, "latency": 1.0}, new, now)
    assert gain == pytest.approx([2 ** (1 / 3)])


def test_a_pause_begins_when_a_path_fails() -> None:
    asked = subject.of_paths(["8Mbit/s,20ms"])
    whole, failed = goals.variants(asked, {"failover": 1.0})
    # The path fails in the middle of the measured time, at 36 s. The rest is a pause.
    settings = asked.settings
    assert (settings["warm_up"], settings["duration"]) == ("12s", "60s")
    assert goals.measured(run_scenario(failed, 1))[2] == pytest.approx(24, abs=0.2)
    assert goals.measured(run_scenario(whole, 1))[2] < 0.2


def test_sizes_of_tuned_buffers_stay() -> None:
    host = {"kind": "linux", "buffers": "socket", "tcp_rmem_max": "1MiB"}
    assert connection_of(linux(host=host))["host"]["tcp_rmem_max"] == "1MiB"


def test_a_scenario_runs_as_in_linux() -> None:
    connection = connection_of(linux(remedies={"penalisation": True}, path_manager="drepas"))
    assert connection["host"].items() >= {"kind": "linux", "buffers": "socket"}.items()
    assert connection["congestion_control"] == "cubic_linux"
    assert connection["hystart"] is True  # the default of cubic_linux, not that of lia
    assert (connection["scheduler"], connection["path_manager"]) == ("linux", "full_mesh")
    assert not connection.get("remedies")


def test_names_with_dots_can_be_advised() -> None:
    named = scenario("5s", name="a.b", workload=anabranch.Bulk(size="1MB"))
    (connection,) = subject.with_blocks(loading.of(named)).settings["connection"]
    assert connection["name"] == "a.b"
    assert connection["workload"]["kind"] == "blocks"


def test_every_option_of_both_spaces_is_a_scenario() -> None:
    for asked, space_of in ((linux(), space.of_linux), (subject.of_paths(PATHS), space.of_engine)):
        connection = connection_of(asked)
        choices = space_of(connection, 375_000)
        present = [choice.present for choice in choices]
        assert space.words(choices, present) == "no change"
        for at, choice in enumerate(choices):
            for index in range(len(choice.options)):
                chosen = [*present[:at], index, *present[at + 1 :]]
                new = space.keys(choices, chosen, connection)
                assert changed(asked, new) is not None, choice.options[index].words


def test_buffers_of_the_present_state_are_no_change() -> None:
    asked = linux(send_buffer="200KiB", receive_buffer="200KiB")
    buffers = space.of_linux(connection_of(asked), 200 << 10)[0]
    assert buffers.words.count("") == 1
    assert "200 KiB buffers" not in buffers.words
    assert buffers.words[-1] == space.AUTOTUNED


def test_advice_is_the_same_again_and_helps_with_small_buffers() -> None:
    asked = loading.of_text(scenario("5s").to_toml(), "short.toml")
    found = [search.advise(asked, {"throughput": 1.0}, [1, 2]) for _ in range(2)]
    (first, rule), (second, _) = found
    assert [each.best.words for each in first] == [each.best.words for each in second]
    assert [each.best.gain for each in first] == [each.best.gain for each in second]
    advice = first[0]
    # 200 KiB of both buffers are far less than the rule's.
    assert rule > 200 << 10
    assert advice.helps
    assert advice.now.gain.value == 1


def searched(options: list[int], gains: dict[tuple[int, ...], float]) -> search._Search:
    """A search that has measured these gains. `options` counts the options of each choice."""
    made = object.__new__(search._Search)
    made._space = [
        space.Choice(
            str(at), [space.Option("" if not each else f"{at}.{each}", {}) for each in range(n)]
        )
        for at, n in enumerate(options)
    ]
    made._present = (0,) * len(options)
    made._gains = {made._present: 1.0, **gains}
    made._delays = {each: float(100 + sum(each)) for each in made._gains}
    made._race = lambda candidates, seeds: made._gains.update(dict.fromkeys(candidates, 0.0))  # type: ignore[method-assign]
    made._seeds = [1]
    return made


@pytest.mark.parametrize(
    ("gains", "best"),
    [
        # The larger of two buffers is not better, and a scheduler alone does the same.
        ({(1, 0): 1.30, (4, 0): 1.31, (0, 1): 1.30}, (0, 1)),
        # A second change must bring 5 % more.
        ({(1, 0): 1.30, (1, 1): 1.35}, (1, 0)),
        ({(1, 0): 1.30, (1, 1): 1.45}, (1, 1)),
        # Of schedulers that do the same, the one with the shortest delay.
        ({(0, 1): 1.30, (0, 2): 1.305}, (0, 1)),
        # Nothing is worth a change.
        ({(1, 0): 1.03, (3, 1): 1.08}, (0, 0)),
    ],
)
def test_the_simplest_of_the_best_is_advised(
    gains: dict[tuple[int, ...], float], best: tuple[int, ...]
) -> None:
    assert searched([5, 3], gains)._simplest() == best


def test_every_single_change_is_tried_first() -> None:
    made = searched([4, 3], {})
    made._rule = lambda: (2, 0)  # type: ignore[method-assign]
    assert made._first() == [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (0, 2)]


def test_good_combinations_are_combined_further() -> None:
    buffers: dict[tuple[int, ...], float] = {(1, 0, 0): 1.3, (2, 0, 0): 1.25, (3, 0, 0): 1.24}
    single = buffers | {(0, 1, 0): 1.2, (0, 0, 1): 0.9}
    # From (1, 0, 0), then from (2, 0, 0). Two candidates differ in their buffers alone, so
    # (3, 0, 0) adds no third. Then from (0, 1, 0).
    made = searched([4, 2, 2], single)
    assert made._promising(5) == [(1, 1, 0), (1, 0, 1), (2, 1, 0), (2, 0, 1), (0, 1, 1)]
    # The best is (1, 1, 0). Expected are 1.5 · 1.25 / 1.3, 1.5 · 1.24 / 1.3 and 1.5 · 0.9.
    made = searched([4, 2, 2], single | {(1, 1, 0): 1.5, (1, 0, 1): 1.0})
    assert made._promising(3) == [(2, 1, 0), (3, 1, 0), (1, 1, 1)]


@pytest.mark.parametrize(
    ("value", "low", "words"),
    [(1.34, 0.88, "no change significantly helps."), (1.03, 1.01, "no change brings 5 %.")],
)
def test_advice_to_leave_it_has_the_reason(value: float, low: float, words: str) -> None:
    now = Predicted("now", "no change", 0, {}, linux(), {}, Estimate(1.0, 1.0, 1.0, 5))
    gain = Estimate(value, low, 2.7, 5)
    best = dataclasses.replace(now, words="1657 KiB buffers", changes=1, gain=gain)
    assert report.finding(Advice(LINUX, now, now, best)).endswith(words)


def test_advice_to_leave_it_comes_without_commands(capsys: Captured) -> None:
    assert run_command(["advise", "--path", "8Mbit/s,20ms,100packets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for line, stack in zip(lines, ("Linux", "anabranch"), strict=False):
        assert line.startswith(f"{stack}: leave it as it is (goodput ")
        assert "p95 delay" in line
    # Nothing is random here, so one run says it all.
    assert "as it is" in "\n".join(lines[2:])
    assert not [line for line in lines if line.startswith(("sysctl", "ip mptcp", "#", "Replace"))]
    assert "From one seed, because others give the same." in " ".join(lines)


@pytest.mark.slow
def test_advice_does_not_depend_on_the_duration() -> None:
    words = set()
    for duration in ("10s", "20s", "60s"):
        settings = Overrides(settings=[f"duration={duration}", "warm_up=2s"])
        asked = subject.of_file(Path("examples/wifi_3g.toml"), settings)
        found, _ = search.advise(asked, {"throughput": 1.0}, [1, 2, 3])
        words.add(tuple(each.best.words if each.helps else "leave it" for each in found))
    assert len(words) == 1


def test_linux_accepts_the_commands(tmp_path: Path) -> None:
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("needs ip and unshare")
    asked = linux(path_manager={"kind": "backup", "regular": "wifi"})
    settings = asked.settings
    client, *_, server, _ = commands.of(settings, connection_of(asked))
    assert any(line.endswith("subflow backup  # 3g") for line in client.lines)
    # A user namespace may change neither the limits of the whole machine, nor load a module.
    per_machine = ("net.core", "congestion_control=cubic")
    for place in (client, server):
        lines = [each for each in place.lines if not any(word in each for word in per_machine)]
        script = "\n".join(["set -e", *lines, "ip mptcp endpoint show"])
        done = subprocess.run(
            ["unshare", "-rn", "sh", "-c", script], capture_output=True, text=True, check=False
        )
        if "unshare" in done.stderr or "net.mptcp" in done.stderr:
            pytest.skip(f"no namespaces or no Multipath TCP here: {done.stderr}")
        assert done.returncode == 0, done.stderr
        assert ("192.0.2.2 id 2 subflow backup" in done.stdout) == (place is client)


def test_a_server_announces_its_address_of_the_other_family() -> None:
    wifi = anabranch.NetworkPath(name="wifi", rate="8Mbit/s", delay="10ms", limit="54packets")
    lte = dataclasses.replace(wifi, name="lte", family="ipv6")
    connection = anabranch.Connection(workload=anabranch.Blocks())
    both = anabranch.Scenario(
        name="both", duration="5s", paths=(wifi, lte), connections=(connection,)
    )
    asked = loading.of(both)
    made = changed(asked, subject.as_linux(connection_of(asked)))
    assert made is not None
    client, server = commands.of(made.settings, connection_of(made))
    assert "ip mptcp limits set subflows 1 add_addr_accepted 1" in client.lines
    assert "ip mptcp endpoint add 2001:db8::2 subflow  # lte" in client.lines
    assert server.lines[-1] == "ip mptcp endpoint add 2001:db8::100 signal  # the server's"


def test_large_buffers_need_a_larger_limit_on_the_side_that_uses_them() -> None:
    asked = linux(send_buffer="500kB", receive_buffer="500kB")
    shown = {each.place: each.lines for each in commands.of(asked.settings, connection_of(asked))}
    assert (
        "sysctl -w net.core.rmem_max=500000  # unless it is larger"
        in shown["on the client, as root"]
    )
    assert (
        "sysctl -w net.core.wmem_max=500000  # unless it is larger"
        in shown["on the server, as root"]
    )
    assert shown["in the client's program, before connect()"] == (
        "setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){500000}, sizeof(int));",
    )
    small = linux(send_buffer="100kB", receive_buffer="100kB")
    lines = [each.lines for each in commands.of(small.settings, connection_of(small))]
    assert not any("net.core" in line for each in lines for line in each)


def test_short_queues_next_to_another_path_lead_to_a_warning() -> None:
    def warnings(*paths: str) -> list[str]:
        settings = subject.of_paths(paths).settings
        return subject.warnings(settings, settings["connection"][0])

    # 100 ms of 2 Mbit/s are 17 packets of 1500 bytes, and 60,000 bytes are 40.
    assert warnings("8Mbit/s,20ms,54packets", "2Mbit/s,150ms,100ms")[0].startswith(
        "path2 has a queue"
    )
    assert not warnings("8Mbit/s,20ms,54packets", "2Mbit/s,150ms,60000B")
    assert not warnings("2Mbit/s,150ms,100ms")


def test_the_command_prints_json_and_writes_a_report(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "short.toml"
    file.write_text(scenario("2s").to_toml(), encoding="utf-8")
    out = tmp_path / "out"
    arguments = ["advise", str(file), "--for", "throughput,latency", "--seeds", "1", "--json"]
    assert run_command([*arguments, "--out", str(out)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["for"] == {"throughput": 1.0, "latency": 1.0}
    assert told["linux"]["now"]["goodput_mbps"]["value"] > 0
    assert told["linux"]["commands"]["on the client, as root"]
    assert json.loads((out / "advice.json").read_text(encoding="utf-8"))["linux"] == told["linux"]
    assert "Commands for Linux" in (out / "report.html").read_text(encoding="utf-8")
    assert run_command(["run", str(out / "linux.toml")]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a scenario, or paths with --path"),
        (["a.toml", "--path", "8Mbit/s,20ms"], "name a scenario, or paths with --path"),
        (["--path", "8Mbit/s,20ms", "--set", "a=1"], "--set changes a scenario"),
    ],
)
def test_what_to_advise_must_be_clear(arguments: list[str], message: str, capsys: Captured) -> None:
    assert run_command(["advise", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_advice_on_failover_compares_the_settings_of_linux(capsys: Captured) -> None:
    paths = ["--path", "8Mbit/s,20ms,54packets", "--path", "4Mbit/s,60ms,54packets"]
    assert run_command(["advise", *paths, "--for", "failover", "--seeds", "1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["linux"]["failover"]
    by_setting = {row["setting"]: row for row in rows}
    assert by_setting["as advised"]["commands"] == []
    assert by_setting["stale_loss_cnt 1"]["commands"] == ["sysctl -w net.mptcp.stale_loss_cnt=1"]
    assert by_setting["tcp_retries2 5"]["commands"] == ["sysctl -w net.ipv4.tcp_retries2=5"]
    pauses = {name: row["pause_s"]["value"] for name, row in by_setting.items()}
    # A subflow goes out of use after one silent period instead of four.
    assert pauses["stale_loss_cnt 1"] <= pauses["stale_loss_cnt 8"]
    # Another path takes over long before a subflow ends.
    assert pauses["tcp_retries2 5"] == pauses["as advised"]
    assert max(pauses.values()) < 5


def test_a_changed_stale_loss_cnt_is_among_the_commands() -> None:
    asked = linux()
    connection = connection_of(asked)
    host = {**connection["host"], "stale_loss_cnt": 1}
    made = changed(asked, {"host": host})
    assert made is not None
    lines = [
        line for each in commands.of(made.settings, connection_of(made)) for line in each.lines
    ]
    assert "sysctl -w net.mptcp.stale_loss_cnt=1" in lines
    assert not any(
        "stale_loss_cnt" in line
        for each in commands.of(asked.settings, connection)
        for line in each.lines
    )
