"""Gain from a second worker: the runs per second of one sweep with two workers, and of two sweeps
with one worker each, at the same time, in turns. Run by `.venv/bin/python bench/workers.py`; quiet
machines only. `--many 100000` times one sweep of that many tiny runs instead.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
ANABRANCH = [sys.executable, "-P", "-m", "anabranch"]
ROUNDS = 5
LENGTHS = {"tiny (1 s)": ("1s", "0s", 3000), "long (20 s)": ("20s", "5s", 400)}
"""Duration, warm-up, and runs of a sweep, each of which takes seconds."""


def plan(folder, duration, warm_up, runs):
    """A sweep over WiFi and 3G, with nothing else to do than its runs."""
    scenario = (ROOT / "examples/wifi_3g.toml").read_text()
    for key, value in {"duration": duration, "warm_up": warm_up}.items():
        lines = [line for line in scenario.splitlines() if not line.startswith(f"{key} ")]
        scenario = "\n".join([f'{key} = "{value}"', *lines])
    (folder / "wifi_3g.toml").write_text(scenario)
    file = folder / f"{runs}.toml"
    head = f'name = "workers"\nscenario = "wifi_3g.toml"\nseeds = {runs}\n'
    file.write_text(
        head + '[factors]\nscheduler = { keys = ["connection.download.scheduler"], '
        'values = ["min_rtt"] }\n'
    )
    return file


def seconds(sweeps):
    """Wall time of sweeps at the same time: pairs of processors and plan."""
    with tempfile.TemporaryDirectory() as out:
        started = time.perf_counter()
        processes = [
            subprocess.Popen(
                [*ANABRANCH, "sweep", file, "--out", f"{out}/{number}"],
                preexec_fn=lambda cores=cores: os.sched_setaffinity(0, cores),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for number, (cores, file) in enumerate(sweeps)
        ]
        assert all(process.wait() == 0 for process in processes)
        return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--many", type=int, help="Time one sweep of that many tiny runs.")
    many = parser.parse_args().many
    first, second = sorted(os.sched_getaffinity(0))[:2]
    for name, (duration, warm_up, runs) in LENGTHS.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            if many:
                wall = seconds([({first, second}, plan(folder, duration, warm_up, many))])
                print(f"{many:,} runs of {duration}: {wall:.0f} s, {many / wall:,.0f} a second")
                return
            half, whole = (plan(folder, duration, warm_up, count) for count in (runs // 2, runs))
            ratios = []
            for _ in range(ROUNDS):
                apart = seconds([({first}, half), ({second}, half)])
                together = seconds([({first, second}, whole)])
                ratios.append(apart / together)
                print(
                    f"{name}: {runs / apart:,.0f} runs a second apart, "
                    f"{runs / together:,.0f} together: {apart / together:.2f}",
                    flush=True,
                )
            print(f"{name}: median {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
