"""`anabranch proxy` without privileges. The Rust tests run both ends in namespaces."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a proxy needs Linux")

UNITS = Path(__file__).parents[2] / "crates/anabranch-proxy/systemd"
MEASURE = ["measure", "--relay", "192.0.2.1:5124", "--secret-file", "none"]


def proxy(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anabranch", "proxy", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_both_ends_have_their_own_help() -> None:
    client, relay = proxy("client", "--help"), proxy("relay", "--help")
    assert (client.returncode, relay.returncode) == (0, 0)
    assert "--relay <HOST:PORT>" in client.stdout
    assert "--allow <PREFIX>" in relay.stdout
    assert "anabranch advise uplinks.toml" in proxy("measure", "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["relay", "--listen", "5124"], "secret_file: a relay never runs without a secret"),
        (["client"], "uplink: name at least one interface"),
        (["client", "--uplink", "eth0", "--scheduler", "blast"], 'did you mean "blest"?'),
        ([*MEASURE, "--uplink", "eth0", "--budget", "1kB"], "budget: 1kB is too little"),
        ([*MEASURE, "--uplink", "eth0", "--out", "/no/file"], "out: /no/file: "),
    ],
)
def test_a_mistake_is_one_line_and_status_2(arguments: list[str], message: str) -> None:
    done = proxy(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
@pytest.mark.parametrize("name", ["client", "relay"])
def test_systemd_understands_the_units(name: str, tmp_path: Path) -> None:
    unit = tmp_path / f"anabranch-proxy-{name}.service"
    text = (UNITS / unit.name).read_text()
    assert "ExecStart=/usr/local/bin/anabranch-proxy" in text
    # The program is not installed here.
    unit.write_text(text.replace("/usr/local/bin/anabranch-proxy", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
