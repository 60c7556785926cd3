"""Scripts from scenarios, and scenarios from scripts."""

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import _core
from anabranch.cli.main import run_command
from anabranch.errors import InputError
from anabranch.exchange import traffic
from anabranch.exchange.export import Target, export
from anabranch.exchange.importing import Imported, read
from anabranch.scenarios import loading

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(each for each in ROOT.glob("examples/*.toml") if "sweep" not in each.name)
Captured = pytest.CaptureFixture[str]

PATHS = """
name = "paths"
duration = "5s"
[[path]]
name = "core"
rate = "25Mbit/s"
delay = "2ms"
limit = "50packets"
[[path]]
name = "wifi"
via = "core"
rate = "8Mbit/s"
delay = "10ms"
limit = "54packets"
jitter = "3ms"
jitter_model = "reordering"
[[path]]
name = "lte"
via = "core"
rate = "20Mbit/s"
delay = "30.5ms"
limit = "infinite"
loss = "0.25%"
[path.reverse]
rate = "1Mbit/s"
limit = "20packets"
loss = "0.25%"
[[path]]
name = "cable"
rate = "1.5Mbit/s"
delay = "0s"
limit = "9packets"
[[connection]]
name = "main"
workload = { kind = "bulk" }
"""


def scenario(text: str) -> _core.Scenario:
    return loading.of_text(text, "test.toml")


def script(text: str, to: Target = "tc") -> str:
    return export(scenario(text), to).text


# ---- tc -------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_exported_scripts_are_valid_and_list_their_differences(file: Path, tmp_path: Path) -> None:
    for to in ("tc", "mininet"):
        made = anabranch.export(file, to)
        comments = made.text.partition("\n\n")[0].replace("\n#  ", "")
        assert all(f"* {each}" in comments for each in made.differences)
        target = tmp_path / "script"
        target.write_text(made.text)
        if to == "mininet":
            compile(made.text, "script", "exec")
        else:
            subprocess.run(["bash", "-n", target], check=True)
            if shutil.which("shellcheck"):
                subprocess.run(["shellcheck", "--severity=warning", target], check=True)


def test_a_link_is_a_bucket_a_queue_and_a_delay_behind_it() -> None:
    lines = script((ROOT / "examples/wifi_3g.toml").read_text()).splitlines()
    # A bucket of two packets: one more than on the link, which the queue of 54 packets lacks.
    assert "transmit wifi-far wifi 8000000bit 3000 pfifo limit 53" in lines
    assert "propagate wifi client delay 10ms rate 8000000bit -14" in lines
    assert "transmit wifi wifi-far 8000000bit 3000 pfifo limit 53" in lines
    assert "propagate wifi-far server delay 10ms rate 8000000bit -14" in lines
    # Jitter that keeps the order, in the forward direction only.
    assert "propagate 3g client delay 75ms 50ms rate 100000000000bit" in lines
    assert "propagate 3g-far server delay 75ms rate 2000000bit -14" in lines


def test_a_fast_link_has_a_bucket_of_a_millisecond() -> None:
    text = script(PATHS.replace("1.5Mbit/s", "100Mbit/s").replace("9packets", "100packets"))
    # 100 Mbit/s send 12,500 bytes in 1 ms; with a packet on the link that makes 14,000. The queue
    # lacks 12,500 of its 150,000 bytes: 91.7 packets remain.
    assert "transmit cable-far cable 100000000bit 14000 pfifo limit 92\n" in text


def test_queues_in_bytes_and_time_are_queues_in_bytes() -> None:
    text = script(PATHS.replace('"9packets"', '"80ms"'))
    # 80 ms at 1.5 Mbit/s are 15,000 bytes, of which 1500 are in the bucket.
    assert "transmit cable-far cable 1500000bit 3000 bfifo limit 13500\n" in text


