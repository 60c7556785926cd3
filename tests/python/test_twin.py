"""Twins of captured runs whose scenario is known."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch.analyze.analysis import analyze
from anabranch.cli.main import run_command
from anabranch.explanations import what_if
from anabranch.scenarios import loading
from anabranch.scenarios.classes import Change, Middlebox
from anabranch.twins import comparison, fit, observed, scenario
from anabranch.twins.fit import Fitted
from anabranch.twins.link import LinkFindings, link
from anabranch.twins.observed import Observed
from anabranch.twins.transmissions import Transmissions
from conftest import scenario as short

pytestmark = pytest.mark.usefixtures("plain_pictures")

Captured = pytest.CaptureFixture[str]

_WIFI: dict[str, Any] = {"name": "wifi", "rate": "12Mbit/s", "delay": "15ms", "limit": "60packets"}
_LTE: dict[str, Any] = {"name": "lte", "rate": "3Mbit/s", "delay": "30ms", "limit": "40packets"}
_LINUX = {
    "host": {"kind": "linux", "buffers": "socket"},
    "scheduler": "linux",
    "congestion_control": "cubic_linux",
}


def observe(
    folder: Path,
    wifi: dict[str, Any] | None = None,
    duration: str = "10s",
    lte: dict[str, Any] | None = None,
    **connection: Any,
) -> Observed:
    """Findings from the capture at the sender of a run over both paths."""
    paths = tuple(
        anabranch.NetworkPath(**each) for each in (_WIFI | (wifi or {}), _LTE | (lte or {}))
    )
    settings: dict[str, Any] = {"workload": anabranch.Bulk(), **_LINUX, **connection}
    made = anabranch.Scenario(
        name="truth",
        duration=duration,
        paths=paths,
        connections=(anabranch.Connection(name="main", **settings),),
    )
    file = folder / "server.pcapng"
    anabranch.run(made, seed=7, pcap=file, snap=128)
    return observed.read([file])


def test_a_tiny_uncertainty_is_not_spelled_out() -> None:
    assert scenario.uncertainty(5.8e-05, "Mbit/s") == "± less than 0.001 Mbit/s"
    assert scenario.uncertainty(0.094, "ms") == "± 0.094 ms"


def test_rate_delay_and_queue_are_those_of_the_paths(tmp_path: Path) -> None:
    # In half of the time, LTE's queue overflows four or five times only, which may not show it.
    seen = observe(tmp_path, duration="20s")
    for observation, truth in zip(seen.observations, ((12, 15, 60), (3, 30, 40)), strict=True):
        rate, delay, limit = truth
        assert observation.link is not None
        assert observation.link.rate_mbps.value == pytest.approx(rate, rel=0.001)
        assert observation.link.delay_ms.value == pytest.approx(delay, rel=0.01)
        assert observation.link.loss.value == 0
        if observation.link.filled:
            assert observation.link.limit.value == pytest.approx(limit, abs=1)
    assert seen.observations[0].link is not None
    assert seen.observations[0].link.filled


def test_random_losses_are_told_from_drops_of_the_queue(tmp_path: Path) -> None:
    seen = observe(tmp_path, {"loss": "0.5%"}, duration="30s")
    link = seen.observations[0].link
    assert link is not None
    assert abs(link.loss.value - 0.005) < 3 * link.loss.error
    assert link.burst == 1
    assert link.rate_mbps.value == pytest.approx(12, rel=0.001)


@pytest.mark.parametrize("direction", ["download", "upload"])
def test_the_twin_loses_the_packets_that_the_capture_shows_as_lost(
    tmp_path: Path, direction: str
) -> None:
    lost = (30, 400, 401, 700, 2500)
    losses = anabranch.LossTrace(packets=20_000, lost=lost)
    way: dict[str, Any] = {"loss_trace": losses}
    if direction == "upload":
        way = {"reverse": anabranch.Reverse(loss_trace=losses)}
    seen = observe(tmp_path, way, direction=direction)
    link = seen.observations[0].link
    assert link is not None
    assert link.lost == lost
    twin = scenario.first_guess(seen)
    path = tomllib.loads(scenario.to_toml(twin, "twin"))["path"][0]
    trace = (path if direction == "download" else path["reverse"])["loss_trace"]
    assert trace == {"packets": link.packets, "lost": list(lost)}
    (run,) = fit.run_all([(scenario.to_toml(twin, "twin"), 1)], "server.pcapng", None)
    assert run.observations[0].link is not None
    assert run.observations[0].link.lost == lost


@pytest.mark.slow
def test_runs_without_a_path_of_the_capture_are_not_laid_beside_it(tmp_path: Path) -> None:
    # With some seeds, data overtakes the end of the second subflow's handshake, and Linux closes
    # the subflow.
    lte = {"rate": "20Mbit/s", "jitter": "28ms", "jitter_model": "reordering"}
    seen = observe(tmp_path, lte=lte)
    twin = scenario.first_guess(seen)
    seeds = range(1, 9)
    runs = fit.run_all([(scenario.to_toml(twin, "twin"), seed) for seed in seeds], "x", None)
    carry = [
        seed
        for seed, run in zip(seeds, runs, strict=True)
        if len(run.observations) > 1 and run.observations[1].share > 0
    ]
    assert carry[:3] != [1, 2, 3]
    (chosen,) = fit._runs([twin], 3, "server.pcapng", None)
    assert list(chosen) == carry[:3]
    assert all(run.observations[1].share > 0 for run in chosen.values())


def test_the_rate_is_exact_where_a_queue_never_empties(tmp_path: Path) -> None:
    # A rate that is wrong by a thousandth misplaces the queue, and its drops seem random.
    wifi = {"rate": "28.7Mbit/s", "delay": "1.52ms", "limit": "11packets"}
    link = observe(tmp_path, wifi, duration="20s", paths=("wifi",)).observations[0].link
    assert link is not None
    assert link.rate_mbps.value == pytest.approx(28.7, rel=1e-6)
    assert link.loss.value == 0
    assert link.drops > 100


def test_a_misjudged_loss_does_not_bias_the_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def misjudged(sent: Transmissions, near_mbps: float | None) -> LinkFindings | None:
        assert near_mbps is None, "the rate of a capture is unknown"
        lost = sent.lost.copy()
        lost[sent.end.size // 3] = True
        return link(replace(sent, lost=lost))

    monkeypatch.setattr(observed, "link", misjudged)
    # The queue is rarely empty, so all later times seem one packet of 10 ms late.
    observation = {"rate": "1.23Mbit/s", "delay": "5ms", "limit": "60packets"}
    found = observe(tmp_path, observation, duration="20s", paths=("wifi",)).observations[0].link
    assert found is not None
    assert found.rate_mbps.value == pytest.approx(1.23, rel=1e-5)


def test_losses_in_a_row_are_bursts(tmp_path: Path) -> None:
    bursts = anabranch.BurstLoss(to_bad="0.3%", to_good="25%")
    seen = observe(tmp_path, {"burst_loss": bursts}, duration="30s")
    link = seen.observations[0].link
    assert link is not None
    # A visit to the bad state loses 1 / 0.25 = 4 packets in the mean.
    assert link.burst == pytest.approx(4, rel=0.35)
    assert "burst_loss" in scenario.to_toml(scenario.first_guess(seen), "twin", draws=True)


def test_a_path_whose_rate_varies_gets_a_trace(tmp_path: Path) -> None:
    change = anabranch.Change(at="4s", rate="6Mbit/s")
    seen = observe(tmp_path, {"changes": (change,)})
    link = seen.observations[0].link
    assert link is not None
    assert link.varying is not None
    assert link.limit.value == pytest.approx(60, abs=2)
    # 12 Mbit/s for 4 s and 6 Mbit/s for 6 s.
    assert link.rate_mbps.value == pytest.approx(8.4, rel=0.03)
    toml = scenario.to_toml(scenario.first_guess(seen), "twin")
    milliseconds = tomllib.loads(toml)["path"][0]["trace"]["milliseconds"].split()
    counts = [int(each.partition("*")[2] or 1) for each in milliseconds]
    times = [int(each.partition("*")[0]) for each in milliseconds]
    early, late = (
        sum(count for at, count in zip(times, counts, strict=True) if low <= at < low + 2000)
        for low in (1500, 7000)
    )
    assert early * 1504 * 8 / 2e6 == pytest.approx(12, rel=0.03)
    assert late * 1504 * 8 / 2e6 == pytest.approx(6, rel=0.03)


def test_packets_that_swap_places_with_the_next_are_reordered(tmp_path: Path) -> None:
    # A packet takes 1 ms. No acknowledgement skips more than two segments. With some seeds, one of
    # about twenty drops of the queue counts as a random loss.
    seen = observe(tmp_path, {"jitter": "0.9ms", "jitter_model": "reordering"})
    link = seen.observations[0].link
    assert link is not None
    assert link.reorders
    assert len(link.lost) <= 1 < link.drops


def test_a_path_none_of_whose_data_arrived_says_nothing(tmp_path: Path) -> None:
    # The subflow over LTE has opened by 150 ms, and all its data is lost.
    change = anabranch.Change(at="130ms", loss="100%", applies_to="forward")
    seen = observe(tmp_path, lte={"changes": (change,)})
    wifi, lte = seen.observations
    assert wifi.link is not None
    assert lte.link is None
    assert (lte.share, lte.rtt_ms) == (0, None)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["fifo", "reordering"])
def test_jitter_is_that_of_the_path(tmp_path: Path, model: str) -> None:
    seen = observe(tmp_path, {"jitter": "3ms", "jitter_model": model})
    path = fit.fit(seen, "server.pcapng", "twin", 1).twin.paths[0]
    assert path.jitter == pytest.approx(3, rel=0.15)
    assert path.delay == pytest.approx(15, rel=0.05 if model == "fifo" else 0.15)
    assert path.rate == pytest.approx(12, rel=0.03)
    assert path.link.reorders is (model == "reordering")


@pytest.mark.parametrize(
    "workload",
    [
        {"kind": "bulk"},
        {"kind": "bulk", "size": "300000B"},
        {"kind": "on_off", "burst_size": "100000B", "interval": "700000us"},
        {"kind": "cbr", "block_size": "8192B", "rate": "6000000bit/s"},
    ],
)
def test_the_pattern_of_writes_is_found(tmp_path: Path, workload: dict[str, Any]) -> None:
    seen = observe(tmp_path, workload=workload)
    found = seen.ends.workload.settings
    assert found.keys() == workload.keys()
    for key, value in workload.items():
        if key in ("block_size", "rate"):  # averages over the capture
            number = float(found[key].rstrip("Bbit/s"))
            assert number == pytest.approx(float(value.rstrip("Bbit/s")), rel=0.001)
        else:
            assert found[key] == value


def test_requests_of_the_receiver_are_found(tmp_path: Path) -> None:
    workload = {
        "kind": "request_response",
        "request_size": "400B",
        "response_size": "80000B",
        "think_time": "100ms",
    }
    found = observe(tmp_path, workload=workload).ends.workload.settings
    assert {key: found[key] for key in ("kind", "request_size", "response_size")} == {
        key: workload[key] for key in ("kind", "request_size", "response_size")
    }


def test_a_chosen_receive_buffer_is_told_from_a_default_one(tmp_path: Path) -> None:
    chosen = observe(tmp_path, receive_buffer="300kB", send_buffer="2MB")
    assert scenario.first_guess(chosen).receive_buffer == pytest.approx(300_000, rel=0.01)
    assert scenario.first_guess(observe(tmp_path)).receive_buffer is None
    # It begins like a default buffer, and stays although it limits.
    small = observe(tmp_path, receive_buffer="66kB", send_buffer="2MB")
    assert scenario.first_guess(small).receive_buffer == pytest.approx(66_000, rel=0.03)
    plain = observe(
        tmp_path, host="linux", scheduler="min_rtt", congestion_control="lia",
        receive_buffer="300kB",
    )  # fmt: skip
    assert not plain.ends.is_linux
    assert scenario.first_guess(plain).receive_buffer == 300_000


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    """The twin of a connection that its small send buffer limits."""
    seen = observe(tmp_path_factory.mktemp("limited"), send_buffer="100kB", receive_buffer="2MB")
    return fit.fit(seen, "server.pcapng", "twin", 2)


def test_a_send_buffer_that_limits_is_found(limited: Fitted) -> None:
    assert limited.twin.send_buffer == pytest.approx(100_000, rel=0.25)
    goodput = next(each for each in comparison.rows(limited) if each.path == "all")
    assert goodput.off_by == pytest.approx(0, abs=0.05)


def test_the_twin_predicts_what_helps(limited: Fitted) -> None:
    predicted = what_if.predict(loading.of_text(limited.toml, "twin.toml"), [1])
    best = predicted.best(linux=True)
    assert best is not None
    assert best.change.words.startswith("buffers")


@pytest.fixture(scope="module")
def at_sender(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("captures") / "server.pcapng"
    anabranch.run(short("6s"), pcap=file, pcap_at="server", snap=128)
    return file


def test_the_command_writes_a_scenario_and_a_report(
    at_sender: Path, tmp_path: Path, capsys: Captured
) -> None:
    out, report = tmp_path / "twin.toml", tmp_path / "report"
    arguments = ["twin", str(at_sender), "--seeds", "2", "--out", str(out), "--report", str(report)]
    assert run_command([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    settings = tomllib.loads(out.read_text(encoding="utf-8"))
    assert told["scenario"] == out.read_text(encoding="utf-8")
    assert told["paths"][0]["rate_mbps"] == pytest.approx(8, rel=0.03)
    assert told["paths"][1]["rate_mbps"] == pytest.approx(2, rel=0.03)
    assert [each["name"] for each in settings["path"]] == ["path-1", "path-2"]
    names = {"report.html", "twin.toml", "twin.json", "twin.svg", "twin.png", "twin.pdf"}
    assert {each.name for each in report.iterdir()} == names
    assert run_command(["twin", str(at_sender), "--seeds", "1"]) == 0
    assert "Compared with the capture" in capsys.readouterr().out
    assert run_command(["run", str(out), "--set", "duration=1s"]) == 0


@pytest.mark.slow
def test_a_capture_says_what_would_help(at_sender: Path, capsys: Captured) -> None:
    assert run_command(["explain", str(at_sender), "--what-if", "--seeds", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    changes = told["what_if"]["changes"]
    # Linux cannot do a change whose baseline, here coupled congestion control, it cannot do.
    assert changes
    assert not any(each["linux"] for each in changes)
    # The gains are parts of what the capture shows, not of what the twin does without a change.
    seen = observed.read([at_sender]).goodput_mbps
    assert told["what_if"]["goodput_mbps"] == pytest.approx(seen)


@pytest.mark.parametrize(
    ("settings", "at", "message"),
    [
        ({}, "client", "captured near the receiver"),
        ({"connection.main.protocol": "tcp", "connection.main.paths": ["wifi"]}, "server",
         "plain TCP; only Multipath TCP"),
        ({"connection.main.workload": {"kind": "bulk", "size": "3kB"}}, "server", "too few"),
    ],
)  # fmt: skip
def test_a_capture_without_a_twin_is_one_line(
    settings: dict[str, Any], at: Any, message: str, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "bad.pcapng"
    anabranch.run(short("3s"), pcap=file, pcap_at=at, settings=settings)
    assert run_command(["twin", str(file), "--out", str(tmp_path / "twin.toml")]) == 2
    told = capsys.readouterr().err
    assert told.startswith("anabranch: bad.pcapng: connection 0: ")
    assert message in told
    assert told.count("\n") == 1
    assert not (tmp_path / "twin.toml").exists()


@pytest.fixture(scope="module")
def with_remedies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of README's example, whose sender has M1 and M2."""
    file = tmp_path_factory.mktemp("remedies") / "run.pcapng"
    anabranch.run("examples/wifi_3g.toml", pcap=file, snap=128, settings={"duration": "20s"})
    return file


