"""The command `anabranch conform`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch import conformance
from anabranch.cli.main import run_command
from anabranch.errors import InputError

SCRIPTS = Path(__file__).parents[2] / "conformance"

RIGHT = """// A SYN to a port that nobody listens on. RFC 9293 §3.10.7.1.
+0 < S 0:0(0) win 65535 <mss 1460>
+0 > R. 0:0(0) ack 1
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "closed.pkt"
    path.write_text(RIGHT)
    return path


def test_a_script_that_holds_is_one_line(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["conform", str(script)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"ok      {script}", "1 script: 1 ok"]


def test_a_failure_shows_both_segments_and_exits_with_1(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(RIGHT.replace("ack 1", "ack 2"))
    assert run_command(["conform", str(script)]) == 1
    out = capsys.readouterr().out
    assert f"{script}:3: the stack sent another segment" in out
    assert "expected  +0         > R. 0:0(0) ack 2" in out
    assert "actual    0.000000   > R. 0:0(0) ack 1" in out
    assert out.splitlines()[-1] == "1 script: 1 failed"


def test_a_folder_is_searched_at_any_depth(script: Path) -> None:
    deep = script.parent / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "other.pkt").write_text(RIGHT)
    assert [path.name for path in conformance.find([script.parent])] == ["other.pkt", "closed.pkt"]


def test_wrong_input_is_one_line_and_exits_with_2(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text("+0 < S 0:0(0) <msss 1460>\n")
    assert run_command(["conform", str(script)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{script}:1:16: unknown option" in line
    assert run_command(["conform", str(script) + "x"]) == 2
    assert "no such file or folder" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"no \.pkt file"):
        conformance.find([Path(__file__).parent])


def test_verbose_prints_the_segments_as_a_script(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["conform", "--verbose", str(script)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == [
        "0.000000   < S 0:0(0) win 65535 <mss 1460>",
        "0.000000   > R. 0:0(0) ack 1 win 0",
    ]


def test_json_has_every_part(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text(RIGHT.replace("ack 1", "ack 2"))
    assert run_command(["conform", "--json", str(script)]) == 1
    (result,) = json.loads(capsys.readouterr().out)
    assert result["verdict"] == "failed"
    assert result["shows"] == "A SYN to a port that nobody listens on. RFC 9293 §3.10.7.1."
    assert result["failure"]["line"] == 3
    assert result["failure"]["differences"] == ["acknowledgement: expected 2, got 1"]


def test_the_platform_can_be_overridden(tmp_path: Path) -> None:
    # RFC 1122 lets the host delay an acknowledgement; Linux acknowledges the first data at once.
    path = tmp_path / "delayed.pkt"
    text = (SCRIPTS / "fallback" / "no_option_in_syn_ack.pkt").read_text()
    path.write_text(text + "+0 < P. 1:101(100) ack 101 win 512\n+0.2 > . 101:101(0) ack 101\n")
    assert conformance.run(path, platform="rfc").verdict == "ok"
    assert conformance.run(path, platform="linux").verdict == "failed"


def test_live_a_script_is_played_against_the_kernel(script: Path) -> None:
    command = [sys.executable, "-m", "anabranch", "conform", "--live", str(script)]
    if subprocess.run([*command[:3], "doctor"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no live runs here")
    skipped = script.with_name("skipped.pkt")
    skipped.write_text('--skip_live="a reason"\n' + RIGHT)
    differs = script.with_name("differs.pkt")
    differs.write_text('--differs_live="another"\n' + RIGHT.replace("ack 1", "ack 2"))
    done = subprocess.run(
        [*command, str(skipped), str(differs)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        f"ok      {script}",
        f"skipped {skipped}: a reason",
        f"differs {differs}: another",
        "3 scripts: 1 ok, 1 differs, 1 skipped",
    ]
