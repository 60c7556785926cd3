"""Live runs; where the host does not allow them, skipped with its reason."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import anabranch
from anabranch import live
from anabranch.cli import run_command
from conftest import scenario


def _inside(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anabranch", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="session")
def lab() -> None:
    """Skips what needs a live run where there can be none."""
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


@pytest.mark.parametrize("client", live.STACKS)
def test_a_live_run_leaves_the_results_of_a_virtual_one(
    lab: None, file: Path, tmp_path: Path, client: str
) -> None:
    out = tmp_path / "out"
    done = _inside("run", str(file), "--live", "--client", client, "--out", str(out))
    # 1: the machine was too busy; the results are there all the same.
    assert done.returncode in (0, 1), done.stderr
    runs = pl.read_parquet(out / "runs.parquet")
    assert runs["corrupt_octets"].to_list() == [0]
    assert runs["is_mptcp"].to_list() == [1]
    subflows = pl.read_parquet(out / "subflows.parquet")
    assert sorted(subflows["path_name"]) == ["3g", "wifi"]
    assert all(subflows["octets_received"] > 10_000)
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
    assert "has no such path_manager; use full_mesh or initial_only" in done.stderr
    assert "Traceback" not in done.stderr


def test_outside_of_the_namespaces_a_live_run_is_refused() -> None:
    with pytest.raises(anabranch.IntegrityError, match="network namespaces"):
        live.run_toml(scenario("2s").to_toml(), "short.toml", 1, ("engine", "engine"))
