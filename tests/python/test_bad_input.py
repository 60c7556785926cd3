"""Bad input causes one line of explanation and exit status 2, and writes nothing."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from anabranch.cli.main import run_command

pytestmark = pytest.mark.usefixtures("plain_pictures")

Captured = pytest.CaptureFixture[str]

SCENARIO = """
name = "short"
duration = "300ms"
[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "54packets"
jitter = "1ms"
loss = "0%"
mtu = "1500B"
queue = { kind = "codel", target = "5ms" }
[[path.change]]
at = "100ms"
rate = "4Mbit/s"
[[path.middlebox]]
kind = "rewrite_payload"
change = "insert"
bytes = 4
at = "1GB"
[[path]]
name = "3g"
rate = "2Mbit/s"
delay = "75ms"
limit = "334packets"
[[connection]]
name = "main"
protocol = "mptcp"
dss_checksum = true
paths = ["wifi", "3g"]
send_buffer = "200KiB"
receive_buffer = "200KiB"
scheduler = "min_rtt"
congestion_control = "lia"
path_manager = "full_mesh"
remedies = { penalisation = "conext13" }
workload = { kind = "blocks", block_size = "8KiB" }
[[cross_traffic]]
path = "wifi"
rate = "500kbit/s"
on = { kind = "exponential", mean = "50ms" }
off = { kind = "exponential", mean = "50ms" }
"""

LONG = "x" * 300
"""A name that no file can have."""

TOPOLOGY = """
from mininet.net import Mininet
net = Mininet()
for name in "ab":
    net.addHost(name)
net.addLink("a", "b", bw=8)
"""

WITH_ECN = """
[[connection]]
name = "other"
ecn = true
workload = { kind = "bulk" }
"""

PLAN = """
scenario = "good.toml"
seeds = 1
[factors]
"path.wifi.rate" = ["4Mbit/s", "8Mbit/s"]
"""

POLICIES = """
class Good:
    def schedule(self, context): ...

class Exits(Good):
    def __init__(self):
        raise SystemExit(0)

class Fails(Good):
    def __init__(self):
        raise ValueError("no")

class Other: ...

number = 7
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a run and a capture."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "good.toml").write_text(SCENARIO)
    capture = folder / "good.pcapng"
    arguments = [
        str(folder / "good.toml"),
        "--out",
        str(folder / "results"),
        "--pcap",
        str(capture),
    ]
    assert run_command(["run", *arguments]) == 0
    return folder


@pytest.fixture
def folder(tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with good and bad files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "good_policies", raising=False)
    (tmp_path / "good.toml").write_text(SCENARIO)
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "good_policies.py").write_text(POLICIES)
    (tmp_path / "bad_syntax.py").write_text("class Good:\n    def schedule(self, context)\n")
    (tmp_path / "bad_import.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "bad_exit.py").write_text("raise SystemExit(0)\n")
    (tmp_path / "ndiffports.toml").write_text(SCENARIO.replace("full_mesh", "ndiffports"))
    (tmp_path / "own.toml").write_text(SCENARIO.replace("min_rtt", "custom:mine"))
    (tmp_path / "ecn.toml").write_text(f"{SCENARIO}{WITH_ECN}")
    (tmp_path / "mine.toml").write_text(SCENARIO.replace("min_rtt", "mine.py:Mine"))
    varied = PLAN.replace("path.wifi.rate", "connection[0].scheduler").replace("4Mbit/s", "ecf")
    (tmp_path / "varied.toml").write_text(varied.replace("8Mbit/s", "mine.py:Mine"))
    live = PLAN.replace("path.wifi.rate", "connection[0].path_manager")
    live = live.replace("4Mbit/s", "full_mesh").replace("8Mbit/s", "single_path")
    (tmp_path / "live.toml").write_text(live)
    (tmp_path / "hard_link.toml").hardlink_to(tmp_path / "good.toml")
    inside = PLAN.replace("good.toml", "results/scenarios/short.toml")
    (tmp_path / "inside.toml").write_text(inside)
    (tmp_path / "topology.py").write_text(TOPOLOGY)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text.txt").write_text("not a scenario")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "cut.pcapng").write_bytes((finished / "good.pcapng").read_bytes()[:-7])
    (tmp_path / "bad.pkt").write_text("0.0 nonsense\n")
    shutil.copytree(finished / "results", tmp_path / "results")
    return tmp_path


def complaint(captured: Captured, *, status: int, wanted: int = 2) -> str:
    """The only line on standard error, apart from the expected size of a capture."""
    out, err = captured.readouterr()
    assert status == wanted, err or out
    assert re.fullmatch(r"(anabranch: capture: [^\n]+\n)?anabranch: [^\n]+\n", err), err
    return err


# ---- the command line -----------------------------------------------------------------------

COMMANDS = [
    ("frobnicate", "frobnicate"),
    ("--frobnicate", "--frobnicate"),
    ("list extra", "extra"),
    ("schema --json", "--json"),
    ("doctor now", "now"),
    ("policies ecf", "ecf"),
    ("reproduce", "ID"),
    ("reproduce nsdi12-fig", 'did you mean "nsdi12-fig7"?'),
    ("reproduce nsdi12-fig7 --seeds 0", "--seeds"),
    ("reproduce nsdi12-fig7 --seeds 100000000000", "--seeds"),
    ("reproduce nsdi12-fig7 --seeds many", "--seeds"),
    ("reproduce nsdi12-fig7 --sedes 3", "--sedes"),
    ("reproduce nsdi12-fig7 --out good.toml/folder", "not a directory"),
    ("reproduce nsdi12-fig7 --out EMPTY", "--out"),
    ("reproduce nsdi12-fig7 --on localhost", "write dask://HOST:PORT"),
    ("reproduce nsdi12-fig7 --on dask://", "write dask://HOST:PORT"),
    ("gallery nsdi12-fig", "unknown entry"),
    ("gallery nsdi12-fig7 --out good.toml", "not a directory"),
    ("calibrate --sedes", "--sedes"),
    ("calibrate --random 0", "--random"),
    ("calibrate --random many", "--random"),
    ("calibrate --random 2 --seed -1", "--seed"),
    ("calibrate --seed 2", "--seed needs --random"),
    ("calibrate --random 2 good.toml", "leave out the files"),
    ("calibrate --full --seeds 2", "--full means five seeds"),
    ("calibrate --in nowhere", "--in"),
    ("calibrate nowhere.toml", "nowhere.toml: no such file"),
    ("calibrate text.txt", "text.txt"),
    ("calibrate good.toml ./good.toml", "file names must differ"),
    ("calibrate ndiffports.toml", "ndiffports.toml: Linux cannot run this scenario"),
    (
        "calibrate own.toml",
        'own.toml: connection[0].scheduler: "mine": your own policy needs a file',
    ),
    ("calibrate ecn.toml", "Linux has one setting of ecn for all connections"),
    ("twin nowhere.pcap --out .", "--out .: not a regular file"),
    ("twin cut.pcapng --out cut.pcapng", "--out cut.pcapng: a file that this command reads"),
    ("twin cut.pcapng --report good.toml", "--report good.toml: file exists"),
    ("run", "FILE"),
    ("run nowhere.toml", "no such file"),
    ("run .", "is a directory"),
    ("run text.txt", "text.txt"),
    ("run binary", "not UTF-8"),
    ("run good.toml --seed -1", "--seed"),
    ("run good.toml --seed 1.5", "--seed"),
    ("run good.toml --seed 99999999999999999999", "--seed"),
    ("run good.toml --seeds 0", "--seeds"),
    ("run good.toml --seeds 100000000", "--seeds"),
    ("run good.toml --pcap nowhere/x.pcapng", "nowhere/x.pcapng: no such file"),
    ("run good.toml --pcap /dev/full", "no space left on device"),
    ("run good.toml --pcap x.pcapng --pcap-limit 1", "not a size"),
    ("run good.toml --pcap x.pcapng --pcap-limit 2Mbit/s", "not a size"),
    ("run good.toml --pcap x.pcapng --seeds 2", "--pcap needs a single scenario"),
    ("run good.toml --pcap results", "--pcap results: not a regular file"),
    ("run good.toml --pcap good.toml", "--pcap good.toml: a file that this command reads"),
    ("run good.toml --qlog good.toml", "--qlog good.toml: a file that this command reads"),
    ("run good.toml --pcap x --qlog ./x", "--qlog x: a file that this command reads"),
    ("run good.toml --qlog results", "--qlog results: not a regular file"),
    ("run good.toml --qlog PIPE", "--qlog pipe: not a regular file"),
    ("run good.toml --qlog .", "--qlog .: not a regular file"),
    ("run good.toml --qlog EMPTY", "the name is empty"),
    ("run results/scenarios/short.toml --out results", "short.toml: a file that this command"),
    ("sweep inside.toml --out results", "short.toml: a file that this command reads"),
    ("calibrate results/scenarios/short.toml --out results", "short.toml: a file that this"),
    (f"run good.toml --seed {2**64 - 1} --seeds 2", "seed 18446744073709551616: seeds are from 0"),
    (f"explain good.toml --seed {2**64 - 1} --what-if", "seeds are from 0 to 2**64 - 1"),
    (f"advise good.toml --seed {2**64 - 2} --seeds 1", "seeds are from 0 to 2**64 - 1"),
    ("run caf\udce9.toml", r"caf\xe9.toml: not UTF-8 text"),
    ("sweep plan.toml --out r\udcff", r"r\xff: not UTF-8 text"),
    ("run good.toml --out good.toml", "file exists"),
    ("run good.toml --out good.toml/folder", "not a directory"),
    ("run good.toml --out EMPTY", "--out"),
    ("run good.toml --client engine", "need --live"),
    ("run good.toml --server kernel", "need --live"),
    ("run good.toml --live --client linux", "--client"),
    ("run good.toml --in linux-vm", "--client, --server and --in need --live"),
    (
        "run good.toml --live --scheduler good_policies.py:Good",
        "live runs have built-in policies only",
    ),
    ("run good.toml good.toml", "file names must differ"),
    ("run good.toml nowhere.toml", "nowhere.toml: no such file"),
    ("run good.toml --scheduler eccf", 'did you mean "ecf"?'),
    ("run good.toml --congestion-control vegas", 'did you mean "wvegas"?'),
    ("run good.toml --path-manager fullmesh", 'did you mean "full_mesh"?'),
    ("run good.toml --scheduler lia", "unknown scheduler"),
    ("run good.toml --scheduler nowhere.py:Good", "--scheduler nowhere.py:Good: no file /"),
    (f"run good.toml --scheduler {LONG}.py:Good", "file name too long"),
    ("run good.toml --scheduler good_policies.py", "write FILE.py:CLASS"),
    ("run good.toml --scheduler good_policies.py:", "write FILE.py:CLASS"),
    ("run good.toml --scheduler good_policies.py:Nobody", "no class Nobody"),
    ("run good.toml --scheduler good_policies.py:number", "no class number"),
    ("run good.toml --scheduler good_policies.py:Other", "Other is not a scheduler: it lacks"),
    ("run good.toml --path-manager good_policies.py:Good", "Good is not a path manager: it lacks"),
    ("run own.toml", 'own.toml: connection[0].scheduler: "mine": your own policy needs a file'),
    ("run mine.toml", 'mine.toml: connection[0].scheduler: "mine.py:Mine": no file /'),
    ("run mine.toml good.toml", 'connection[0].scheduler: "mine.py:Mine": no file /'),
    ("run mine.toml --live", 'connection[0].scheduler: "mine.py:Mine": no file /'),
    ("explain mine.toml", 'connection[0].scheduler: "mine.py:Mine": no file /'),
    ("explain good.toml --scheduler good_policies.py:Nobody", "no class Nobody"),
    ("explain cut.pcapng --scheduler ecf", "--scheduler: a capture cannot be run again"),
    ("explain results --scheduler ecf", "results: --set and policies change a scenario"),
    ("advise mine.toml", 'connection[0].scheduler: "mine.py:Mine": no file /'),
    ("advise good.toml --scheduler good_policies.py:Other", "Other is not a scheduler"),
    ("advise --path 8Mbit/s,20ms --scheduler ecf", "--scheduler ecf: no connection of --path uses"),
    ("shell good.toml --pcap good.toml -- true", "good.toml: a file that this command reads"),
    ("shell mine.toml -- true", 'connection[0].scheduler: "mine.py:Mine": no file /'),
    (
        "shell good.toml --client kernel --scheduler good_policies.py:Good -- true",
        "with --client kernel, Linux chooses its own policies",
    ),
    ("sweep plan.toml --scheduler good_policies.py:Nobody --out out", "no class Nobody"),
    ("sweep live.toml --live --out out", "live.toml: connection[0].path_manager = single_path"),
    (
        "sweep varied.toml --scheduler ecf --out out",
        'varied.toml: factors."connection[0].scheduler',
    ),
    ("run good.toml --set", "--set"),
    ("run good.toml --set path.wifi.rate", "write KEY=VALUE"),
    ("run good.toml --set =20Mbit/s", "write KEY=VALUE"),
    ("run good.toml --set path.wify.rate=20Mbit/s", 'did you mean "wifi"?'),
    ("run good.toml --set path[2].rate=20Mbit/s", "there is no path[2]; the scenario has 2"),
    ("run good.toml --set path.wifi.rat=20Mbit/s", 'did you mean "rate"?'),
    ("run good.toml --set path.wifi.rate=20", '--set path.wifi.rate: "20" has no unit'),
    ("run good.toml --set path[0].rate=20", '--set path.wifi.rate: "20" has no unit'),
    ("run good.toml --set wifi.rate=20Mbit/s", "unknown key; write path.wifi.rate"),
    ("run good.toml --seed x", "x is not a whole number from 0 to 2**64 - 1"),
    ("run good.toml --pcap-limit 1MB", "--pcap-limit needs --pcap"),
    ("run good.toml --pcap-at both", "--pcap-at needs --pcap"),
    ("run good.toml --snap 128", "--snap needs --pcap"),
    ("run good.toml --pcap x.pcapng --snap 0", "0 is not a whole number from 1 to 65,535"),
    ("run good.toml --pcap x.pcapng --pcap-at home", "'home' is not one of"),
    ("run plan.toml", "this is a plan, not a scenario; use: anabranch sweep plan.toml"),
    ("run good.toml --sedes 3", "(see: anabranch run --help)"),
    ("run good.toml --set path.wifi.rate=fast", "fast"),
    ("run good.toml --set durration=9s", 'did you mean "duration"?'),
    ("run good.toml --set path..rate=1Mbit/s", "is not a key"),
    ("sweep", "PLAN.toml"),
    ("sweep nowhere.toml", "no such file"),
    ("sweep binary", "not UTF-8"),
    ("sweep good.toml", "this is a scenario, not a plan; use: anabranch run good.toml"),
    ("sweep plan.toml --out good.toml", "file exists"),
    ("sweep plan.toml --out EMPTY", "--out"),
    ("sweep plan.toml --on tcp://localhost:1", "write dask://HOST:PORT"),
    ("compare results", "name two folders"),
    ("compare results results results", "name two folders"),
    ("compare results nowhere", "nowhere: provenance.json is missing"),
    ("compare results --by scheduler a b", 'unknown factor "scheduler"'),
    ("compare results --by scheduler a", "--by"),
    ("compare results results --out nowhere/x.json", "no such file"),
    ("compare results results --out good.toml/x.json", "not a directory"),
    ("compare results results --out .", "--out .: not a regular file"),
    ("compare results results --out results/runs.parquet", "a file that this command reads"),
    ("report", "DIR"),
    ("report nowhere", "nowhere: provenance.json is missing"),
    ("report good.toml", "provenance.json is missing"),
    (f"report {LONG}", "file name too long"),
    ("report results --figure good.toml/x.pdf", "--figure good.toml/x.pdf: not a directory"),
    ("report results --figure EMPTY", "--figure"),
    ("report .", "provenance.json is missing"),
    ("analyze", "FILE"),
    ("analyze nowhere.pcap", "nowhere.pcap"),
    ("analyze good.toml", "good.toml"),
    ("analyze .", "directory"),
    ("analyze cut.pcapng --csv", "--csv needs --out"),
    ("analyze cut.pcapng --out EMPTY", "--out"),
    ("analyze cut.pcapng --qlog cut.pcapng", "--qlog cut.pcapng: a file that this command reads"),
    ("export good.toml", "--to"),
    ("export good.toml --to ns3", "--to"),
    ("export nowhere.toml --to tc", "nowhere.toml: no such file"),
    ("export good.toml --to tc --out .", "not a regular file"),
    ("export good.toml --to tc --out good.toml", "--out good.toml: a file that this command reads"),
    ("export good.toml --to tc --out hard_link.toml", "a file that this command reads"),
    (f"export good.toml --to tc --out {LONG}", f"--out {LONG}: file name too long"),
    ("import", "SCRIPT.py"),
    ("import nowhere.py", "nowhere.py: no such file"),
    ("import good.toml", "good.toml:"),
    ("import cut.pcapng", "cut.pcapng: not UTF-8 text"),
    ("import topology.py --out topology.py", "--out topology.py: a file that this command reads"),
    ("conform", "FILE"),
    ("conform nowhere", "no such file"),
    ("conform bad.pkt", "bad.pkt"),
    (f"conform {LONG}", "file name too long"),
    ("conform binary", "binary: not UTF-8 text; name .pkt files"),
    ("conform bad.pkt --platform bsd", "--platform"),
]


@pytest.mark.parametrize(("arguments", "words"), COMMANDS)
def test_commands(arguments: str, words: str, folder: Path, capsys: Captured) -> None:
    before = files(folder)
    words_given = [word.replace("EMPTY", "").replace("PIPE", "pipe") for word in arguments.split()]
    status = run_command(words_given)
    assert words.lower() in complaint(capsys, status=status).lower()
    assert files(folder) == before, "nothing is written"


def files(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*") if "__pycache__" not in file.parts}


# ---- scenarios ------------------------------------------------------------------------------

SCENARIOS = [
    ("[[path]]", "[[path", "line"),
    ('name = "wifi"', 'nam = "wifi"', "path[0].nam"),
    ('name = "wifi"', 'name = ""', "path[0].name"),
    ('name = "wifi"', 'name = "wi\\u0007fi"', "control characters"),
    ('name = "short"', 'name = "sh\\nort"', "control characters"),
    ('name = "3g"', 'name = "wifi"', "already the name"),
    ('duration = "300ms"', 'duration = "0s"', "duration"),
    ('duration = "300ms"', 'duration = "300"', "has no unit"),
    ('duration = "300ms"', "duration = 300", "duration"),
    ('duration = "300ms"', 'duration = "-1s"', "duration"),
    ('duration = "300ms"', 'duration = "1s"\nwarm_up = "2s"', "warm_up"),
    ('rate = "8Mbit/s"', 'rate = "8"', "path[0].rate"),
    ('rate = "8Mbit/s"', "rate = 8", "path[0].rate"),
    ('rate = "8Mbit/s"', 'rate = "-8Mbit/s"', "path[0].rate"),
    ('rate = "8Mbit/s"', 'rate = "8MB/s"', "path[0].rate"),
    ('rate = "8Mbit/s"', 'rate = "8Mbit/s"\ntrace = "x.trace"', "trace"),
    ('rate = "8Mbit/s"', 'trace = "nowhere.trace"', "nowhere.trace"),
    ('rate = "8Mbit/s"', "", "rate"),
    ('delay = "10ms"', 'delay = "10"', "path[0].delay"),
    ('delay = "10ms"', 'delay = "10 parsecs"', "path[0].delay"),
    ('limit = "54packets"', 'limit = "0packets"', "path[0].limit"),
    ('limit = "54packets"', 'limit = "54"', "path[0].limit"),
    ('loss = "0%"', 'loss = "120%"', "path[0].loss"),
    ('loss = "0%"', "loss = 0.1", "path[0].loss"),
    ('mtu = "1500B"', 'mtu = "1B"', "path[0].mtu"),
    ('kind = "codel"', 'kind = "coddel"', 'did you mean "codel"?'),
    ('target = "5ms"', 'targett = "5ms"', "targett"),
    ('at = "100ms"', 'when = "100ms"', "path[0].change[0].when"),
    ('kind = "rewrite_payload"', 'kind = "rewrite"', "rewrite"),
    ("bytes = 4", "bytes = -4", "bytes"),
    ('protocol = "mptcp"', 'protocol = "sctp"', "connection[0].protocol"),
    ('paths = ["wifi", "3g"]', 'paths = ["wifi", "lte"]', "lte"),
    ('paths = ["wifi", "3g"]', "paths = []", "paths"),
    ('send_buffer = "200KiB"', 'send_buffer = "0B"', "connection[0].send_buffer"),
    ('scheduler = "min_rtt"', 'scheduler = "min_rt"', 'did you mean "min_rtt"?'),
    ('scheduler = "min_rtt"', 'scheduler = { kind = "ecf", beta = -1 }', "beta"),
    ('scheduler = "min_rtt"', 'scheduler = "custom:mine"', "--scheduler FILE.py:CLASS"),
    ('scheduler = "min_rtt"', r'scheduler = "a\u0000.py:Mine"', "embedded null byte"),
    ("bytes = 4", f"bytes = {'4' * 5000}", "overflow"),
    ('congestion_control = "lia"', 'congestion_control = "vegas"', 'did you mean "wvegas"?'),
    ('penalisation = "conext13"', 'penalisation = "conext"', "penalisation"),
    ('kind = "blocks"', 'kind = "block"', 'did you mean "blocks"?'),
    ('block_size = "8KiB"', 'block_size = "8KiB", size = "1MB"', "size"),
    ('path = "wifi"', 'path = "lte"', "cross_traffic[0].path"),
    ('mean = "50ms"', 'mean = "0s"', "mean"),
    ("[[connection]]", "[[connections]]", 'did you mean "connection"?'),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "words"), SCENARIOS)
def test_scenarios(right: str, wrong: str, words: str, folder: Path, capsys: Captured) -> None:
    assert right in SCENARIO
    (folder / "good.toml").write_text(SCENARIO.replace(right, wrong, 1))
    line = complaint(capsys, status=run_command(["run", "good.toml", "--out", "out"]))
    assert "good.toml" in line
    assert words in line
    assert not (folder / "out" / "provenance.json").exists()


# ---- plans ----------------------------------------------------------------------------------

WIDE = """[design]
kind = "{kind}"
points = {points}
[design.ranges]
"path.wifi.rate" = {{ from = "1Mbit/s", to = "2Mbit/s" }}
"path.3g.rate" = {{ from = "1Mbit/s", to = "2Mbit/s" }}
"""

PLANS = [
    ("seeds = 1", "seeds = 100000000000", "at most 1,000,000 runs"),
    ("seeds = 1", "seeds = -1", "seeds"),
    ("seeds = 1", 'seeds = "1"', "seeds"),
    ("seeds = 1", "seeds = [1, 2**64]", "line"),
    ("seeds = 1", "seeds = 600000", "at most 1,000,000"),
    ("seeds = 1", "keep = ['sample']", 'did you mean "samples"?'),
    ("seeds = 1", f"seeds = {'1' * 5000}", "plan.toml: Exceeds the limit"),
    ("good.toml", r"a\u0000", r"a\x00: embedded null byte"),
    ("good.toml", "nowhere.toml", "no such file"),
    ("path.wifi.rate", "path.wify.rate", 'did you mean "wifi"?'),
    ('"4Mbit/s"', "2020-01-01", "path.wifi.rate: datetime.date(2020, 1, 1): write text"),
    ('"path.wifi.rate" = ["4Mbit/s",', '"connection[0].scheduler" = ["nowhere.py:Mine",',
     "plan.toml: connection[0].scheduler = nowhere.py:Mine: "),
    ('["4Mbit/s", "8Mbit/s"]', "[]", "not a list of values"),
    ('["4Mbit/s", "8Mbit/s"]', '{ values = ["4Mbit/s"] }', "exactly { keys = [...], values"),
    ('"path.wifi.rate" = ["4Mbit/s", "8Mbit/s"]',
     'cell = { keys = ["path.wifi.rate"], values = ["4Mbit/s"] }', "choose another name"),
    ('"path.wifi.rate" =', "goodput_mbps =", "goodput_mbps"),
    ("[factors]", "factor = 1\n[factors]", 'did you mean "factors"?'),
    ('[factors]\n"path.wifi.rate" = ["4Mbit/s", "8Mbit/s"]', WIDE.format(kind="wsp", points=10**8),
     "too many"),
    ('[factors]\n"path.wifi.rate" = ["4Mbit/s", "8Mbit/s"]', WIDE.format(kind="grid", points=10**8),
     "too many"),
    ('[factors]\n"path.wifi.rate" = ["4Mbit/s", "8Mbit/s"]', WIDE.format(kind="lhs", points=10**8),
     "too many"),
    ('[factors]\n"path.wifi.rate" = ["4Mbit/s", "8Mbit/s"]', WIDE.format(kind="xyz", points=3),
     'unknown kind "xyz"'),
    ('[factors]\n"path.wifi.rate" = ["4Mbit/s", "8Mbit/s"]',
     WIDE.format(kind="lhs", points=3).replace("2Mbit", "1e999Mbit"), "to 1e999Mbit/s is too wide"),
    ('[factors]\n"path.wifi.rate" = ["4Mbit/s", "8Mbit/s"]',
     WIDE.format(kind="lhs", points=3).replace("Mbit/s", "packets").replace("2p", "1e999p"),
     "to 1e999packets is too wide"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "words"), PLANS)
def test_plans(right: str, wrong: str, words: str, folder: Path, capsys: Captured) -> None:
    assert right in PLAN
    (folder / "plan.toml").write_text(PLAN.replace(right, wrong, 1))
    line = complaint(capsys, status=run_command(["sweep", "plan.toml", "--out", "out"]))
    assert words in line
    assert not (folder / "out" / "provenance.json").exists()


# ---- own policies ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "words", "shown"),
    [
        ("bad_syntax.py:Good", "SyntaxError", "def schedule"),
        ("bad_import.py:Good", "ModuleNotFoundError", "import nothing_of_that_name"),
        ("bad_exit.py:Good", "SystemExit", "raise SystemExit"),
        ("good_policies.py:Exits", "SystemExit", "raise SystemExit"),
        ("good_policies.py:Fails", "ValueError: no", "raise ValueError"),
        ("good_policies.py:Good", "schedule() returned None", ""),
    ],
)
def test_own_policies(policy: str, words: str, shown: str, folder: Path, capsys: Captured) -> None:
    assert run_command(["run", "good.toml", "--scheduler", policy, "--out", "out"]) == 2
    out, err = capsys.readouterr()
    *traceback, line = err.splitlines()
    assert out == ""
    assert line.startswith("anabranch: ")
    assert words in err
    assert shown in err
    frames = [text for text in traceback if text.startswith('  File "')]
    assert all(str(folder) in frame for frame in frames), "only frames of the user's"
    assert not (folder / "out" / "provenance.json").exists()


