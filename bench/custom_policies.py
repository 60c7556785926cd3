"""Cost of policies written in Python: CPU time of the two-path benchmark, built in and written
again in Python, in turns. Run by `.venv/bin/python bench/custom_policies.py`; quiet machines only.
"""

import statistics
import time
from pathlib import Path

from anabranch import _core
from anabranch.scenarios import loading

ROOT = Path(__file__).parents[1]
SCENARIO = (ROOT / "bench/scenarios/mptcp-2x100.toml").read_text()
RUNS = 9

CASES = {
    "scheduler": ("min_rtt", "my_scheduler.py:LowestRtt"),
    "congestion_control": ("new_reno", "my_congestion_control.py:NewReno"),
}


def cpu_seconds(scenario):
    started = time.process_time()
    digest = _core.run(scenario, 1)["digest"]
    return time.process_time() - started, digest


def compare(kind, name, location):
    built_in, named = (
        loading.of_text(
            SCENARIO.replace("[[connection]]", f'[[connection]]\n{kind} = "{policy}"'),
            "bench",
            ROOT / "examples",
        )
        for policy in (name, location)
    )
    ratios = []
    for _ in range(RUNS):
        built_in_s, expected = cpu_seconds(built_in)
        named_s, digest = cpu_seconds(named)
        assert digest == expected, "the two are not the same policy"
        ratios.append(named_s / built_in_s)
    print(f"{kind} {name} in Python: {statistics.median(ratios):.2f} times the CPU time")


if __name__ == "__main__":
    for kind, (name, location) in CASES.items():
        compare(kind, name, location)
