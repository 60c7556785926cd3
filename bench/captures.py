"""Cost of a capture: CPU time of the two-path benchmark with each kind of capture, compared with
none, in turns. Run by `.venv/bin/python bench/captures.py`.
"""

import os
import statistics
import tempfile
from pathlib import Path

import anabranch

SCENARIO = Path(__file__).parent / "scenarios/mptcp-2x100.toml"
ROUNDS = 9
KINDS = {
    "--pcap-at both": {"pcap_at": "both"},
    "--pcap": {},
    "--pcap --snap 128": {"snap": 128},
}


def cpu_seconds(file, **capture):
    """CPU time of a run, in this process and in the kernel, and the kernel's part of it."""
    before = os.times()
    anabranch.run(file, **capture)
    after = os.times()
    system = after.system - before.system
    return after.user - before.user + system, system


def main():
    ratios = {name: ([], []) for name in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.toml"
        file.write_text(SCENARIO.read_text().replace('duration = "60s"', 'duration = "15s"'))
        for _ in range(ROUNDS):
            without, _ = cpu_seconds(file)
            for name, options in KINDS.items():
                # The kernel would free the pages of the file before.
                capture = file.with_suffix(".pcapng")
                capture.unlink(missing_ok=True)
                total, system = cpu_seconds(file, pcap=capture, **options)
                ratios[name][0].append(total / without)
                ratios[name][1].append(system / without)
    for name, (totals, systems) in ratios.items():
        total, system = statistics.median(totals), statistics.median(systems)
        print(f"{name}: {total:.2f} times the CPU time, {system:.2f} of it in the kernel")


if __name__ == "__main__":
    main()
