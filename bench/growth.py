"""Measure how the cost of a segment grows with connections, subflows, windows and length.

python3 bench/growth.py [--smoke] [--json docs/results/performance.json]

Prints instructions per delivered data segment and writes them to target/growth.json. Valgrind
counts the instructions, so the load of the machine does not matter. Each figure is the difference
of a longer and a shorter run, which excludes the set-up. --json replaces the rows of the results.
With --smoke, the program measures one and a thousand connections, and fails if the thousand cost
more than 1.3 times as much.
"""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from run import ROOT, cachegrind, has_valgrind

sys.path.insert(0, str(ROOT / "studies"))
from measured import update

MOST_GROWTH = 1.3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="compare 1 and 1,000 connections")
    parser.add_argument("--json", type=Path, metavar="FILE", help="replace the rows of the results")
    arguments = parser.parse_args()
    smoke = arguments.smoke
    if not has_valgrind():
        print("skipped: counting instructions needs valgrind", file=sys.stderr)
        return 0
    curves = {"connections": (connections, (1, 1000))} if smoke else CURVES
    found = {name: curve(name, *each) for name, each in curves.items()}
    if smoke:
        one, thousand = found["connections"].values()
        return int(thousand > MOST_GROWTH * one)
    output = ROOT / "target/growth.json"
    output.write_text(json.dumps(found, indent=2) + "\n")
    print(f"written: {output.relative_to(ROOT)}")
    if arguments.json:
        for name, costs in found.items():
            update(arguments.json, name, rows(name, costs), "python3 bench/growth.py")
    return 0


def rows(name: str, costs: dict[int, float]) -> list[list[str]]:
    """The rows of a result: value, instructions, and for some the cost relative to the first."""
    first = next(iter(costs.values()))
    return [
        [f"{value:,}", f"{cost:,.0f}", *([f"{cost / first:.2f}"] if name in RELATIVE else [])]
        for value, cost in costs.items()
    ]


def curve(name: str, scenario, values: tuple) -> dict[int, float]:
    """Instructions per data segment for each value."""
    with ThreadPoolExecutor(2) as pool:
        costs = dict(
            zip(values, pool.map(lambda value: cost(*scenario(value)), values), strict=True)
        )
    for value, instructions in costs.items():
        ratio = instructions / costs[values[0]]
        print(
            f"{name} {value:,}: {instructions:,.0f} instructions per data segment ({ratio:.2f} x)"
        )
    return costs


def cost(toml: str, shorter: float, longer: float) -> float:
    """Instructions per data segment between two durations, in seconds."""
    (few, before), (many, after) = (
        cachegrind(f'duration = "{seconds}s"\n{toml}', caches=False)
        for seconds in (shorter, longer)
    )
    return (after["instructions"] - before["instructions"]) / (many - few)


def connections(count: int) -> tuple[str, float, float]:
    """TCP connections of 1 Mbit/s each that share a link. They start within the first second."""
    link = path("a", f"{count * 1.25}Mbit/s", "10ms", f"{100 + 20 * count}packets")
    each = "".join(
        f'[[connection]]\nname = "c{number}"\nprotocol = "tcp"\ndirection = "upload"\n'
        f'start = "{number * 1_000_000 // count}us"\n'
        '[connection.workload]\nkind = "cbr"\nrate = "1Mbit/s"\nblock_size = "2896B"\n'
        for number in range(count)
    )
    return head("connections") + link + each, 2, 2 + max(0.5, 100 / count)


def subflows(count: int) -> tuple[str, float, float]:
    """Bulk data over this number of paths, which have 100 Mbit/s together."""
    rate = f"{100 / count}Mbit/s"
    paths = "".join(path(f"p{number}", rate, "10ms", "100packets") for number in range(count))
    return head("subflows") + paths + BULK, 5, 15


def windows(delay_ms: int) -> tuple[str, float, float]:
    """Bulk data over a path of 100 Mbit/s with this one-way delay in ms."""
    # The queue holds a bandwidth-delay product of 1,500-byte packets.
    link = path("a", "100Mbit/s", f"{delay_ms}ms", f"{max(20, 17 * delay_ms)}packets")
    return head("windows") + link + BULK, 20, 30


def lengths(start_s: int) -> tuple[str, float, float]:
    """Bulk data over a path of 100 Mbit/s, measured from this second on."""
    return (
        head("lengths") + path("a", "100Mbit/s", "10ms", "100packets") + BULK,
        start_s,
        start_s + 10,
    )


def head(name: str) -> str:
    return f'name = "{name}"\nsample_interval = "1000s"\n'


def path(name: str, rate: str, delay: str, limit: str) -> str:
    return f'[[path]]\nname = "{name}"\nrate = "{rate}"\ndelay = "{delay}"\nlimit = "{limit}"\n'


BULK = (
    '[[connection]]\ndirection = "upload"\nsend_buffer = "20MB"\nreceive_buffer = "20MB"\n'
    '[connection.workload]\nkind = "bulk"\n'
)
RELATIVE = ("connections", "subflows")
CURVES = {
    "connections": (connections, (1, 10, 100, 1000, 10_000)),
    "subflows": (subflows, (1, 2, 4, 8, 16)),
    "windows": (windows, (1, 10, 100, 300)),
    "lengths": (lengths, (5, 20, 60)),
}

if __name__ == "__main__":
    sys.exit(main())
