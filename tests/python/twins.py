"""How close twins of captured runs of Linux are to these runs.

    ANABRANCH_LINUX_VM=target/linux-vm/linux python tests/python/twins.py --seed 4242 --count 20

draws scenarios, runs Linux in the virtual machine, captures at the sender, makes the twin of each
capture from the capture alone, and prints the tables of docs/twin.md. Seeds below 1000 were used
while the twin was built, and those from 1000 on judge it. ``--folder`` keeps the captures.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from anabranch.gallery.shared.calibration import drawn
from anabranch.live.hosts import LINUX_VM, Hosts
from anabranch.live.run import run_toml
from anabranch.runs.run import Capture
from anabranch.scenarios.scenario import Scenario
from anabranch.twin import fit, observed
from anabranch.twin.observed import Observed

_HOSTS = Hosts(machine=LINUX_VM)
GOODPUT, SHARE, RTT = 0.05, 0.05, 0.10
"""What the twin is allowed to be off: relative, but the share in parts of the whole."""
_LEAST_SHARE = 0.03


def draw(seed: int, index: int) -> Scenario:
    """A drawn scenario of the calibration, with Multipath TCP also over one path."""
    scenario = drawn.draw(seed, index)
    (connection,) = scenario.connections
    multipath = dataclasses.replace(connection, protocol="mptcp", scheduler="linux")
    return dataclasses.replace(scenario, connections=(multipath,))


def captured(toml: str, name: str, seed: int, folder: Path) -> Observed:
    """What the capture of a run of Linux shows; makes the run if the folder lacks it."""
    file = folder / f"{name}.pcapng"
    if not file.exists():
        run_toml(toml, f"{name}.toml", seed, _HOSTS, Capture(file, snap=128))
    return observed.read([file])


@dataclasses.dataclass(frozen=True)
class Judged:
    """How far the median of the twin's runs is from the capture."""

    goodput: float
    share: float
    rtt: float

    @property
    def within(self) -> tuple[bool, bool, bool]:
        """Whether each is within its bound."""
        bounds = (GOODPUT, SHARE, RTT)
        values = (self.goodput, self.share, self.rtt)
        return tuple(abs(each) <= bound for each, bound in zip(values, bounds, strict=True))  # type: ignore[return-value]


def judge(seen: Observed, runs: Sequence[Observed]) -> Judged:
    """The deviations of goodput, of the path whose share, and whose median RTT, is furthest off."""
    goodput = float(np.median([run.goodput_mbps for run in runs]))
    shares, rtts = [0.0], [0.0]
    for index, lane in enumerate(seen.lanes):
        lanes = [run.lanes[index] for run in runs if index < len(run.lanes)]
        shares.append(float(np.median([each.share for each in lanes] or [0.0])) - lane.share)
        known = [each.rtt_ms[0] for each in lanes if each.rtt_ms is not None]
        if lane.rtt_ms is not None and known and lane.share > _LEAST_SHARE:
            rtts.append(float(np.median(known)) / lane.rtt_ms[0] - 1)
    return Judged(goodput / seen.goodput_mbps - 1, max(shares, key=abs), max(rtts, key=abs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print("| scenario | goodput | largest share | largest median RTT | within |")
        print("|---|--:|--:|--:|---|")
        good = 0
        for index in range(options.count):
            scenario = draw(options.seed, index)
            name = scenario.name.split()[0]
            seen = captured(scenario.to_toml(), name, 1, folder)
            fitted = fit.fit(seen, name, name, range(1, fit.SEEDS + 1))
            found = judge(seen, fitted.runs)
            good += all(found.within)
            marks = " ".join("yes" if each else "no" for each in found.within)
            print(
                f"| {scenario.name} | {found.goodput:+.1%} | {found.share * 100:+.1f} | "
                f"{found.rtt:+.1%} | {marks} |",
                flush=True,
            )
        print(f"\nall three within their bounds: {good} of {options.count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