def test_disciplines_and_burst_losses_have_their_parameters() -> None:
    keys = (
        'queue = { kind = "codel" }\nloss = "50%"\nburst_loss = { to_bad = "1%", to_good = "20%" }'
    )
    text = script(PATHS.replace('limit = "9packets"', f'limit = "9packets"\n{keys}'))
    assert "1500000bit 3000 codel limit 8 target 5ms interval 100ms\n" in text
    # Half of the packets are lost in the good state as well.
    assert "propagate cable client loss gemodel 1% 20% 100% 50% rate 1500000bit -14\n" in text
    red = script(PATHS.replace('"9packets"', '"9packets"\nqueue = { kind = "red" }'))
    assert "red limit 12000 min 7500 max 22500 avpkt 1500 burst 9 bandwidth" in red
    fq_codel = script(PATHS.replace('"9packets"', '"9packets"\nqueue = { kind = "fq_codel" }'))
    parameters = "flows 1024 target 5ms interval 100ms quantum 1500"
    assert f"1500000bit 3000 fq_codel limit 8 {parameters}\n" in fq_codel
    cake = script(PATHS.replace('"9packets"', '"9packets"\nqueue = { kind = "cake" }'))
    parameters = "unlimited besteffort triple-isolate rtt 100ms memlimit 18432"
    assert f"1500000bit 3000 cake {parameters}\n" in cake
    pie = script(PATHS.replace('"9packets"', '"9packets"\nqueue = { kind = "pie" }'))
    assert "1500000bit 3000 pie limit 8 target 15ms tupdate 15ms\n" in pie
    assert "max_burst" not in pie
    burst = '"9packets"\nqueue = { kind = "pie", max_burst = "9ms" }'
    assert "queue.max_burst: it is 150ms in Linux" in script(PATHS.replace('"9packets"', burst))


def test_changes_come_at_their_times() -> None:
    text = script((ROOT / "examples/wifi_goes_away.toml").read_text())
    changes = text.partition("changes() {")[2].partition("}")[0].split("\n")
    assert changes[1:3] == ["    at 15000000", "    cut wifi-far wifi"]
    # 60 ms at 20 Mbit/s are 150,000 bytes; the bucket's 2500 are not in the queue.
    assert "    transmit wifi-far wifi 20000000bit 4000 bfifo limit 147500" in changes


def test_paths_that_share_a_link_cross_its_routers() -> None:
    text = script(PATHS)
    assert "cable wifi-far core\n" in text
    assert "cable lte-far core\n" in text
    assert "cable core-far server\n" in text
    # The second address of the client has a rule of its own, and the shared link needs none.
    assert (
        "rule add from 10.1.3.1 to 10.1.0.1 table 103\nroute add 10.1.0.1 dev lte table 103" in text
    )
    core = re.search(r"ip -n core -batch - <<'END'\n(.*?)END", text, re.DOTALL)
    assert core is not None
    assert "rule" not in core[1]
    assert "route add 10.1.2.1 dev wifi-far\n" in core[1]


def test_each_connection_has_hosts_of_its_own() -> None:
    text = script(
        f"{PATHS}[[connection]]\nname = 'other'\nprotocol = 'tcp'\nworkload = {{ kind = 'bulk' }}\n"
        "[[cross_traffic]]\npath = 'cable'\nrate = '1Mbit/s'\n"
    )
    for node in ("client1", "server1", "client2", "server2", "cross1-client", "cross1-server"):
        assert f"node {node}\n" in text
    assert "play cross1-client cross1-server" in text


def test_names_of_interfaces_are_short_and_unique() -> None:
    names = {"wifi": "a very long name of a path", "lte": "a very long one", "cable": "a very-far"}
    text = PATHS
    for old, new in names.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    nodes = re.findall(r"^node (.*)$", script(text), re.MULTILINE)
    assert len(set(nodes)) == len(nodes)
    assert max(map(len, nodes)) <= 15


def test_differences_name_their_keys() -> None:
    text = PATHS.replace(
        '"9packets"', '"9packets"\nmiddlebox = [{ kind = "nat" }]\nfamily = "ipv6"'
    )
    found = export(scenario(text), "tc").differences
    assert "path.cable.middlebox[0]: there is no nat" in found
    assert "path.cable.family: the addresses are IPv4" in found
    assert "connection.main.congestion_control: Linux has no lia; it uses cubic" in found
    assert not [each for each in found if each.startswith("path.wifi")]
    mininet = export(scenario(PATHS.replace("8Mbit/s", "8Gbit/s")), "mininet").differences
    assert "path.wifi.rate: Mininet's links are not limited above 1 Gbit/s" in mininet


