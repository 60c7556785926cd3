"""BBR of this host's Linux, in real time, compared with virtual time.

    python studies/bbr.py [--json docs/results/calibration.json]

Needs root, and a kernel with the congestion control bbr. Takes six minutes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measured import update

from anabranch import _core
from anabranch.scenarios import loading

SEEDS = (1, 2, 3)

TCP = {"protocol": "tcp"}
SMALL = {"send_buffer": "200KiB", "receive_buffer": "200KiB"}

Link = dict[str, Any]


def path(name: str, rate: float, delay_ms: float, packets: int, **more: Any) -> Link:
    """A path with the same link in both directions."""
    link = {"rate": f"{rate:g}Mbit/s", "delay": f"{delay_ms:g}ms", "limit": f"{packets}packets"}
    return {"name": name, **link, **more}


WIFI, CELLULAR = path("wifi", 8, 10, 54), path("cellular", 2, 75, 334)

CASES: dict[str, tuple[list[Link], dict[str, Any]]] = {
    "10 Mbit/s, 40 ms, queue of 200": ([path("a", 10, 20, 200)], TCP),
    "10 Mbit/s, 40 ms, queue of 15": ([path("a", 10, 20, 15)], TCP),
    "20 Mbit/s, 40 ms, 1 % of losses": ([path("a", 20, 20, 70, loss="1%")], TCP),
    "1 Mbit/s, 120 ms": ([path("a", 1, 60, 50)], TCP),
    "20 Mbit/s, 60 ms, buffers of 200 KiB": ([path("a", 20, 30, 100)], TCP | SMALL),
    "10 + 10 Mbit/s, 30 and 50 ms": ([path("a", 10, 15, 60), path("b", 10, 25, 60)], {}),
    "8 + 2 Mbit/s, 20 and 150 ms": ([WIFI, CELLULAR], {}),
    "8 + 2 Mbit/s, buffers of 200 KiB": ([WIFI, CELLULAR], SMALL),
}


def scenario(paths: list[Link], keys: dict[str, Any]) -> _core.Scenario:
    """A scenario of `CASES`."""
    connection = {"name": "bulk", "stack": "linux-6.12", "congestion_control": "bbr"}
    connection |= {"workload": {"kind": "bulk"}} | keys
    table = {"name": "bbr", "duration": "12s", "path": paths, "connection": [connection]}
    return loading.of_table(table, "bbr")


def goodput(made: _core.Scenario, *live: str) -> float:
    """Median goodput in Mbit/s over the seeds."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "bbr.toml")
        file.write_text(made.to_toml())
        command = [sys.executable, "-m", "anabranch", "run", str(file), "--json", *live]
        printed = [
            subprocess.run([*command, "--seed", str(seed)], capture_output=True, check=True).stdout
            for seed in SEEDS
        ]
    values = [json.loads(each)["connections"][0]["goodput_mbps"] for each in printed]
    return float(statistics.median(values))


def main() -> None:
    """Run, print and perhaps record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="File of results whose rows are replaced.")
    arguments = parser.parse_args()
    rows = []
    for name, case in CASES.items():
        made = scenario(*case)
        engine, kernel = goodput(made), goodput(made, "--live")
        off = 100 * (engine / kernel - 1)
        rows.append([name, f"{kernel:.3g}", f"{engine:.3g}", f"{off:+.1f} %".replace("-", "−")])
        print(*rows[-1], sep="  ", flush=True)
    if arguments.json is not None:
        update(arguments.json, "bbr", rows, "python studies/bbr.py")


if __name__ == "__main__":
    main()
