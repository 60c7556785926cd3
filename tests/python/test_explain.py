import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import planted
import polars as pl
import pytest

import anabranch
import captures
from anabranch.analyze.analysis import analyze
from anabranch.cli import console, tables
from anabranch.cli.main import run_command
from anabranch.errors import InputError
from anabranch.explanations import capture, report, target, what_if
from anabranch.explanations.capture import CaptureExplanation
from anabranch.explanations.causes import BY_NAME
from anabranch.explanations.drawing import of_run, shares
from anabranch.explanations.explanation import Explanation
from anabranch.results import metrics
from anabranch.results.estimates import Estimate, number, percent
from anabranch.runs.columns import Words
from anabranch.runs.run import run_scenario
from anabranch.scenarios import loading
from conftest import scenario

pytestmark = pytest.mark.usefixtures("plain_pictures")

Captured = pytest.CaptureFixture[str]


def explained(**changes: object) -> Explanation:
    made = loading.of_text(scenario("10s", **changes).to_toml(), "short.toml")
    return Explanation(run_scenario(made, 1, ledger=True), 0)


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    return explained()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    name = tmp_path / "short.toml"
    name.write_text(scenario("4s").to_toml(), encoding="utf-8")
    return name


def test_the_causes_add_up_to_capacity_minus_goodput(explanation: Explanation) -> None:
    # 8 and 2 Mbit/s for the 9 s after the warm-up are 11.25 MB.
    account = explanation.account
    useful = int(account.filter(pl.col("cause") == "useful")["bytes"].sum())
    assert int(account["bytes"].sum()) == 11_250_000
    assert useful == int(explanation.run.connections["bytes_arrived_measured"][0])
    lost = sum(loss.mbps for loss in explanation.losses)
    missing = explanation.capacity_mbps - explanation.goodput_mbps
    assert lost == pytest.approx(missing, abs=1e-9)


def test_sentences_and_tables_agree(explanation: Explanation) -> None:
    """The main cause has the numbers of the rows that its sentence names."""
    main = explanation.main
    assert main is not None
    ((_, mbps, of),) = (
        row[1:] for row in report.causes(explanation).rows if row[:2] == (main.words, main.path)
    )
    missing = explanation.capacity_mbps - explanation.goodput_mbps
    sentence = explanation.finding()[1]
    assert f": {mbps} of the {number(missing)} Mbit/s missing." in sentence
    assert f"idled for {of} of the time" in sentence


def test_a_sentence_about_two_paths_is_the_sum_of_their_rows() -> None:
    found = explained(
        path_manager={"kind": "backup", "regular": "wifi"}, workload=anabranch.Cbr(rate="1Mbit/s")
    )
    main = found.main
    assert main is not None
    rows = [
        loss
        for loss in found.losses
        if loss.cause == main.cause and loss.path in main.path.split(" and ")
    ]
    assert main.mbps == pytest.approx(sum(loss.mbps for loss in rows))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        # The warm-up of 1 s does not count: the path is down for 3 of 9 s.
        ([], "wifi was down for 33.3 % of the time: 2.67 of the "),
        # 2 s at 8 and 7 s at 4 Mbit/s are 44 Mbit, and 3 s of the latter 12 Mbit.
        ([{"at": "3s", "rate": "4Mbit/s"}], "wifi lost 27.3 % of its capacity while down: 1.33 of"),
    ],
)
def test_an_outage_is_a_share_of_the_time_unless_the_rate_changes(
    changes: list[dict[str, str]], words: str
) -> None:
    outage = [{"at": "5s", "state": "down"}, {"at": "8s", "state": "up"}]
    # Ample buffers: nothing else costs more.
    settings = {
        "path.wifi.change": [*changes, *outage],
        **{f"connection.main.{side}_buffer": "4MiB" for side in ("send", "receive")},
    }
    made = loading.of_text(scenario("10s").to_toml(), "short.toml", settings=settings)
    explanation = Explanation(run_scenario(made, 1, ledger=True), 0)
    assert explanation.finding()[1].startswith(words)