def test_linux_has_bbr_and_paces_nothing_else() -> None:
    keys = 'congestion_control = "bbr"\npacing = true\n'
    exported = export(scenario(PATHS.replace("[[connection]]\n", f"[[connection]]\n{keys}")), "tc")
    assert '"congestion_control": "bbr"' in exported.text
    found = [each for each in exported.differences if "congestion control" in each]
    assert found == [
        "connection.main.pacing: Linux paces only with a congestion control that asks for it"
    ]


def test_the_stack_of_linux_differs_in_nothing(capsys: Captured, tmp_path: Path) -> None:
    file, out = tmp_path / "linux.toml", tmp_path / "linux.sh"
    file.write_text(f'stack = "linux-6.12"\n{PATHS}')
    assert run_command(["export", str(file), "--to", "tc", "--out", str(out)]) == 0
    assert capsys.readouterr() == ("", "")
    assert "everything that the scenario states" in out.read_text()


# ---- the program that makes the traffic -------------------------------------------------------


def converse(workload: dict[str, Any], direction: str = "download") -> tuple[int, int]:
    """The bytes that client and server receive over a pair of sockets."""
    about = {"name": "x", "number": 1, "duration": 0.5, "warm_up": 0.0, "start": 0.0}
    about |= {"direction": direction, "workload": workload}
    ends = socket.socketpair()
    flows = [traffic.FlowSide(role, about, time.time()) for role in ("client", "server")]
    threads = [
        threading.Thread(target=played, args=(flow, end), daemon=True)
        for flow, end in zip(flows, ends, strict=True)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(10)
    return flows[0].received, flows[1].received


def played(flow: traffic.FlowSide, end: socket.socket) -> None:
    with end:
        traffic.converse(flow, end)


@pytest.mark.parametrize("stack", ["linux-6.12", "rfc-8684", "mptcp.org-0.89"])
def test_every_stack_and_shaper_can_be_exported(stack: str) -> None:
    text = (ROOT / "examples/wifi_3g.toml").read_text()
    of_own = r"^(send_buffer|receive_buffer|congestion_control|scheduler|remedies) = .*$"
    text = re.sub(of_own, "", text, flags=re.MULTILINE)
    text = f'stack = "{stack}"\n{text}'.replace('rate = "8', 'shaper = "mininet"\nrate = "8')
    targets: tuple[Target, ...] = ("tc", "mininet")
    for to in targets:
        differences = " ".join(export(scenario(text), to).differences)
        assert "path.wifi.shaper: the links are made as without mininet" in differences
        assert ("host: the hosts are Linux" in differences) == (stack != "linux-6.12")


def test_workloads_send_their_data() -> None:
    assert converse({"kind": "bulk", "size": 300_000}) == (300_000, 0)
    assert converse({"kind": "bulk", "size": 1000}, "upload") == (0, 1000)
    assert converse({"kind": "bulk", "size": 1000}, "both") == (1000, 1000)
    assert converse({"kind": "blocks", "block_size": 8192, "count": 5}) == (5 * 8192, 0)
    # A burst at once, at 0.2 s and at 0.4 s.
    assert converse({"kind": "on_off", "burst_size": 700, "interval": 0.2}) == (2100, 0)
    # 8000 bit/s: a block of 100 bytes each 0.1 s.
    assert converse({"kind": "cbr", "rate": 8000, "block_size": 100, "count": 3}) == (300, 0)
    uniform = {"kind": "uniform", "min": 2, "max": 2}
    rounds = {"request_size": 400, "responses": uniform, "response_size": 5000, "count": 3}
    assert converse({"kind": "request_response", **rounds}) == (30_000, 0)


def test_goodput_counts_from_the_end_of_the_warm_up() -> None:
    about = {"name": "x", "number": 1, "duration": 4.0, "warm_up": 1.0, "start": 0.0}
    flow = traffic.FlowSide("client", {**about, "direction": "download"}, time.time() - 2)
    flow.count(1_500_000)
    # 12 Mbit in the 3 s after the warm-up.
    assert flow.report(is_complete=False) == "x: goodput 4.000 Mbit/s, 1500000 bytes in 3.000 s"


# ---- a run ----------------------------------------------------------------------------------

WITHOUT_DELAY = """
name = "without delay"
duration = "5s"
warm_up = "1s"
stack = "linux-6.12"
[[path]]
name = "left"
rate = "10Mbit/s"
delay = "0s"
limit = "40packets"
[[path]]
name = "right"
rate = "5Mbit/s"
delay = "0s"
limit = "40packets"
[[connection]]
name = "bulk"
workload = { kind = "bulk" }
"""


@pytest.mark.slow
def test_an_exported_script_has_the_goodput_of_virtual_time(tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text(script(WITHOUT_DELAY))
    if os.geteuid() != 0 or not Path("/proc/sys/net/mptcp/enabled").exists():
        pytest.skip("needs root, and a kernel with Multipath TCP")
    probe = subprocess.run(["ip", "netns", "add", "probe"], capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"no network namespaces: {probe.stderr.strip()}")
    subprocess.run(["ip", "netns", "delete", "probe"], check=True)
    done = subprocess.run(["bash", file], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    found = re.fullmatch(r"bulk: goodput ([\d.]+) Mbit/s, .*\n", done.stdout)
    assert found is not None, done.stdout
    expected = anabranch.run(write(tmp_path, WITHOUT_DELAY)).summary()["goodput_mbps"][0]
    assert float(found[1]) == pytest.approx(expected, rel=0.08)  # the bound of C2-two-paths
    assert "left-far" not in subprocess.run(["ip", "netns"], capture_output=True, text=True).stdout


def write(folder: Path, text: str) -> Path:
    file = folder / "scenario.toml"
    file.write_text(text)
    return file


# ---- Mininet scripts --------------------------------------------------------------------------


def imported(folder: Path, text: str) -> Imported:
    file = folder / "topology.py"
    file.write_text(text)
    return read(file)


def paths(of: _core.Scenario) -> dict[str, Any]:
    """The links of a scenario, by the name of their path."""
    keys = ("rate", "delay", "limit", "jitter", "jitter_model", "loss", "via", "reverse")
    return {
        path["name"]: {key: path[key] for key in keys if key in path}
        for path in of.settings["path"]
    }


def test_an_exported_mininet_script_has_the_same_links(tmp_path: Path) -> None:
    made = imported(tmp_path, script(PATHS, "mininet"))
    assert paths(made.scenario()) == paths(scenario(PATHS))
    assert [each.partition("understood: ")[2] for each in made.differences] == [
        "python3 ? server ? ?",
        "python3 ? client ? ?",
    ]


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_rates_and_delays_of_examples_survive_export_and_import(
    file: Path, tmp_path: Path
) -> None:
    original = loading.of_file(file)
    again = imported(tmp_path, export(original, "mininet").text).scenario()
    for one, other in zip(original.settings["path"], again.settings["path"], strict=True):
        assert one["delay"] == other["delay"]
        assert one.get("rate", other["rate"]) == other["rate"]


TWO_PATHS = """
import sys
from mininet.topo import Topo
from mininet.net import Mininet
from mininet.link import TCLink

class TwoPaths(Topo):
    def build(self, n=2, delay=20):
        h1, h2 = self.addHost('h1'), self.addHost('h2')
        for i in range(1, n + 1):
            s = self.addSwitch('s%d' % i)
            options = dict(bw=10 * i, delay=f'{delay // i}ms', max_queue_size=100, use_htb=True)
            self.addLink(h1, s, **options)
            self.addLink(s, h2, bw=100, delay='1ms')

def run():
    net = Mininet(topo=TwoPaths(n=2), link=TCLink)
    net.start()
    h1, h2 = net.get('h1', 'h2')
    h1.cmd('sysctl -w net.mptcp.mptcp_scheduler=roundrobin')
    h1.cmd('sysctl -w net.ipv4.tcp_congestion_control=olia; ip mptcp limits set subflow 2')
    h2.cmd('iperf3 -s -D')
    print(h1.cmd('iperf3 -c %s -t 30 -R > log' % h2.IP()))
    net.stop()

if __name__ == '__main__':
    run()
"""


def test_links_in_a_row_are_one_path(tmp_path: Path) -> None:
    made = imported(tmp_path, TWO_PATHS)
    assert made.differences == ()
    found = paths(made.scenario())
    # 20 ms and 1 ms. The 10 Mbit/s are the bottleneck. In 20 ms they send 16.7 packets, so that 17
    # of the 100 packets propagate; at 20 Mbit/s and 10 ms it is the same.
    for name, rate, delay in (("s1", "10Mbit/s", "21ms"), ("s2", "20Mbit/s", "11ms")):
        link = found[name]
        assert (link["rate"], link["delay"], link["limit"]) == (rate, delay, "83packets")


def test_iperf_and_sysctls_make_the_connection(tmp_path: Path) -> None:
    settings = imported(tmp_path, TWO_PATHS).scenario().settings
    (connection,) = settings["connection"]
    assert settings["duration"] == "30s"
    assert connection["direction"] == "download"
    assert connection["scheduler"]["kind"] == "round_robin"
    assert connection["congestion_control"] == "olia"
    assert connection["limits"] == {"subflows": 2}


SHARED = """
net = Mininet(link=TCLink)
c, d = net.addHost('c'), net.addHost('d')
s = [net.addSwitch(f's{i}') for i in range(4)]
net.addLink(c, s[0], bw=8, delay='5ms')
net.addLink(c, s[1], bw=4, delay='30ms')
net.addLink(s[0], s[2])
net.addLink(s[1], s[2])
net.addLink(s[2], s[3], bw=10, delay='2ms', max_queue_size=50)
net.addLink(s[3], d, delay='3ms', loss=1)
net.iperf((c, d), seconds=20)
"""


def test_links_that_routes_share_become_a_path_of_their_own(tmp_path: Path) -> None:
    made = imported(tmp_path, SHARED)
    found = paths(made.scenario())
    assert list(found) == ["s2", "s0", "s1"]
    assert found["s0"]["via"] == found["s1"]["via"] == "s2"
    # 2 ms at 10 Mbit/s are two packets of the 50.
    assert found["s2"]["limit"] == "48packets"
    assert (found["s2"]["delay"], found["s2"]["loss"]) == ("5ms", "1%")
    assert found["s2"]["reverse"]["loss"] == "1%"
    assert made.scenario().settings["connection"][0]["direction"] == "upload"


def test_routes_are_as_disjoint_as_possible(tmp_path: Path) -> None:
    # The shortest route from the first link crosses c, which the second one needs.
    made = imported(
        tmp_path,
        "net = Mininet(link=TCLink)\n"
        "h, g = net.addHost('h'), net.addHost('g')\n"
        "for name in 'abcde': net.addSwitch(name)\n"
        "for one, other in ('ha', 'hb', 'ac', 'bc', 'cg', 'ad', 'de', 'eg'):\n"
        "    net.addLink(one, other, bw=1, delay='1ms')\n",
    )
    found = paths(made.scenario())
    assert {name: link["delay"] for name, link in found.items()} == {"a": "4ms", "b": "3ms"}


def test_each_end_of_a_link_may_have_its_own_settings(tmp_path: Path) -> None:
    made = imported(
        tmp_path,
        "class T(Topo):\n"
        "    def __init__(self):\n"
        "        Topo.__init__(self)\n"
        "        self.addHost('a'); self.addHost('r', cls=LinuxRouter); self.addHost('b')\n"
        "        self.addLink('a', 'r', cls1=TCIntf, cls2=TCIntf, params1={'bw': 1},\n"
        "                     params2={'bw': 20, 'delay': '500us'})\n"
        "        self.addLink('r', 'b')\n"
        "topos = {'t': lambda: T()}\n",
    )
    (link,) = paths(made.scenario()).values()
    # The first interface sends from a, the client.
    assert (link["rate"], link["delay"]) == ("20Mbit/s", "500us")
    assert (link["reverse"]["rate"], link["reverse"]["delay"]) == ("1Mbit/s", "0s")


def test_lines_that_are_not_understood_are_listed(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "topology.py"
    file.write_text(
        TWO_PATHS.replace(
            "    net.stop()\n",
            "    if 'FAST' in os.environ:\n"
            "        net.addLink(h1, h2)\n"
            "    h1.cmd('tc qdisc change dev h1-eth0 root netem loss 1%')\n"
            "    net.configLinkStatus('h1', 's1', 'down')\n"
            "    h1.intf('h1-eth0').config(bw=5)\n"
            "    h1.cmd('sysctl -w net.ipv4.tcp_fastopen=3')\n",
        )
    )
    assert run_command(["import", str(file)]) == 0
    out, err = capsys.readouterr()
    words = [
        "24: not understood: if 'FAST' in os.environ:",
        "26: not understood: tc qdisc change dev h1-eth0 root netem loss 1%",
        "27: not understood: net.configLinkStatus('h1', 's1', 'down')",
        "28: not understood: h1.intf('h1-eth0').config(bw=5)",
        "29: not understood: sysctl -w net.ipv4.tcp_fastopen=3",
    ]
    assert err.splitlines() == [f"anabranch: {file}:{each}" for each in words]
    assert all(f"# * line {each}" in out for each in words)


def test_unknown_values_are_not_guessed(tmp_path: Path) -> None:
    text = SHARED.replace("bw=8", "bw=float(os.environ['BW'])").replace("TCLink", "Link")
    assert [each.partition(".py:")[2] for each in imported(tmp_path, text).differences] == [
        "5: not understood: bw of the link c–s0",
        "5: Mininet ignores bw without TCLink; the scenario has it",
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "for each in irange(1, count): net.addHost('x')",
        "[net.addHost(each) for each in names()]",
        "{net.addHost('x') for _ in range(2)}",
        "with net as net: print(net.addHost('x') for _ in range(2))",
        "while is_open(): net.addHost('x')",
    ],
)
def test_parts_that_are_not_evaluated_are_listed(statement: str, tmp_path: Path) -> None:
    (line,) = imported(tmp_path, f"{SHARED}{statement}\n").differences
    text = line.partition("not understood: ")[2]
    assert "addHost" in text
    assert text in statement


def test_what_follows_too_many_statements_is_listed(tmp_path: Path) -> None:
    loop = "for i in range(10 ** 5):\n    i = i\n    i = i\n"
    (line,) = imported(tmp_path, f"{SHARED}{loop}c.cmd('tc')\n").differences
    assert line.endswith(":15: not understood: c.cmd('tc')")


def test_a_queue_that_the_delay_fills_is_reported(tmp_path: Path) -> None:
    # 100 ms at 10 Mbit/s are 83.3 packets.
    made = imported(tmp_path, SHARED.replace("delay='2ms'", "delay='100ms'"))
    (line,) = made.differences
    assert "max_queue_size=50 is below the 84 packets that propagate" in line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "0 hosts; name a script that adds two"),
        ("net = Mininet()\nnet.addHost('a')\nnet.addHost('b')\n", "no links join a and b"),
        ("net = (\n", r"topology.py:1: not Python"),
        ("while True:\n    net.addHost('a')\n", r"0 hosts.* \(line 1: not understood: while True"),
        ("def f(): return f()\nf()\nfor i in range(10 ** 9): pass\n", "0 hosts"),
    ],
)
def test_scripts_without_a_topology_are_refused(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        imported(tmp_path, text)


def test_the_example_has_a_shared_link() -> None:
    made = anabranch.from_mininet(ROOT / "examples/mininet_topology.py")
    assert made.differences == ()
    assert paths(made.scenario())["lte"]["via"] == "access"


def test_the_program_needs_only_the_standard_library() -> None:
    program = ROOT / "python/anabranch/exchange/traffic.py"
    done = subprocess.run([sys.executable, "-I", program], capture_output=True, text=True)
    assert "IndexError" in done.stderr  # for lack of arguments, after all imports