def test_reinjections_show_remedies(with_remedies: Path) -> None:
    seen = observed.read([with_remedies])
    assert 0.002 < seen.reinjected < 0.02
    fitted = fit.fit(seen, "run.pcapng", "twin")
    assert fitted.twin.remedies == {
        "opportunistic_retransmission": True,
        "penalisation": "conext13",
    }
    (connection,) = tomllib.loads(fitted.toml)["connection"]
    assert connection["remedies"] == fitted.twin.remedies
    assert comparison.failure(fitted) is None
    goodput = comparison.rows(fitted)[0]
    assert goodput.off_by == pytest.approx(0, abs=0.05)
    assert all(observation.share > 0 for run in fitted.runs for observation in run.observations)


def test_a_twin_takes_few_runs(with_remedies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    run_all = fit.run_all

    def counted(jobs: Any, *more: Any) -> list[Observed]:
        made.append(len(jobs))
        return run_all(jobs, *more)

    monkeypatch.setattr(fit, "run_all", counted)
    fit.fit(observed.read([with_remedies]), "run.pcapng", "twin")
    # The default, five remedies, up to four rounds for the jitter, and five to compare.
    assert sum(made) <= 15


def test_the_rate_of_a_run_is_sought_near_that_of_its_scenario(with_remedies: Path) -> None:
    alone = [observation.link for observation in observed.read([with_remedies]).observations]
    rates = [link.rate_mbps.value for link in alone if link is not None]
    near = [
        observation.link
        for observation in observed.read([with_remedies], rates_mbps=rates).observations
    ]
    for one, other in zip(alone, near, strict=True):
        assert one is not None
        assert other is not None
        assert other.rate_mbps.value == pytest.approx(one.rate_mbps.value, rel=0.01)
        assert other.spread_ms == pytest.approx(one.spread_ms, rel=0.02, abs=0.001)


def test_a_redundant_scheduler_shows(tmp_path: Path) -> None:
    seen = observe(
        tmp_path, host="rfc", scheduler="redundant", congestion_control="lia",
        send_buffer="200KiB", receive_buffer="200KiB",
    )  # fmt: skip
    assert seen.reinjected > 0.15
    assert fit.fit(seen, "server.pcapng", "twin").twin.scheduler == "redundant"


@pytest.mark.parametrize("host", [{}, _LINUX])
def test_the_twin_of_a_connection_that_fell_back_falls_back(
    host: dict[str, Any], tmp_path: Path
) -> None:
    box = Middlebox(kind="strip_options", options=("dss",), after_packets=200)
    path = anabranch.NetworkPath(
        name="a", rate="8Mbit/s", delay="20ms", limit="60packets", middleboxes=(box,)
    )
    connection = anabranch.Connection(name="main", workload=anabranch.Bulk(), **host)
    made = anabranch.Scenario(
        name="fallback", duration="6s", paths=(path,), connections=(connection,)
    )
    file, again = tmp_path / "server.pcapng", tmp_path / "twin.pcapng"
    anabranch.run(made, pcap=file, pcap_at="server", snap=128)
    twin = anabranch.twin(file, seeds=1)
    assert twin.fitted.twin.seen.notes == ()
    goodput = next(each for each in comparison.rows(twin.fitted) if each.path == "all")
    assert goodput.off_by == pytest.approx(0, abs=0.05)
    twin.save(tmp_path / "twin.toml")
    anabranch.run(tmp_path / "twin.toml", pcap=again, pcap_at="server", snap=128)
    reasons = [analyze(each).connections["fallback"].to_list() for each in (file, again)]
    assert reasons[0] == reasons[1] == ["infinite mapping"]


def test_a_connection_without_any_mapping_says_that_it_is_tcp(
    tmp_path: Path, capsys: Captured
) -> None:
    box = Middlebox(kind="strip_options", segments=("third_ack", "data", "ack"))
    path = anabranch.NetworkPath(
        name="a", rate="8Mbit/s", delay="20ms", limit="60packets", middleboxes=(box,)
    )
    connection = anabranch.Connection(name="main", workload=anabranch.Bulk())
    made = anabranch.Scenario(name="tcp", duration="3s", paths=(path,), connections=(connection,))
    file = tmp_path / "server.pcapng"
    anabranch.run(made, pcap=file, pcap_at="server", snap=128)
    for command in ("explain", "twin"):
        assert run_command([command, str(file)]) == 2
        told = capsys.readouterr().err
        assert "plain TCP from its first data, fallen back (data without DSS)" in told


@pytest.mark.slow
def test_a_scenario_that_is_no_twin_is_not_written(tmp_path: Path, capsys: Captured) -> None:
    # Outages are not recognised.
    down = (Change(at="4s", state="down"), Change(at="12s", state="up"))
    observe(tmp_path, {"changes": down}, duration="16s")
    out, report = tmp_path / "twin.toml", tmp_path / "report"
    command = ["twin", str(tmp_path / "server.pcapng"), "--out", str(out), "--report", str(report)]
    assert run_command(command) == 1
    told = capsys.readouterr()
    assert "anabranch: server.pcapng: no twin: the best scenario that was found misses " in told.err
    assert "(bound: 10 % and 10 points)" in told.err
    assert "scenario:" not in told.out
    assert not out.exists()
    assert not [*report.glob("*")]
    assert run_command([*command[:2], "--json"]) == 1
    assert "no twin" in json.loads(capsys.readouterr().out)["failure"]


def test_a_file_that_is_no_capture_is_one_line(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "text.pcap"
    file.write_text("not a capture", encoding="utf-8")
    for name in (file, tmp_path / "missing.pcap"):
        assert run_command(["twin", str(name)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
