"""One transfer has one goodput: `run`, `analyze`, `explain` and `twin` say the same."""

from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch.analyze.analysis import analyze
from anabranch.explanations import capture
from anabranch.explanations.explanation import Explanation
from anabranch.runs.run import run_scenario
from anabranch.scenarios import loading
from anabranch.twins import observed

pytestmark = pytest.mark.usefixtures("plain_pictures")

_LINUX = """host = { kind = "linux", buffers = "socket" }
scheduler = "linux"
congestion_control = "cubic"
"""
_ONE = '[[path]]\nname = "a"\nrate = "20Mbit/s"\ndelay = "15ms"\nlimit = "100packets"\n'
_TWO = f'{_ONE}[[path]]\nname = "b"\nrate = "5Mbit/s"\ndelay = "40ms"\nlimit = "100packets"\n'
_REPLACED = '[[path.middlebox]]\nkind = "rewrite_payload"\nchange = "replace"\nat = "300kB"\n'
_STRIPPED = '[[path.middlebox]]\nkind = "strip_options"\noptions = ["dss"]\nafter_packets = 200\n'
_BULK, _SIZED = 'workload = { kind = "bulk" }\n', 'workload = { kind = "bulk", size = "4MB" }\n'


def _scenario(paths: str, connection: str) -> str:
    return f'name = "one"\nduration = "8s"\n{paths}[[connection]]\nname = "c"\n{connection}'


SCENARIOS = {
    "a finished transfer": _scenario(_TWO, _SIZED),
    "a finished upload": _scenario(_TWO, f'direction = "upload"\n{_SIZED}'),
    "endless data": _scenario(_TWO, _BULK),
    "a small buffer": _scenario(_TWO, f'send_buffer = "100KiB"\nreceive_buffer = "4MiB"\n{_BULK}'),
    "Linux": _scenario(_TWO, f"{_LINUX}{_BULK}"),
    "blocks": _scenario(_TWO, 'workload = { kind = "cbr", rate = "3Mbit/s" }\n'),
    "a fallback after a checksum": _scenario(
        _ONE + _REPLACED, f"{_LINUX}dss_checksum = true\n{_BULK}"
    ),
    "a finished fallback": _scenario(_ONE + _REPLACED, f"{_LINUX}dss_checksum = true\n{_SIZED}"),
    "a fallback without options": _scenario(_ONE + _STRIPPED, f"{_LINUX}{_BULK}"),
    "a finished fallback without options": _scenario(_ONE + _STRIPPED, f"{_LINUX}{_SIZED}"),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("at", ["client", "server"])
def test_run_analyze_explain_and_twin_say_the_same(name: str, at: Any, tmp_path: Path) -> None:
    scenario, file = tmp_path / "one.toml", tmp_path / "one.pcapng"
    scenario.write_text(SCENARIOS[name], encoding="utf-8")
    run = anabranch.run(scenario, pcap=file, pcap_at=at, snap=128)
    (goodput,) = run.summary()["goodput_mbps"].to_list()
    made = loading.of_text(SCENARIOS[name], "one.toml")
    explained = Explanation(run_scenario(made, 1, ledger=True), 0)
    assert explained.goodput_mbps == goodput
    analysis = analyze(file)
    upload = "upload" in name
    (captured,) = analysis.connections[f"goodput_{'out' if upload else 'in'}_mbps"].to_list()
    # The last of 8 s of data is acknowledged after the run has ended, and an acknowledgement that
    # a timer delays is late.
    assert captured == pytest.approx(goodput, rel=0.01)
    if (at == "client") == upload:
        (found,) = capture.explanations(analysis)
        assert found.goodput_mbps == captured
        assert observed.observe(analysis).goodput_mbps == captured


def test_plain_tcp_has_its_goodput_too(tmp_path: Path) -> None:
    scenario, file = tmp_path / "one.toml", tmp_path / "one.pcapng"
    scenario.write_text(_scenario(_ONE, f'protocol = "tcp"\n{_SIZED}'), encoding="utf-8")
    run = anabranch.run(scenario, pcap=file, snap=128)
    (goodput,) = run.summary()["goodput_mbps"].to_list()
    found = analyze(file).connections
    assert found["acked_in"].to_list() == [4_000_000]
    assert found["goodput_in_mbps"][0] == pytest.approx(goodput, rel=0.01)
