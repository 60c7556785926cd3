"""Live runs. On hosts that do not support them, the tests are skipped with the reason."""

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import anabranch
from anabranch import _core
from anabranch.cli import tables
from anabranch.cli.main import run_command
from anabranch.errors import InputError, TooLateError
from anabranch.gallery import catalogue, reproduce
from anabranch.gallery.entry import Cell, Entry, Tier
from anabranch.live import run as live
from anabranch.live.hosts import Hosts
from anabranch.runs.run import Capture, Run, run_scenario
from anabranch.scenarios import loading
from conftest import scenario


def _inside(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anabranch", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="session")
def lab() -> None:
    """Skip tests that need live runs on hosts that do not support them."""
    done = _inside("doctor")
    if done.returncode != 0:
        pytest.skip((done.stdout + done.stderr).strip())


_HANDSHAKE = (("client", "SynTx"), ("server", "SynRx"), ("client", "SynAckRx"), ("server", "AckRx"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "short.toml"
    path.write_text(scenario("2s", congestion_control="cubic", scheduler="min_rtt").to_toml())
    return path


def test_the_doctor_says_of_every_capability_whether_it_works(lab: None) -> None:
    words = _inside("doctor").stdout
    assert "live runs are possible here" in words
    assert "Multipath TCP" in words
    assert "veth and AF_PACKET" in words


@pytest.mark.parametrize("client", [pytest.param("engine", marks=pytest.mark.slow), "kernel"])
def test_a_live_run_leaves_the_results_of_a_virtual_one(
    lab: None, file: Path, tmp_path: Path, client: str
) -> None:
    out = tmp_path / "out"
    done = _inside("run", str(file), "--live", "--client", client, "--out", str(out))
    # 1 means that the machine was too busy. The results exist anyway.
    assert done.returncode in (0, 1), done.stderr
    runs = pl.read_parquet(out / "runs.parquet")
    assert runs["corrupt_bytes"].to_list() == [0]
    assert runs["is_mptcp"].to_list() == [1]
    subflows = pl.read_parquet(out / "subflows.parquet")
    assert sorted(subflows["path_name"]) == ["3g", "wifi"]
    assert all(subflows["bytes_received"] > 10_000)
    assert (out / "report.html").exists()
    conditions = json.loads((out / "provenance.json").read_text())["live"]
    assert (conditions["client"], conditions["server"]) == (client, "kernel")
    counters = pl.read_parquet(out / "counters.parquet")
    rows = counters.select("host", "counter", "count").iter_rows()
    counts = {(host, name): count for host, name, count in rows}
    joins = [counts[host, f"MPTcpExtMPJoin{name}"] for host, name in _HANDSHAKE]
    assert joins == [1, 1, 1, 1], "whoever counts"
    virtual = tmp_path / "virtual"
    assert run_command(["run", str(file), "--out", str(virtual)]) == 0
    assert pl.read_parquet(virtual / "runs.parquet").columns == runs.columns


def test_what_the_kernel_does_not_have_is_refused_by_name(lab: None, tmp_path: Path) -> None:
    path = tmp_path / "drepas.toml"
    path.write_text(scenario("2s", path_manager="drepas").to_toml())
    done = _inside("run", str(path), "--live")
    assert done.returncode == 2
    assert (
        'kernel hosts have no path_manager "drepas"; use full_mesh, initial_only or backup'
        in done.stderr
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["doctor"], ["reproduce", "linux-today"]])
def test_elsewhere_than_on_linux_live_runs_are_refused(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert run_command(arguments) == 2
    assert capsys.readouterr().err == "anabranch: live runs need Linux; this is darwin\n"


def test_outside_of_the_namespaces_a_live_run_is_refused() -> None:
    with pytest.raises(anabranch.IntegrityError, match="network namespaces"):
        live.run_once(loading.of(scenario("2s")), 1, Hosts("engine", "engine"))


# ---- many live runs: the runs themselves are virtual ones here --------------------------------


def _conditions(late_ms: float, hosts: Hosts) -> live.Conditions:
    return live.Conditions(
        *hosts,
        kernel="6.18",
        valid=late_ms < 5,
        lateness_ms=(0.0, 0.1, late_ms, late_ms),
        late_share=0.001,
        foreign=0,
        notices=(),
    )


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Set the lateness of the emulator in each attempt; the last value stays."""
    late_ms = [0.5]

    def run_once(
        scenario: _core.Scenario, seed: int, hosts: Hosts, capture: Capture | None = None
    ) -> tuple[Run, live.Conditions]:
        late = late_ms.pop(0) if len(late_ms) > 1 else late_ms[0]
        return run_scenario(scenario, seed), _conditions(late, hosts)

    monkeypatch.setattr(live, "run_once", run_once)
    return late_ms


@pytest.mark.parametrize(
    ("hosts", "is_known"), [(Hosts("engine", "kernel"), False), (Hosts("kernel", "engine"), True)]
)
def test_the_window_of_a_kernel_that_sends_is_unknown(
    hosts: Hosts, is_known: bool, short_run: anabranch.Run
) -> None:
    connections = tables.run(short_run, _conditions(0.5, hosts))[0]
    column = list(connections.headings).index("window-limited")
    assert (connections.rows[0][column] != "–") == is_known


def _entry() -> Entry:
    def cells(tier: Tier) -> list[Cell]:
        return [
            Cell("virtual", scenario("2s"), {"hosts": "virtual"}),
            Cell("linux", scenario("2s"), {"hosts": "linux"}, hosts=Hosts()),
        ]

    return dataclasses.replace(catalogue.entry("nsdi12-fig7"), design=cells, claims=(), drawings={})


def test_live_runs_stand_beside_virtual_ones_with_their_lateness(
    made: list[float], tmp_path: Path
) -> None:
    tier = Tier("quick", seeds=2, measured_s=1, warm_up_s=1)
    entry = _entry()
    assert entry.is_live
    results = reproduce.execute(entry, tier, tmp_path)
    late = results.runs.select("hosts", "late_p999_ms").rows()
    assert late == [("virtual", None), ("virtual", None), ("linux", 0.5), ("linux", 0.5)]
    made[:] = [math.nan]  # all runs are in the journal, so none is repeated
    again = reproduce.execute(entry, tier, tmp_path)
    assert again.runs.equals(results.runs)
    assert again.provenance["runs_found"] == 4


def test_a_run_whose_emulator_was_late_is_made_again_and_then_given_up(made: list[float]) -> None:
    short, hosts = loading.of_text(scenario("2s").to_toml(), "short.toml"), Hosts()
    made[:] = [7.0, 6.0, 0.5]
    assert live.run_in_time(short, 1, hosts)[1].valid
    made[:] = [9.0]
    with pytest.raises(TooLateError, match=r"late too often in 3 attempts.*9\.00"):
        live.run_in_time(short, 1, hosts)


def test_only_some_entries_have_a_form_in_real_time() -> None:
    assert catalogue.live("nsdi12-fig7").id == "nsdi12-fig7-live"
    assert catalogue.live("linux-today").id == "linux-today"
    assert not catalogue.entry("nsdi12-fig7").is_live
    with pytest.raises(InputError, match="nsdi12-fig4 runs in virtual time only"):
        catalogue.live("nsdi12-fig4")


def test_linux_is_not_asked_for_what_it_does_not_have() -> None:
    for name in ("nsdi12-fig7-live", "linux-today", catalogue.CALIBRATION):
        for cell in catalogue.entry(name).cells(catalogue.entry(name).quick):
            if cell.hosts == Hosts():
                (connection,) = cell.task(1).settings["connection"]
                assert not connection.get("remedies")
                assert connection["congestion_control"] in ("cubic", "cubic_linux", "new_reno")


@pytest.mark.parametrize("client", ["engine", pytest.param("kernel", marks=pytest.mark.slow)])
def test_both_hosts_of_a_live_connection_can_send(lab: None, tmp_path: Path, client: str) -> None:
    workload = anabranch.Blocks(block_size="100kB", count=5)
    file, out = tmp_path / "both.toml", tmp_path / "out"
    file.write_text(scenario("4s", direction="both", workload=workload).to_toml())
    done = _inside("run", str(file), "--live", "--client", client, "--out", str(out))
    assert done.returncode in (0, 1), done.stderr
    runs = pl.read_parquet(out / "runs.parquet")
    assert runs["connection"].to_list() == ["main download", "main upload"]
    assert runs["bytes_delivered"].to_list() == [500_000, 500_000]
    assert runs["completed"].to_list() == [1, 1]
    assert runs["corrupt_bytes"].sum() == 0
