"""Programs inside the emulated network. On hosts that lack something, the tests are skipped."""

import fcntl
import hashlib
import http.server
import os
import pty
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from anabranch.analyze import analyze
from anabranch.cli.main import run_command
from anabranch.cli.panel import PathPanel
from anabranch.live.shell import ShellPath as State
from anabranch.live.shell import started
from anabranch.results.folder import load
from anabranch.scenarios import loading
from conftest import scenario

_ANABRANCH = [sys.executable, "-m", "anabranch"]
_IPPROTO_MPTCP = 262
"""`socket.IPPROTO_MPTCP`, which Python has on some systems only."""
_BODY = bytes(range(256)) * 4096

_FETCH = """
import hashlib, sys, urllib.request
with urllib.request.urlopen(sys.argv[1]) as answer:
    print(hashlib.sha256(answer.read()).hexdigest())
"""


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(_BODY)))
        self.end_headers()
        self.wfile.write(_BODY)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    done = subprocess.run([*_ANABRANCH, "doctor"], capture_output=True, text=True, check=False)
    if "shell is possible" not in done.stdout:
        pytest.skip((done.stdout + done.stderr).strip())


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A service on the loopback interface of this host."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "phone.toml"
    path.write_text(scenario("2s").to_toml())
    return path


def _shell(file: Path, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    command = [*_ANABRANCH, "shell", str(file), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def test_a_program_reads_from_a_service_of_this_host_and_leaves_results(
    file: Path, tmp_path: Path, url: str
) -> None:
    out, pcap = tmp_path / "out", tmp_path / "run.pcapng"
    options = ("--out", str(out), "--pcap", str(pcap))
    done = _shell(file, *options, "--", sys.executable, "-c", _FETCH, url)
    assert (done.returncode, done.stdout.strip()) == (0, hashlib.sha256(_BODY).hexdigest())
    assert "1 connection, 0 failed" in done.stderr
    results = load(out)
    # A row for each direction. The download has the body, and the upload the request only.
    down, up = results.runs.sort("connection").iter_rows(named=True)
    assert down["connection"].startswith("1 127.0.0.1:")
    assert len(_BODY) < down["bytes_delivered"] < len(_BODY) + 1000
    assert 0 < up["bytes_delivered"] < 1000
    assert results.provenance["live"]["client"] == "engine"
    assert (out / "report.html").is_file()
    analysed = subprocess.run(
        [*_ANABRANCH, "analyze", str(pcap)], capture_output=True, text=True, check=True
    )
    assert "no violations" in analysed.stdout


_RESET = """
import socket, struct, sys, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
with socket.socket(socket.AF_INET, socket.SOCK_STREAM, int(sys.argv[2])) as near:
    near.connect((url.hostname, url.port))
    near.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
    near.recv(1000)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
"""


def _mptcpize(folder: Path) -> Path:
    """A folder with a command that starts a program as mptcpize does, but leaves its TCP alone."""
    (folder / "bin").mkdir()
    command = folder / "bin" / "mptcpize"
    command.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    command.chmod(0o755)
    return command.parent


@pytest.mark.parametrize(
    ("client", "protocol"),
    [("engine", socket.IPPROTO_TCP), ("kernel", socket.IPPROTO_TCP), ("kernel", _IPPROTO_MPTCP)],
)
def test_a_connection_that_the_program_resets_has_not_failed(
    file: Path,
    tmp_path: Path,
    url: str,
    client: str,
    protocol: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if client == "kernel" and not Path("/proc/sys/net/mptcp").exists():
        pytest.skip("this kernel has no Multipath TCP")
    # iperf3 ends its data connections in this way.
    out = tmp_path / "out"
    monkeypatch.setenv("PATH", f"{_mptcpize(tmp_path)}:{os.environ['PATH']}")
    options = ("--client", client, "--out", str(out))
    done = _shell(file, *options, "--", sys.executable, "-c", _RESET, url, str(protocol))
    assert done.returncode == 0
    assert "1 connection, 0 failed" in done.stderr
    ends = load(out).runs.select("completed", "aborted", "failed").rows()
    assert ends == [(False, True, False)] * 2


POLICY = """
from anabranch.policy import Scheduler, Send, Wait

class Only3g(Scheduler):
    def schedule(self, ctx):
        ready = [each for each in ctx.eligible() if each.can_send() and each.path == "3g"]
        return Send(ready[0]) if ready else Wait()

class Breaks(Scheduler):
    def schedule(self, ctx):
        raise ValueError("the flux ran out")
"""


def test_the_users_own_scheduler_carries_the_programs_connections(
    file: Path, tmp_path: Path, url: str
) -> None:
    (tmp_path / "policy_of_a_shell.py").write_text(POLICY)
    out = tmp_path / "out"
    mine = ("--scheduler", f"{tmp_path}/policy_of_a_shell.py:Only3g", "--out", str(out))
    done = _shell(file, *mine, "--", sys.executable, "-c", _FETCH, url)
    assert (done.returncode, done.stdout.strip()) == (0, hashlib.sha256(_BODY).hexdigest())
    results = load(out)
    carried = results.links.filter(results.links["direction"] == 0)
    wifi, three_g = carried.sort("path")["bytes_delivered"]
    assert three_g > len(_BODY) > 20 * wifi
    assert results.provenance["custom_policies"][0]["name"] == "policy_of_a_shell.Only3g"


def test_an_exception_of_the_users_own_scheduler_ends_the_shell(
    file: Path, tmp_path: Path, url: str
) -> None:
    (tmp_path / "policy_of_a_shell.py").write_text(POLICY)
    mine = ("--scheduler", f"{tmp_path}/policy_of_a_shell.py:Breaks")
    done = _shell(file, *mine, "--", sys.executable, "-c", _FETCH, url)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert 'raise ValueError("the flux ran out")' in done.stderr
    assert lines[-1].startswith(f"anabranch: scheduler {tmp_path}/policy_of_a_shell.py:Breaks of")


def test_the_kernel_can_be_the_client(file: Path, tmp_path: Path, url: str) -> None:
    if shutil.which("mptcpize") is None:
        pytest.skip("mptcpize is not installed")
    options = ("--client", "kernel", "--out", str(tmp_path / "out"))
    done = _shell(file, *options, "--", sys.executable, "-c", _FETCH, url)
    assert (done.returncode, done.stdout.strip()) == (0, hashlib.sha256(_BODY).hexdigest())
    results = load(tmp_path / "out")
    assert results.runs["is_mptcp"].to_list()[0]
    # Linux joins over the second path, and the body takes both.
    delivered = results.links.filter(results.links["direction"] == 0)["bytes_delivered"]
    assert all(count > 20_000 for count in delivered)


def test_the_kernel_as_the_client_needs_mptcpize(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert run_command(["shell", str(file), "--client", "kernel", "--", "true"]) == 2
    assert "apt install mptcpize" in capfd.readouterr().err


def test_a_scenario_takes_a_path_down(file: Path, url: str) -> None:
    settings = ("--set", 'path.wifi.change=[{ at = "0s", state = "down" }]')
    fetch = (sys.executable, "-c", _FETCH.replace("argv[1]", "argv[1], timeout=3"), url)
    done = _shell(file, *settings, "--", *fetch)
    assert done.returncode == 1
    assert "timed out" in done.stderr


def test_the_exit_status_is_that_of_the_program(file: Path) -> None:
    assert _shell(file, "--quiet", "--", "sh", "-c", "exit 5").returncode == 5
    killed = _shell(file, "--quiet", "--", "sh", "-c", "kill -9 $$")
    assert (killed.returncode, killed.stderr) == (137, "")
    missing = _shell(file, "--quiet", "--", "no-such-program")
    assert missing.returncode == 127
    assert missing.stderr == "anabranch: no-such-program: no such file or directory\n"
    folder = _shell(file, "--quiet", "--", "/tmp")
    assert folder.returncode == 126
    assert folder.stderr == "anabranch: /tmp: this is a folder; name a program\n"
    data = _shell(file, "--quiet", "--", str(file))
    assert (data.returncode, data.stderr) == (126, f"anabranch: {file}: permission denied\n")


def test_a_scenario_for_a_shell_needs_no_duration(file: Path) -> None:
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith("duration")))
    assert _shell(file, "--quiet", "--set", "path.wifi.rate=1Mbit/s", "--", "true").returncode == 0


def test_ctrl_c_ends_the_program_and_the_shell(file: Path) -> None:
    command = [*_ANABRANCH, "shell", str(file), "--", "sh", "-c", "echo ready; exec sleep 100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(10) == 130


_UNTIL_SIGTERM = """
import signal, subprocess, sys, time, urllib.request
subprocess.Popen(["sleep", "1077"], start_new_session=True)
urllib.request.urlopen(sys.argv[1]).read()
def end(*_):
    print("asked", flush=True)
    sys.exit(5)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(100)
"""


def _left() -> list[str]:
    listed = subprocess.run(
        ["ps", "-eo", "stat=,args="], capture_output=True, text=True, check=True
    )
    sleeping = [row for row in listed.stdout.splitlines() if row.endswith("sleep 1077")]
    return [row for row in sleeping if not row.startswith("Z")]


@pytest.fixture
def hangs_up() -> Iterator[None]:
    """A process that `nohup` starts ignores SIGHUP, and so do its children."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangs_up")
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)]
)
def test_a_signal_ends_the_program_and_keeps_results_and_capture(
    file: Path, tmp_path: Path, url: str, number: signal.Signals
) -> None:
    out, pcap = tmp_path / "out", tmp_path / "run.pcapng"
    options = ("--out", str(out), "--pcap", str(pcap))
    program = ("--", sys.executable, "-c", _UNTIL_SIGTERM, url)
    command = [*_ANABRANCH, "shell", str(file), *options, *program]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert _left()
        process.send_signal(number)
        assert process.stdout.readline() == b"asked\n"
        assert process.wait(20) == 128 + number
    assert max(load(out).runs["bytes_delivered"].to_list()) > len(_BODY)
    assert pcap.stat().st_size > len(_BODY)
    assert not _left(), "processes in the background end with the shell"


@pytest.mark.parametrize("start", ["sleep", "unshare --user --net sleep"])
def test_processes_that_a_program_leaves_behind_end_with_it(file: Path, start: str) -> None:
    script = f"trap '' TERM; {start} 1077 & sleep 0.2; exit 3"
    done = _shell(file, "--quiet", "--", "setsid", "sh", "-c", script)
    assert done.returncode == 3
    assert not _left()


def test_a_shell_ends_with_its_program(file: Path, tmp_path: Path) -> None:
    # The program is not reaped yet, but it is none of the processes that get a second to end.
    made, told = loading.of_file(file), tmp_path / "told"
    tell = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(str(time.time()))"
    with started(made, 1, [sys.executable, "-c", tell, str(told)]) as shell:
        while not shell.is_over:
            time.sleep(0.005)
        over = time.time()
        assert shell.finish().status == 0
    assert over - float(told.read_text()) < 0.6


def test_the_capture_of_a_shell_has_the_ends_of_all_subflows(
    file: Path, tmp_path: Path, url: str
) -> None:
    capture = tmp_path / "shell.pcapng"
    program = ("--", sys.executable, "-c", _FETCH, url)
    assert _shell(file, "--quiet", "--pcap", str(capture), *program).returncode == 0
    assert set(analyze(capture).subflows["state"]) == {"closed"}


@pytest.mark.usefixtures("hangs_up")
def test_results_survive_a_terminal_that_is_closed(file: Path, tmp_path: Path, url: str) -> None:
    out = tmp_path / "out"
    program = ("--", sys.executable, "-c", _UNTIL_SIGTERM, url)
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", LINES="", COLUMNS="")
        command = [*_ANABRANCH, "shell", str(file), "--out", str(out), *program]
        os.execv(sys.executable, command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
    output = b""
    while b"ready" not in output:
        output += os.read(terminal, 65536)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 129
    assert max(load(out).runs["bytes_delivered"].to_list()) > len(_BODY)
    assert not _left()


def test_a_terminal_shows_the_paths_and_its_keys_toggle_them(file: Path) -> None:
    program = "read line; stty size; echo got $line; sleep 2"
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", LINES="", COLUMNS="")
        os.execv(sys.executable, [*_ANABRANCH, "shell", str(file), "--", "sh", "-c", program])
    size = struct.pack("HHHH", 30, 80, 0, 0)

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
    output, deadline, typed = b"", time.monotonic() + 30, False
    while time.monotonic() < deadline:
        try:
            output += os.read(terminal, 65536)
        except OSError:
            break
        if not typed and b"1 wifi" in output:
            os.write(terminal, b"\x1d1hello\r")
            typed = True
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    # Two paths, their headings and the line about keys take 4 of 30 lines.
    assert b"26 80" in output
    assert b"got hello" in output
    assert b"Ctrl-]" in output
    assert output.count(b" down") > 2


def test_a_panel_shows_rates_since_the_last_look() -> None:
    panel = PathPanel(["wifi", "lte"])
    idle = State(0, 0, True, (0, 0), 0, None, 0)
    panel.lines(1.0, [idle, idle], 80)
    # 1 MB down and 0.25 MB up in 2 s: 4 and 1 Mbit/s, all of it over WiFi.
    busy = State(1_000_000, 250_000, True, (3000, 0), 2, 25_000_000, 15_000)
    wifi, lte = panel.lines(3.0, [busy, idle._replace(up=False)], 100)[1:3]
    for part in ("4.00 Mbit/s", "1.00 Mbit/s", "100 %", "25 ms", "15 kB", "3 kB"):
        assert part in wifi
    assert "down" in lte


def test_a_panel_offers_a_digit_for_each_of_the_first_nine_paths() -> None:
    idle = State(0, 0, True, (0, 0), 0, None, 0)
    for count, keys in ((2, "Ctrl-] 1–2:"), (12, "Ctrl-] 1–9:")):
        panel = PathPanel([f"path {number}" for number in range(count)])
        assert keys in panel.lines(1.0, [idle] * count, 100)[-1]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--pcap-limit", "1MB", "--", "true"), "--pcap-limit needs --pcap"),
        ((), "Missing argument"),
        (("curl", "-s"), "No such option: -s; put -- before the program: anabranch shell FILE --"),
        (
            ("--set", "connection.main.scheduler=custom:x", "--", "true"),
            "your own policy needs a file",
        ),
        (("--set", "path.wifi.rate=fast", "--", "true"), "path.wifi.rate"),
    ],
)
def test_bad_input_is_one_line(
    file: Path, arguments: tuple[str, ...], reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["shell", str(file), *arguments]) == 2
    error = capfd.readouterr().err
    assert reason in error
    assert error.count("\n") == 1
