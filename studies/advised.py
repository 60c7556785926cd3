"""Frequency with which advice for Linux helps Linux itself.

    python studies/advised.py --from 1001 --count 12 --for throughput

draws scenarios with two paths, asks for advice, and runs each with the kernel at both ends,
before and after, in the virtual machine of `make linux-vm`. It prints the tables of
docs/results/advise.md, and ``--json docs/results/advise.json`` replaces the rows of a table.
Seeds below 1000 were used while the command was built, and those from 1001 on judge it.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
from measured import update

from anabranch import _core
from anabranch.advice import goals, search
from anabranch.advice.goals import GOALS
from anabranch.live.hosts import LINUX_VM, Hosts
from anabranch.live.run import run_in_time
from anabranch.results.estimates import number

FIRST_JUDGED = 1001
COUNT = 12
_SECONDS = 20
_SEEDS = (1, 2)


def draw(seed: int) -> _core.Scenario:
    """A scenario as Linux runs it: two paths that may differ by a factor of 30, and any buffers."""
    draws = random.Random(f"advised {seed}")

    def between(low: float, high: float) -> float:
        return float(f"{low * (high / low) ** draws.random():.3g}")

    def path(name: str) -> dict[str, Any]:
        rate, delay, queue = between(1, 30), between(2, 80), between(20, 400)
        loss = between(0.01, 1) if draws.random() < 0.25 else 0
        return {
            "name": name, "rate": f"{rate}Mbit/s", "delay": f"{delay}ms", "limit": f"{queue}ms",
            "loss": f"{loss}%",
        }  # fmt: skip

    buffers = f"{round(between(60, 2000))}kB"
    fixed = {"send_buffer": buffers, "receive_buffer": buffers} if draws.random() < 0.7 else {}
    connection = {
        "name": "main",
        "host": {"kind": "linux", "buffers": "socket"},
        "congestion_control": "cubic_linux",
        "scheduler": "linux",
        **fixed,
        "workload": {"kind": "blocks", "block_size": "8KiB"},
    }
    table = {
        "name": f"advised-{seed}",
        "duration": f"{_SECONDS}s",
        "warm_up": "3s",
        "path": [path("a"), path("b")],
        "connection": [connection],
    }
    return _core.Scenario.of(table, f"advised-{seed}")


def in_kernel(scenario: _core.Scenario, aims: goals.Goals) -> np.ndarray[Any, Any]:
    """Goodput, delay and pause of the kernel: medians over seeds."""
    hosts = Hosts(machine=LINUX_VM)
    values = [
        [
            goals.measured(run_in_time(variant, seed, hosts)[0])
            for variant in goals.variants(scenario, aims)
        ]
        for seed in _SEEDS
    ]
    return np.median(goals.of_variants(np.array(values)), axis=0)


def row(seed: int, aims: goals.Goals) -> tuple[list[str], float, float]:
    """A row of the table, and the improvement as predicted and with the kernel."""
    scenario = draw(seed)
    advices, _ = search.advise(scenario, aims, range(1, 6))
    advice = advices[0]
    now, best = (in_kernel(each.scenario, aims) for each in (advice.now, advice.advised))
    gain = float(goals.gains(aims, best[None], now[None])[0])
    cells = [str(seed), advice.advised.words]
    for index, goal in enumerate(GOALS.values()):
        if goal.name in aims:
            for predicted, measured in ((advice.now, now), (advice.advised, best)):
                value = predicted.values[goal.key]
                cells.append("–" if value is None else number(value.value))
                cells.append(number(float(measured[index])))
    predicted_gain = advice.advised.gain.value
    cells += [f"{predicted_gain:.2f}", f"{gain:.2f}"]
    return cells, predicted_gain, gain


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--from", dest="first", type=int, default=FIRST_JUDGED, metavar="SEED")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--for", dest="aims", default="throughput", help="goals, as of advise")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Replace the rows of the result.")
    chosen = parser.parse_args()
    aims = goals.parsed([chosen.aims])
    columns = "now | kernel | advice | kernel"
    shown = " | ".join(f"{columns} ({goal.words})" for goal in GOALS.values() if goal.name in aims)
    print(f"| seed | advice | {shown} | improvement × | kernel |")
    print("|---" * (4 + 4 * len(aims)) + "|")
    gains, rows = [], []
    for seed in range(chosen.first, chosen.first + chosen.count):
        cells, predicted, gain = row(seed, aims)
        rows.append(cells)
        print(f"| {' | '.join(cells)} |", flush=True)
        gains.append((predicted, gain))
    changed = [pair for pair in gains if pair[0] != 1]
    better = sum(gain > 1 for _, gain in changed)
    count = f"{len(changed)} of {len(gains)} scenarios"
    print(f"\nThe advice changes {count}; the kernel is better with it in {better}.")
    errors = [abs(gain / predicted - 1) for predicted, gain in changed]
    if errors:
        print(f"Improvement, kernel / predicted: median deviation {np.median(errors):.1%}, worst "
              f"{max(errors):.1%}")  # fmt: skip
    if chosen.json:
        name = "two-goals" if len(aims) > 1 else chosen.aims
        update(chosen.json, name, rows, f"python {' '.join(sys.argv)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
