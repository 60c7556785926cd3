"""Goodput of exported scripts, of the same Linux over the emulated links, and in virtual time.

    python studies/exported.py [--json docs/results/live.json]

Needs root's tools ip, tc and sysctl, and the kernel that `make linux-vm` builds. Linux runs in that
machine, in which time stands still while anything computes, so the host's load does not matter.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
from pathlib import Path
from typing import Any

from measured import update

from anabranch import _core
from anabranch.exchange.export import export
from anabranch.live import vm
from anabranch.live.hosts import LINUX_VM, Hosts
from anabranch.live.run import run_once
from anabranch.results.metrics import connection_rows
from anabranch.runs.run import run_scenario
from anabranch.scenarios import loading

SEEDS = (1, 2, 3)

BASE = """
name = "exported"
duration = "10s"
warm_up = "1s"
stack = "linux-6.12"
[[path]]
name = "core"
rate = "10Mbit/s"
delay = "5ms"
limit = "50packets"
[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "54packets"
[[path]]
name = "lte"
rate = "5Mbit/s"
delay = "30ms"
limit = "60packets"
[[connection]]
name = "bulk"
paths = ["wifi", "lte"]
workload = { kind = "bulk" }
"""

Settings = dict[str, Any]

CASES: dict[str, Settings] = {
    "8 + 5 Mbit/s, 10 and 30 ms": {},
    "upload": {"connection.bulk.direction": "upload"},
    "one path, TCP": {"connection.bulk.protocol": "tcp", "connection.bulk.paths": ["wifi"]},
    "60 + 5 Mbit/s": {"path.wifi.rate": "60Mbit/s", "path.wifi.limit": "200packets"},
    "shared bottleneck of 10 Mbit/s": {"path.wifi.via": "core", "path.lte.via": "core"},
    "0.5 % of losses on one path": {"path.wifi.loss": "0.5%"},
    "jitter of 4 ms on one path": {"path.wifi.jitter": "4ms"},
    "CoDel on one path": {"path.wifi.queue": {"kind": "codel"}},
    "RED on one path": {"path.wifi.queue": {"kind": "red"}},
    "transfer of 2 MB": {"connection.bulk.workload": {"kind": "bulk", "size": "2MB"}},
    "8, then 3 Mbit/s": {"path.wifi.change": [{"at": "5s", "rate": "3Mbit/s"}]},
}

_INIT = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/run
mount -t proc proc /proc && mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /tmp && mkdir /run/folder
mount -t hostfs none /run/folder -o '{folder}'
bash /run/folder/run.sh >/run/folder/printed 2>&1
sync
exec python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321FEDC)'
"""


def exported(scenario: _core.Scenario, seed: int) -> float:
    """Goodput in Mbit/s that the scenario's script for tc prints in the virtual machine."""
    with tempfile.TemporaryDirectory(prefix="anabranch-vm-") as name:
        folder = Path(name)
        (folder / "run.sh").write_text(export(scenario, "tc").text)
        vm.boot(vm.kernel(), folder, seed, _INIT.format(folder=folder))
        printed = (folder / "printed").read_text()
    found = re.search(r"goodput ([\d.]+)", printed)
    if found is None:
        raise RuntimeError(printed)
    return float(found[1])


def emulated(scenario: _core.Scenario, seed: int) -> float:
    """Goodput in Mbit/s of Linux in the virtual machine, over the emulated links."""
    made, _ = run_once(scenario, seed, Hosts(machine=LINUX_VM))
    return float(connection_rows(made)[0]["goodput_mbps"])


def virtual(scenario: _core.Scenario, seed: int) -> float:
    """Goodput in Mbit/s in virtual time."""
    return float(connection_rows(run_scenario(scenario, seed))[0]["goodput_mbps"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="File of results whose rows are replaced.")
    arguments = parser.parse_args()
    rows = []
    for name, settings in CASES.items():
        scenario = loading.of_text(BASE, "exported", settings=settings)
        values = [
            statistics.median(measure(scenario, seed) for seed in SEEDS)
            for measure in (virtual, emulated, exported)
        ]
        rows.append([name, *(f"{each:.2f}" for each in values)])
        print(*rows[-1], sep="  ", flush=True)
    if arguments.json is not None:
        update(arguments.json, "exported", rows, "python studies/exported.py")


if __name__ == "__main__":
    main()
