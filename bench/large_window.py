"""Cost of a segment as windows grow: segments per CPU second over 0.3 + 1 + 10 Gbit/s with the
round-trip times and buffers of veerman12-unscaled, and with a tenth and a hundredth of them, in
turns. Run by `.venv/bin/python bench/large_window.py`; quiet machines only.
"""

import statistics
import time

from anabranch import Scenario, run
from anabranch.gallery.shared.veerman12 import connection, link

RUNS = 5
SECONDS = 10
BUFFERS_MB = {1: 570, 10: 57, 100: 5.7}


def scenario(shorter):
    rates = {"small": (0.3, 35), "large": (1, 35), "far": (10, 202)}
    paths = [link(name, gbps, rtt / shorter, scale=1) for name, (gbps, rtt) in rates.items()]
    return Scenario(
        name=f"round-trip times / {shorter}",
        duration=f"{SECONDS}s",
        paths=tuple(paths),
        connections=(connection("main", BUFFERS_MB[shorter], scale=1),),
    )


def segments_per_cpu_second(shorter):
    started = time.process_time()
    made = run(scenario(shorter))
    return made.segments / (time.process_time() - started)


if __name__ == "__main__":
    turns = [{each: segments_per_cpu_second(each) for each in BUFFERS_MB} for _ in range(RUNS)]
    for shorter, megabytes in BUFFERS_MB.items():
        speeds = [turn[shorter] / 1e6 for turn in turns]
        print(
            f"{megabytes} MB: {statistics.median(speeds):.2f} million segments per CPU second "
            f"({min(speeds):.2f} to {max(speeds):.2f})"
        )