@pytest.mark.parametrize("buffer", ["send_buffer", "receive_buffer"])
def test_run_report_explain_and_python_say_the_same_of_full_buffers(
    buffer: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "short.toml"
    other = {"send_buffer": "receive_buffer", "receive_buffer": "send_buffer"}[buffer]
    file.write_text(scenario("8s", **{buffer: "100KiB", other: "4MiB"}).to_toml(), encoding="utf-8")
    run = anabranch.run(file)
    (row,) = run.summary().to_dicts()
    shares = {name: percent(row[key]) for name, key in metrics.LIMITS.items()}
    full, free = (
        ("send-buffer-limited", "window-limited")
        if buffer == "send_buffer"
        else ("window-limited", "send-buffer-limited")
    )
    assert float(shares[full].removesuffix(" %")) > 50
    assert shares[free] == "0.0 %"

    # In 80 columns, each number has a line of its own.
    monkeypatch.setenv("COLUMNS", "80")
    assert run_command(["run", str(file), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    for name, share in shares.items():
        (line,) = (each for each in printed.splitlines() if each.startswith(name))
        assert line.split(maxsplit=1)[1] == share
    goodput = number(row["goodput_mbps"])
    assert f"goodput Mbit/s {goodput}" in " ".join(printed.split())

    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    cells = [each.split("<")[0] for each in page.split("<td>")]
    place = cells.index(goodput)
    assert cells[place + 1 : place + 3] == [*shares.values()]

    assert run_command(["explain", str(file)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith(f"main delivered {goodput} of the ")
    assert (
        f"waited for the send buffer for {shares['send-buffer-limited']} of the time, and for the "
        f"receive window for {shares['window-limited']}."
    ) in told
    cause = "the send buffer was full" if buffer == "send_buffer" else "the receive window was full"
    assert f"because {cause} behind 3g" in told


def test_the_clocks_of_the_engine_are_the_states_of_the_ledger() -> None:
    found = explained(send_buffer="100KiB", receive_buffer="100KiB")
    rows = found.activities.filter(pl.col("state") == "send_buffer")
    # The union of the intervals of both subflows, within the measured time.
    times = sorted(
        (max(start, found.begin_ns), min(end, found.end_ns))
        for start, end in rows["from_ns", "until_ns"].rows()
        if end > found.begin_ns
    )
    total = reach = 0
    for start, end in times:
        total += max(0, end - max(start, reach))
        reach = max(reach, end)
    limited = int(found.run.connections["send_buffer_limited_ns"][0])
    assert limited == pytest.approx(total, rel=1e-3)


def test_a_small_buffer_behind_3g_is_named_first(explanation: Explanation) -> None:
    # Both buffers have 200 KiB, and 3G's queue alone holds twice as much.
    main = explanation.main
    assert main is not None
    assert (main.cause.name, main.path, main.behind) == ("send_buffer", "wifi", "3g")
    first, second = explanation.finding()
    assert first.startswith("main delivered ")
    assert "wifi idled for" in second
    assert "because the send buffer was full behind 3g" in second


def of_toml(toml: str) -> Explanation:
    made = loading.of_text(toml, "given.toml")
    return Explanation(run_scenario(made, 1, ledger=True), 0)


_FINITE = """
name = "finite"
duration = "30s"
[[path]]
name = "a"
rate = "20Mbit/s"
delay = "20ms"
limit = "100packets"
[[connection]]
name = "c"
host = { kind = "linux", buffers = "socket" }
workload = { kind = "bulk", size = "5MB" }
"""


def test_a_finished_transfer_is_no_loss() -> None:
    found = of_toml(_FINITE)
    # 5 MB at less than 20 Mbit/s take more than 2 s, and the run goes on until 30 s.
    assert 2 < found.seconds < 4
    assert found.goodput_mbps == pytest.approx(40 / found.seconds)
    assert found.capacity_mbps == pytest.approx(20, rel=1e-6)
    assert not [loss for loss in found.losses if loss.cause.name == "closed"]
    assert max(found.states()["seconds"]) < found.seconds


def test_a_box_that_drops_syns_with_options_is_named_with_its_numbers() -> None:
    found = of_toml(
        _FINITE.replace(
            "[[connection]]", '[[path.middlebox]]\nkind = "blackhole_options"\n[[connection]]'
        )
    )
    _, cause, why = found.finding()
    assert cause.startswith("a idled for 58.7 % of the time because the handshake of its subflow")
    assert why == (
        "On a, 3 of 3 SYNs with MP_CAPABLE did not arrive, and those without did: something on the "
        "path drops the option."
    )


def test_lost_syns_are_no_box() -> None:
    # The path is down for a while: SYNs get lost, and the option arrives later.
    change = (
        '[[path.change]]\nat = "0s"\nstate = "down"\n[[path.change]]\nat = "3500ms"\nstate = "up"\n'
    )
    host = '{ kind = "linux", buffers = "socket" }'
    found = of_toml(
        _FINITE.replace("[[connection]]", f"{change}[[connection]]").replace(host, '"rfc"')
    )
    assert not [sentence for sentence in found.finding() if "drops the option" in sentence]


def test_a_transfer_within_the_warm_up_says_so() -> None:
    found = of_toml(_FINITE.replace("duration", 'warm_up = "10s"\nduration'))
    assert found.finding() == ["c ended before the measured time began: shorten warm_up."]
    assert report.causes(found).rows[-1][2] == "0.00"


def test_paths_that_share_a_slower_link_count_once() -> None:
    shared = anabranch.NetworkPath(name="core", rate="4Mbit/s", delay="5ms", limit="100ms")
    ends = tuple(
        anabranch.NetworkPath(name=name, rate="8Mbit/s", delay="5ms", limit="100ms", via="core")
        for name in ("a", "b")
    )
    connection = anabranch.Connection(name="main", paths=("a", "b"), workload=anabranch.Bulk())
    toml = anabranch.Scenario(
        name="shared", duration="5s", paths=(shared, *ends), connections=(connection,)
    ).to_toml()
    made = loading.of_text(toml, "shared.toml")
    found = Explanation(run_scenario(made, 1, ledger=True), 0)
    assert list(found.paths.values()) == ["core"]
    assert found.capacity_mbps == pytest.approx(4.0)


def test_a_run_without_a_ledger_has_the_same_packets(explanation: Explanation) -> None:
    run = run_scenario(explanation.run.scenario, 1)
    assert run.digest == explanation.run.digest
    assert "activities" not in run.tables


def test_the_shares_of_bins_are_the_covered_parts() -> None:
    # 0 to 5 and 15 to 20 of bins of 10: half of the first, half of the second, none of the third.
    intervals = pl.DataFrame({"from_ns": [0, 15], "until_ns": [5, 20]})
    assert shares(intervals, np.array([0.0, 10.0, 20.0, 30.0])).tolist() == [0.5, 0.5, 0.0]


def test_every_state_and_cause_of_the_core_has_words(explanation: Explanation) -> None:
    tables = explanation.run.tables
    states, causes = tables["activities"]["state"], tables["capacity"]["cause"]
    assert isinstance(states, Words)
    assert isinstance(causes, Words)
    assert states.words == causes.words[: len(states.words)]
    assert [*BY_NAME] == [*causes.words]


def test_the_table_ends_with_the_sum(explanation: Explanation) -> None:
    rows = report.causes(explanation).rows
    assert rows[-1][0] == "sum = capacity − goodput"
    assert rows[0][:2] == ("send buffer full behind 3g", "wifi")


def test_a_folder_is_explained_from_its_scenario_and_seed(
    file: Path, tmp_path: Path, capsys: Captured
) -> None:
    folder = tmp_path / "results"
    assert run_command(["run", str(file), "--seed", "3", "--out", str(folder)]) == 0
    chosen = target.of(folder, None)
    assert chosen.seed == 3
    assert chosen.digest == chosen.run().digest
    capsys.readouterr()
    assert run_command(["explain", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["digest"] == chosen.digest
    assert told["connections"][0]["main_cause"]["cause"] == "send_buffer"


def test_a_report_has_figures_and_tables(file: Path, tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "why"
    assert run_command(["explain", str(file), "--out", str(folder)]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if "  " in line]
    assert rows
    assert max(map(len, rows)) <= 80
    names = {each.name for each in folder.iterdir()}
    assert names == {
        "report.html", "states-0.svg", "states-0.png", "states-0.pdf", "explanation.json",
        "activities.parquet", "capacity.parquet", "block_parts.parquet",
    }  # fmt: skip
    intervals = pl.read_parquet(folder / "activities.parquet")
    lengths = intervals.group_by("path").agg(
        ((pl.col("until_ns") - pl.col("from_ns")).sum()).alias("ns")
    )
    assert lengths["ns"].to_list() == [4_000_000_000] * 2


def test_a_figure_has_a_timeline_for_each_path_with_the_time_before_its_subflow() -> None:
    wifi, lte = of_run(explained()).timelines
    assert (wifi.label, lte.label) == ("wifi", "3g")
    assert {"opening", "sending", "send_buffer"} <= {state.name for state in lte.intervals}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.toml"], "missing.toml: no such file or directory"),
        (["missing.pcapng"], "missing.pcapng: No such file"),
        (["a.pcapng", "FILE"], "name one scenario, one results folder, captures only"),
        (["."], "provenance.json is missing"),
        (["FILE", "--cell", "a"], "--cell names a cell of a results folder"),
        (["FILE", "--seeds", "2"], "--seeds needs --what-if"),
        (["FILE", "--set", "path.nowhere.rate=1Mbit/s"], "--set path.nowhere.rate"),
    ],
)
def test_bad_input_gets_one_line(
    file: Path, arguments: list[str], message: str, capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(file.parent)
    given = [str(file) if each == "FILE" else each for each in arguments]
    assert run_command(["explain", *given]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_folder_of_another_build_is_refused(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    run_command(["run", str(file), "--out", str(folder)])
    provenance = folder / "provenance.json"
    about = json.loads(provenance.read_text(encoding="utf-8"))
    about["runs"][0]["digest"] = "0" * 16
    provenance.write_text(json.dumps(about), encoding="utf-8")
    with pytest.raises(InputError, match="makes another run"):
        target.of(folder, None).run()


_ON_LINUX = {"scheduler": "linux", "congestion_control": "cubic_linux"}


def test_what_if_tells_apart_what_linux_can_do() -> None:
    made = loading.of_text(scenario("4s", **_ON_LINUX).to_toml(), "short.toml")
    found = what_if.predict(made, [1, 2])
    assert found.foreign == []
    linux = {each.change.words: each.linux for each in found.predictions}
    assert linux["without 3g"]
    assert linux["buffers × 2"]
    assert not linux["with penalisation"]
    assert not linux["ecf (scheduler)"]
    assert found.frame().height == len(found.predictions)


def test_linux_cannot_change_a_scenario_that_it_cannot_run() -> None:
    made = loading.of_text(scenario("4s").to_toml(), "short.toml")
    found = what_if.predict(made, [1, 2])
    assert found.foreign == ["lia", "min_rtt"]
    assert not any(each.linux for each in found.predictions)
    assert found.finding().endswith(
        "Linux does not have lia and min_rtt; anabranch advise says what Linux can do."
    )
    # `advise` takes scenarios only.
    captured = dataclasses.replace(found, captured_mbps=found.base_mbps)
    assert captured.finding().endswith("anabranch advise, given the twin, says what Linux can do.")
    # Penalisation is against this: it must help more than any random difference.
    words = {each.change.words: each for each in found.predictions}
    assert words["with penalisation"].goodput.value > 0.1 * found.base_mbps


def test_the_rows_have_the_order_that_they_say() -> None:
    made = loading.of_text(scenario("4s").to_toml(), "short.toml")
    found = what_if.predict(made, [1, 2])
    assert "in the order of the goodput shown, and equal ones in that of the p95" in found.about()

    def shown(cell: str) -> float:
        return float(cell.split(" [")[0].replace("−", "-").replace(",", ""))

    rows = [(-shown(row[1]), shown(row[2])) for row in found.table().rows]
    assert rows == sorted(rows)


@pytest.mark.parametrize("digits", [1, 12])
def test_the_numbers_that_order_the_rows_are_visible_in_80_columns(
    digits: int, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    gain = Estimate(3.5, 3.25, 3.75, 5)
    slower = Estimate(1.25 * 10**digits, -2.5 * 10**digits, 3.75 * 10**digits, 5)
    change = what_if.ScenarioChange("cubic_linux (congestion control)", {})
    delays = np.array([100.0])
    prediction = what_if.Prediction(change, False, gain, gain, slower)
    found = what_if.WhatIf(
        what_if.SeedOutcomes(np.array([10.0]), delays, delays), [1], [prediction]
    )
    console.show(tables.predictions(found))
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert found.table().headings[:3] == ("change", "goodput %", "p95 ms")
    for cell in found.table().rows[0][:3]:
        assert cell in printed


def test_one_run_of_each_change_is_enough_if_nothing_is_random() -> None:
    found = what_if.predict(loading.of_text(_FINITE, "finite.toml"), [3, 4, 5])
    assert found.seeds == [3]
    assert ": one pair of runs." in found.about()
    assert all("[" not in cell for row in found.table().rows for cell in row)


@pytest.mark.parametrize(
    ("twice", "four_times", "words"),
    [
        (3.0, 1.0, "Best change: buffers × 2 (+30 %; × 4: +10 %), which Linux can do."),
        (2.0, 4.0, "Best change: buffers × 4 (+40 %; × 2: +20 %), which Linux can do."),
        (3.0, -2.0, "Best change: buffers × 2 (+30 %; × 4: −20 %), which Linux can do."),
    ],
)
def test_the_best_buffers_are_named_beside_the_others(
    twice: float, four_times: float, words: str
) -> None:
    predictions = [
        what_if.Prediction(
            what_if.ScenarioChange(f"buffers × {factor}", {}, factor), True,
            Estimate(gain, gain, gain, 1), None, None,
        )
        for factor, gain in ((2, twice), (4, four_times))
    ]  # fmt: skip
    none = np.empty(0)
    found = what_if.WhatIf(what_if.SeedOutcomes(np.array([10.0]), none, none), [1], predictions)
    assert found.finding() == words


@pytest.mark.parametrize(
    ("gain", "low", "count", "words"),
    [
        (0.4, 0.3, 1, "No change that was tried raises the goodput by 5 %."),
        (3.4, -1.2, 1, "No change that was tried significantly raises the goodput."),
        (0.6, 0.3, 1, "Best change: a (+6 %), which Linux can do."),
        # Two changes must bring 1.05² = 1.10.
        (0.6, 0.3, 2, "No change that was tried raises the goodput by 5 %."),
    ],
)
def test_the_best_change_must_bring_as_much_as_in_advice(
    gain: float, low: float, count: int, words: str
) -> None:
    change = what_if.ScenarioChange("a", {}, count=count)
    prediction = what_if.Prediction(change, True, Estimate(gain, low, gain, 5), None, None)
    none = np.empty(0)
    found = what_if.WhatIf(what_if.SeedOutcomes(np.array([10.0]), none, none), [1], [prediction])
    assert found.finding() == words


def test_a_change_runs_with_the_same_seeds() -> None:
    made = loading.of_text(scenario("3s").to_toml(), "short.toml")
    found = what_if.predict(made, [5])
    alone = run_scenario(made, 5)
    assert found.base.goodput[0] == anabranch.Run.of(alone).summary()["goodput_mbps"][0]


@pytest.fixture(scope="module")
def at_sender(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("captures") / "server.pcapng"
    anabranch.run(scenario("10s"), pcap=file, pcap_at="server", snap=128)
    return file


def test_a_capture_at_the_sender_shows_the_full_window(at_sender: Path) -> None:
    (found,) = capture.explanations(analyze(at_sender))
    assert found.main is not None
    state, behind, subflows, lost = found.main
    # Subflow 1 is 3G's. The capture cannot tell the send buffer from the window, which are equal.
    assert (state, behind, subflows) == ("receive_window", [1], [0, 1])
    sentence = found.finding()[-1]
    assert sentence.startswith("Subflow 0 (10.1.0.0:")
    assert "carried less than they could because the receive window was full behind subflow 1" in (
        sentence
    )
    truth = explained().losses[0]
    assert lost == pytest.approx(truth.mbps, rel=0.25)
    for each in found.subflows:
        assert sum(each.seconds.values()) == pytest.approx(found.seconds)
    assert found.subflows[0].rate_mbps == pytest.approx(8 * 0.955, rel=0.1)


def lone(folder: Path, rate: str = "20Mbit/s", **connection: Any) -> CaptureExplanation:
    """The explanation of a capture of one subflow over a path of 80 ms and 100 packets."""
    path = anabranch.NetworkPath(name="a", rate=rate, delay="40ms", limit="100packets")
    settings: dict[str, Any] = {
        "receive_buffer": "2MB",
        "send_buffer": "2MB",
        "workload": anabranch.Bulk(),
    }
    made = anabranch.Scenario(
        name="lone",
        duration="6s",
        paths=(path,),
        connections=(anabranch.Connection(name="main", **(settings | connection)),),
    )
    file = folder / "lone.pcapng"
    anabranch.run(made, pcap=file, pcap_at="server", snap=128)
    (found,) = capture.explanations(analyze(file))
    return found


@pytest.mark.parametrize(
    ("buffer", "size", "state"),
    [
        ("receive_buffer", "60kB", "receive_window"),
        # Three segments: the acknowledgements do not show how fast the path is.
        ("receive_buffer", "4kB", "receive_window"),
        ("send_buffer", "60kB", "unknown"),
    ],
)
def test_a_lone_subflow_that_a_buffer_limits_is_not_limited_by_the_network(
    buffer: str, size: str, state: str, tmp_path: Path
) -> None:
    """It sends at each acknowledgement, up to the edge of the window or of the buffer."""
    found = lone(tmp_path, **{buffer: size})
    assert found.main is not None
    assert found.main[:2] == (state, [])
    assert "congestion windows" not in " ".join(found.finding())
    (states,) = found.subflows
    assert states.seconds[state, None] > 0.9 * found.seconds
    if size == "60kB":
        # 60 kB in 80 ms are 6 Mbit/s, of which some are headers.
        assert found.main[3] == pytest.approx(19.1 - 5.7, rel=0.1)


@pytest.mark.parametrize("control", ["cubic_linux", "new_reno", "lia", "cubic"])
def test_a_lone_subflow_that_its_congestion_window_limits_is_limited_by_the_network(
    control: str, tmp_path: Path
) -> None:
    found = lone(tmp_path, congestion_control=control)
    assert found.main is None
    assert found.subflows[0].seconds["network", None] > 0.75 * found.seconds


def test_a_short_segment_that_nagle_holds_back_shows_no_limit_of_the_network() -> None:
    # Every 44 ms, the application writes 8 KiB: five full segments, and a short one that leaves
    # when the others are acknowledged. Until the next write, only this one is in flight.
    assert planted.capture_answer("application", 2016, "server") == "unknown"


def test_a_window_as_large_as_the_path_needs_costs_nothing(tmp_path: Path) -> None:
    assert lone(tmp_path, receive_buffer="260kB").main is None


def test_a_capture_gives_a_report(at_sender: Path, tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "why"
    assert run_command(["explain", str(at_sender), "--out", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["connections"][0]["main_cause"] == "receive_window"
    tables = {"report.html", "explanation.json", "activities.parquet"}
    assert {each.name for each in folder.iterdir()} == {
        *(*tables, "states-0.svg", "states-0.png", "states-0.pdf"),
    }
    intervals = pl.read_parquet(folder / "activities.parquet").sort("subflow", "from_ns")
    for lane in intervals.partition_by("subflow"):
        assert lane["from_ns"].to_list()[1:] == lane["until_ns"].to_list()[:-1]
    blocked = intervals.filter(pl.col("state") == "receive_window")
    lasted = float((blocked["until_ns"] - blocked["from_ns"]).sum()) / 1e9
    states = told["connections"][0]["states"]
    told_s = sum(each["seconds"] for each in states if each["state"] == "receive_window")
    assert lasted == pytest.approx(told_s)
    assert run_command(["explain", str(at_sender)]) == 0
    assert "receive window full behind 1" in capsys.readouterr().out


def test_a_truncated_capture_is_explained_up_to_its_end(
    at_sender: Path, tmp_path: Path, capsys: Captured
) -> None:
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(at_sender.read_bytes()[:400_001])
    assert run_command(["explain", str(cut)]) == 0
    printed = capsys.readouterr().out
    assert "Connection 0 delivered" in printed
    assert "the packets before are explained" in printed


def test_packets_out_of_order_give_the_same_explanation(at_sender: Path) -> None:
    analysis = analyze(at_sender)
    shuffled = dataclasses.replace(
        analysis, segments=analysis.segments.reverse().sort("packet", descending=True)
    )
    (right,) = capture.explanations(analysis)
    (found,) = capture.explanations(shuffled)
    assert found.main is not None
    assert right.main is not None
    assert found.main[:3] == right.main[:3]


@pytest.mark.parametrize(
    ("settings", "at", "message"),
    [
        ({}, "client", "captured near the receiver"),
        ({"connection.main.protocol": "tcp", "connection.main.paths": ["wifi"]}, "server",
         "plain TCP; only Multipath TCP"),
        ({"connection.main.workload": {"kind": "bulk", "size": "3kB"}}, "server", "too few"),
    ],
)  # fmt: skip
def test_a_capture_that_hides_the_reasons_gets_one_line(
    settings: dict[str, Any], at: Any, message: str, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "hidden.pcapng"
    bare = scenario("3s", receive_buffer=None, send_buffer=None)
    anabranch.run(bare, settings=settings, pcap=file, pcap_at=at, snap=128)
    assert run_command(["explain", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("anabranch: hidden.pcapng: connection 0: ")
    assert message in error
    assert error.count("\n") == 1


def test_a_receiver_that_answers_late_is_still_the_receiver(
    tmp_path: Path, capsys: Captured
) -> None:
    """Data comes sooner after some acknowledgements than these after the data that they cover."""
    file = tmp_path / "client.pcapng"
    anabranch.run(scenario("5s"), pcap=file, pcap_at="client", snap=128)
    packets = captures.read_pcapng(file.read_bytes())
    client = packets[0].source[:2]
    late = [
        dataclasses.replace(each, time_ns=each.time_ns + 1_000_000 * (each.source[:2] == client))
        for each in packets
    ]
    file = tmp_path / "late.pcap"
    file.write_bytes(captures.pcap(sorted(late, key=lambda each: each.time_ns)))
    assert run_command(["explain", str(file)]) == 2
    assert "captured near the receiver" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("direction", "message"), [("in", "no acknowled"), ("out", "too few")])
def test_a_capture_of_one_direction_is_refused(
    direction: str, message: str, at_sender: Path
) -> None:
    analysis = analyze(at_sender)
    half = analysis.segments.filter(pl.col("direction") == direction)
    with pytest.raises(InputError, match=message):
        list(capture.explanations(dataclasses.replace(analysis, segments=half)))


def test_a_file_that_is_no_capture_gets_one_line(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "text.pcap"
    file.write_text("hello", encoding="utf-8")
    assert run_command(["explain", str(file)]) == 2
    assert "not a capture" in capsys.readouterr().err


def test_a_capture_at_both_hosts_shows_a_join_without_an_answer() -> None:
    assert planted.capture_answer("opening", 1, "both") == "opening"
    assert planted.capture_answer("opening", 1, "server") == "network"


@pytest.mark.parametrize("cause", planted.SHOWN)
def test_a_capture_shows_a_planted_cause(cause: str) -> None:
    assert planted.capture_answer(cause, 1, "server") in planted.SHOWN[cause]


@pytest.mark.slow
@pytest.mark.parametrize("cause", [*planted.SHOWN, *planted.HIDDEN])
def test_captures_show_planted_causes_or_say_unknown(cause: str) -> None:
    # What a capture cannot show takes fewer seeds, to save time.
    seeds = range(2001, 2001 + (planted.SEEDS if cause in planted.SHOWN else planted.SEEDS // 5))
    right = planted.SHOWN.get(cause) or planted.HIDDEN[cause]
    hits = sum(planted.capture_answer(cause, seed, "server") in right for seed in seeds)
    assert hits >= 0.9 * len(seeds)


@pytest.mark.parametrize("cause", planted.CAUSES)
def test_a_planted_cause_is_named_first(cause: str) -> None:
    # Seed 1 is one of those that were used while the explanation was built.
    assert planted.answer(cause, 1) == cause


@pytest.mark.slow
@pytest.mark.parametrize("cause", planted.CAUSES)
def test_planted_causes_are_named_first_in_95_percent(cause: str) -> None:
    seeds = range(planted.FIRST_JUDGED, planted.FIRST_JUDGED + planted.SEEDS)
    right = sum(planted.answer(cause, seed) == cause for seed in seeds)
    assert right >= 0.95 * planted.SEEDS
