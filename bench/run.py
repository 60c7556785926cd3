"""Time the benchmark scenarios, one process each, and optionally other simulators on theirs.

python3 bench/run.py [--runs N] [--smoke] [--peers]

Writes target/bench.json: per scenario the median run's figures. CPU seconds are user + system
time of the whole process; only ratios measured in one sitting count (single timings on shared
machines differ by 10 to 25 %). Where valgrind is installed, it counts instructions and misses of
the first-level caches. These figures do not depend on the load of the machine.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "target/release/anabranch-bench"
PEERS = ROOT / "target/bench"
"""Folder of the program for ns-3, which takes a number of paths and of seconds."""
SCENARIOS = {"tcp-1x100": 1, "mptcp-2x100": 2}
FIRST_STEP = 280_000
COUNTED_S = 2
"""Virtual duration of the runs whose instructions are counted."""
MODULES = [
    "core",
    "network",
    "internet",
    "point-to-point",
    "applications",
    "traffic-control",
]
PROGRAMS = {"htsim": "ANABRANCH_HTSIM", "picoquic": "ANABRANCH_PICOQUIC"}
"""Simulators that may be here already, and the environment variable that names the program of each.

The program takes a number of paths and of seconds, and simulates a bulk transfer over that many
paths of 100 Mbit/s with 10 ms in each direction and queues of 100 packets. Its last line is JSON
with `segments_per_cpu_s`: data packets delivered per second of user and system time.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="runs of each, taken in turns")
    parser.add_argument("--smoke", action="store_true", help="fail below the promised speed")
    parser.add_argument("--peers", action="store_true", help="run other simulators in turns")
    arguments = parser.parse_args()
    peers = dict(filter(None, [build_ns3(), *programs()])) if arguments.peers else {}
    print(f"processor: {processor()}")
    results: dict = {"processor": processor()}
    for scenario, paths in SCENARIOS.items():
        engine: list[dict] = []
        others: dict[str, list[dict]] = {name: [] for name in peers}
        for _ in range(arguments.runs):
            engine.append(run([BENCH, ROOT / f"bench/scenarios/{scenario}.toml"]))
            for name, program in peers.items():
                others[name].append(run([program, paths, 60]))
        results[scenario] = median_run(engine)
        if has_valgrind() and not arguments.smoke:
            results[scenario] |= counts(scenario)
        report(scenario, results[scenario], others)
    output = ROOT / "target/bench.json"
    output.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written: {output.relative_to(ROOT)}")
    return check(results) if arguments.smoke else 0


def run(command: list) -> dict:
    done = subprocess.run([str(part) for part in command], check=True, capture_output=True)
    # Other simulators may print lines before the figures.
    return json.loads(done.stdout.splitlines()[-1])


