"""Divide the instructions of a data segment among the causes of the cost.

python3 bench/causes.py [--json docs/results/performance.json]

Valgrind counts the instructions of each source file. Code of the standard library that the compiler
has put into a function belongs to the file of the code before it. The difference of a longer and a
shorter run excludes the set-up. --json replaces the rows of the result.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from run import BENCH, COUNTED_S, ROOT, has_valgrind

sys.path.insert(0, str(ROOT / "studies"))
from measured import update

SCENARIO = ROOT / "bench/scenarios/mptcp-2x100.toml"
CAUSES = {
    "links: queues, serialisation, delay, routes": ["net/"],
    "run loop, applications, digest": ["sim/", "bench/"],
    "segments: fields, options, payload, memory": ["wire/"],
    "endpoint: connection of a segment, due connections": ["proto/src/endpoint/"],
    "received segments: checks, mappings, short way": [
        *(f"proto/src/connection/{it}" for it in ("input", "mapping", "prediction", "checksum")),
        *(f"proto/src/subflow/{it}" for it in ("input", "prediction", "handshake")),
    ],
    "received data: order, delayed acknowledgements": [
        "proto/src/reassembly", "proto/src/connection/recv", "proto/src/subflow/receiver",
    ],
    "acknowledgements: scoreboard, RTT, loss detection": [
        "proto/src/rtt",
        *(f"proto/src/subflow/{it}" for it in ("ack", "scoreboard", "recovery", "send_window")),
    ],
    "congestion control": ["proto/src/congestion/", "proto/src/subflow/congestion"],
    "choosing: what to send, and over which subflow": [
        "proto/src/scheduler/",
        *(f"proto/src/connection/{it}" for it in ("transmit", "schedul", "outbox")),
    ],
    "building segments": ["proto/src/subflow/output", "proto/src/subflow/full_segment"],
    "send queue": ["proto/src/connection/send"],
    "windows and buffers": ["proto/src/platform/", "proto/src/connection/buffers"],
    "subflows and their views": [
        "proto/src/view", "proto/src/subflow/mod", "proto/src/connection/subflows",
    ],
    "rest of the engine: timers, announcements, counters": ["proto/"],
}  # fmt: skip
"""The causes, and how their paths in `crates/anabranch-` begin. The first match counts."""
OTHER = "C library and start"
CRATE = re.compile(r"anabranch_(\w+?)::(\w+)(?:::(\w+))?")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="replace the rows of the result")
    arguments = parser.parse_args()
    if not has_valgrind():
        print("skipped: counting instructions needs valgrind", file=sys.stderr)
        return 0
    (short, few), (long, many) = (counted(seconds) for seconds in (COUNTED_S, 2 * COUNTED_S))
    costs = {cause: (long[cause] - short[cause]) / (many - few) for cause in (*CAUSES, OTHER)}
    rows = [[f"{cost:,.0f}", cause] for cause, cost in costs.items()]
    rows.append([f"{sum(costs.values()):,.0f}", "all"])
    for cost, cause in rows:
        print(f"{cost:>6}  {cause}")
    if arguments.json:
        update(arguments.json, "causes", rows, "python3 bench/causes.py")
    return 0


def counted(seconds: int) -> tuple[Counter[str], int]:
    """Instructions by cause, and the data segments, of a run with this duration."""
    with tempfile.TemporaryDirectory() as folder:
        scenario, profile = Path(folder, "run.toml"), Path(folder, "profile")
        toml = re.sub('duration = "60s"', f'duration = "{seconds}s"', SCENARIO.read_text())
        scenario.write_text(toml)
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", BENCH]
        done = subprocess.run([*command, scenario], capture_output=True, text=True, check=True)
        return by_cause(profile.read_text()), json.loads(done.stdout)["segments"]


def by_cause(profile: str) -> Counter[str]:
    """Instructions by cause in a profile. Costs of called functions count there alone.

    The format: https://valgrind.org/docs/manual/cl-format.html
    """
    names: dict[tuple[str, str], str] = {}
    found: Counter[str] = Counter()
    file = function = before = ""
    lines = iter(profile.splitlines())
    for line in lines:
        key, _, value = line.partition("=")
        if key in ("fl", "fi", "fe", "fn"):
            number, _, name = value.partition(" ")
            kind = "fn" if key == "fn" else "file"
            text = names.setdefault((kind, number), name)
            if key == "fn":
                function, before = text, file
            else:
                before, file = file if is_own(file) else before, text
        elif key in ("cfi", "cfl", "cfn"):
            number, _, name = value.partition(" ")
            names.setdefault(("fn" if key == "cfn" else "file", number), name)
        elif key == "calls":
            next(lines)
        elif line[:1] in "+-*0123456789" and line:
            found[cause(file, before, function)] += int(line.split()[1])
    return found


def is_own(path: str) -> bool:
    return "crates/anabranch-" in path


def cause(file: str, before: str, function: str) -> str:
    """The cause of code from a file, which follows code from the file `before` in a function."""
    for path in (file, before, path_of(function)):
        if is_own(path):
            path = path.split("crates/anabranch-")[1]
            return next((it for it, all_ in CAUSES.items() if path.startswith(tuple(all_))), OTHER)
    return OTHER


def path_of(function: str) -> str:
    """The likely path of a function's file, from the first type of this project in its name."""
    found = CRATE.search(function)
    if not found:
        return ""
    crate, *modules = (part for part in found.groups() if part)
    return f"crates/anabranch-{crate}/src/{'/'.join(modules)}"


if __name__ == "__main__":
    sys.exit(main())