# ---- damaged results ------------------------------------------------------------------------


def rewritten(change: Callable[[dict[str, object]], object]) -> Callable[[Path], object]:
    def damage(results: Path) -> None:
        about = json.loads((results / "provenance.json").read_text())
        change(about)
        (results / "provenance.json").write_text(json.dumps(about))

    return damage


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no provenance": lambda results: (results / "provenance.json").unlink(),
    "empty provenance": lambda results: (results / "provenance.json").write_text(""),
    "cut provenance": lambda results: (results / "provenance.json").write_text('{"version":'),
    "a list": lambda results: (results / "provenance.json").write_text("[]"),
    "not text": lambda results: (results / "provenance.json").write_bytes(b"\xff\xfe"),
    "no runs": rewritten(lambda about: about.pop("runs")),
    "wrong runs": rewritten(lambda about: about.update(runs=[1])),
    "no version": rewritten(lambda about: about.pop("version")),
    "unknown entry": rewritten(lambda about: about.update(entry="nsdi12-fig")),
    "no table": lambda results: (results / "runs.parquet").unlink(),
    "empty table": lambda results: (results / "runs.parquet").write_bytes(b""),
    "not Parquet": lambda results: (results / "runs.parquet").write_text("x" * 1000),
    "cut Parquet": lambda results: (results / "runs.parquet").write_bytes(
        (results / "runs.parquet").read_bytes()[:-100]
    ),
    "damaged Parquet": lambda results: (results / "subflows.parquet").write_bytes(
        (results / "subflows.parquet").read_bytes().replace(b"bytes", b"bxtes")
    ),
    "a column is missing": lambda results: (
        pl.read_parquet(results / "links.parquet")
        .drop("packets_in")
        .write_parquet(results / "links.parquet")
    ),
    "old columns": lambda results: (
        pl.read_parquet(results / "subflows.parquet")
        .rename({"bytes_sent": "octets_sent"})
        .write_parquet(results / "subflows.parquet")
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_results(damage: str, folder: Path, capsys: Captured) -> None:
    DAMAGES[damage](folder / "results")
    line = complaint(capsys, status=run_command(["report", "results"]))
    assert "results" in line or "entry" in line


def test_a_damaged_scenario_of_results_is_not_compared(folder: Path, capsys: Captured) -> None:
    shutil.copytree("results", "other")
    (folder / "other" / "scenarios" / "short.toml").write_text("x = [")
    line = complaint(capsys, status=run_command(["compare", "results", "other"]))
    assert "other: scenarios/short.toml: " in line
    assert "make the results again" in line


def test_a_damaged_capture_is_shown_up_to_the_damage(folder: Path, capsys: Captured) -> None:
    assert run_command(["analyze", "cut.pcapng"]) == 2
    out, err = capsys.readouterr()
    assert "Connections" in out
    assert re.fullmatch(r"anabranch: [^\n]+\n", err)


def test_there_are_enough_cases() -> None:
    assert len(COMMANDS) + len(SCENARIOS) + len(PLANS) + 6 + len(DAMAGES) >= 130