def median_run(runs: list[dict]) -> dict:
    return sorted(runs, key=lambda figures: figures["segments_per_cpu_s"])[len(runs) // 2]


def report(scenario: str, figures: dict, others: dict[str, list[dict]]) -> None:
    print(
        f"{scenario}: {figures['segments_per_cpu_s'] / 1e3:.0f} k data segments per CPU s, "
        f"{figures['simulated_s_per_cpu_s']:.0f} simulated s per CPU s, "
        f"{figures['peak_rss_bytes'] / 2**20:.1f} MiB peak, "
        f"{figures['acks'] / figures['segments']:.2f} acknowledgements per data segment"
    )
    if "instructions" in figures:
        print(
            f"  {figures['instructions']:,.0f} instructions per data segment, "
            f"{figures['instruction_misses']:.0f} misses of the instruction cache, "
            f"{figures['data_misses']:.0f} of the data cache"
        )
    for peer, runs in others.items():
        rate = statistics.median(each["segments_per_cpu_s"] for each in runs)
        print(
            f"  {peer}: {rate / 1e3:.1f} k data segments per CPU s; "
            f"ratio {figures['segments_per_cpu_s'] / rate:.2g}"
        )


def processor() -> str:
    """The name of this machine's processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def has_valgrind() -> bool:
    return shutil.which("valgrind") is not None


def counts(scenario: str) -> dict[str, float]:
    """Instructions and misses of 32 KiB first-level caches per data segment, without set-up."""
    toml = (ROOT / f"bench/scenarios/{scenario}.toml").read_text()
    (few, before), (many, after) = (
        cachegrind(re.sub('duration = "60s"', f'duration = "{seconds}s"', toml))
        for seconds in (COUNTED_S, 2 * COUNTED_S)
    )
    return {name: (after[name] - before[name]) / (many - few) for name in after}


def cachegrind(toml: str, caches: bool = True) -> tuple[int, dict[str, int]]:
    """The number of delivered data segments of a run, and what it cost."""
    command = ["valgrind", "--tool=cachegrind", "--cachegrind-out-file=/dev/null"]
    command += ["--I1=32768,8,64", "--D1=32768,8,64"] if caches else ["--cache-sim=no"]
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(toml)
        file.flush()
        done = subprocess.run(
            [*command, BENCH, file.name], check=True, capture_output=True, text=True
        )
    names = {
        "instructions": "I +refs",
        "instruction_misses": "I1 +misses",
        "data_misses": "D1 +misses",
    }
    found = {name: re.search(rf"{label}: +([\d,]+)", done.stderr) for name, label in names.items()}
    costs = {name: int(match[1].replace(",", "")) for name, match in found.items() if match}
    return json.loads(done.stdout)["segments"], costs


def check(results: dict) -> int:
    """The floors that every machine of the last ten years clears with room to spare."""
    slow = {name for name in SCENARIOS if results[name]["segments_per_cpu_s"] < FIRST_STEP}
    large = {name for name in SCENARIOS if results[name]["peak_rss_bytes"] > 20 * 2**20}
    for name in slow:
        print(f"{name}: below {FIRST_STEP} data segments per CPU s", file=sys.stderr)
    for name in large:
        print(f"{name}: above 20 MiB", file=sys.stderr)
    return 1 if slow or large else 0


Peer = tuple[str, Path]
"""Name and version of another simulator, and our program for it."""


def build_ns3() -> Peer | None:
    """Build the program against Debian's libns3-dev, and install that if it is missing.

    None, with the reason printed, where that is not possible.
    """
    version = ns3_version()
    if version is None and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-q", "libns3-dev", "pkg-config"], check=False)
        version = ns3_version()
    if version is None:
        print("skipped: ns-3 is not here; it is Debian's package libns3-dev", file=sys.stderr)
        return None
    libraries = [f"-lns3-{module}" for module in MODULES]
    return f"ns-{version} (Debian's libns3-dev)", compiled("ns3-bulk", ["-std=c++17"], libraries)


def programs() -> list[Peer]:
    """The simulators that the environment names. The reason is printed where one is missing."""
    found = []
    for name, variable in PROGRAMS.items():
        program = os.environ.get(variable)
        if program is None:
            print(f"skipped: {variable} names no program of {name}", file=sys.stderr)
        elif not os.access(program, os.X_OK):
            print(f"skipped: {variable}: {program} is not a program", file=sys.stderr)
        else:
            found.append((name, Path(program)))
    return found


def compiled(name: str, options: list[str], libraries: list[str]) -> Path:
    PEERS.mkdir(parents=True, exist_ok=True)
    source, program = ROOT / f"bench/{name}.cc", PEERS / name
    command = ["g++", "-O3", *options, source, "-o", program, *libraries]
    subprocess.run([str(part) for part in command], check=True)
    return program


def ns3_version() -> str | None:
    """Of the installed library, such as 3.37; None where there is none."""
    if not shutil.which("pkg-config"):
        return None
    command = ["pkg-config", "--modversion", "ns3-core"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


if __name__ == "__main__":
    sys.exit(main())
