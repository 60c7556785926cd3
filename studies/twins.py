"""Distance of twins of captured runs of Linux from these runs.

    python studies/twins.py --seed 7272 --count 20
    python studies/twins.py --seed 6263 --count 10 --what-if

draws scenarios, runs Linux in the virtual machine, captures at the sender, makes the twin of each
capture from the capture alone, and prints the tables of docs/results/twin.md. With ``--what-if``,
it runs Linux again with the best change that Linux can make, as the twin predicts it, and compares
the gains. The kernel of the machine is built by `make linux-vm`. Seeds below 7000 other than 6263
were used while the twin was built, and the others judge it. ``--folder`` keeps the captures, and
``--json docs/results/twin.json`` replaces the rows of the tables.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measured import update

from anabranch.calibration import drawn
from anabranch.explanations import what_if
from anabranch.explanations.what_if import ScenarioChange
from anabranch.live.hosts import LINUX_VM, Hosts
from anabranch.live.run import run_once
from anabranch.runs.run import Capture
from anabranch.scenarios import loading
from anabranch.scenarios.quantities import size
from anabranch.scenarios.scenario import Bulk, Scenario
from anabranch.twins import fit, observed
from anabranch.twins.observed import Observed
from anabranch.twins.scenario import to_toml

Tables = dict[str, list[list[str]]]
"""The rows of each result."""

_HOSTS = Hosts(machine=LINUX_VM)
GOODPUT, SHARE, RTT, GAIN = 0.05, 0.05, 0.10, 0.10
"""Tolerance of a twin: relative, but shares and gains in parts of the whole."""
_LEAST_SHARE = 0.03
"""Share of a path below which its round-trip time does not count."""
_SMALL_KB = (60, 400)


def draw(seed: int, index: int) -> Scenario:
    """A drawn scenario of the calibration, with Multipath TCP also over one path."""
    scenario = drawn.draw(seed, index)
    (connection,) = scenario.connections
    multipath = dataclasses.replace(connection, protocol="mptcp", scheduler="linux")
    return dataclasses.replace(scenario, connections=(multipath,))


def captured(toml: str, name: str, seed: int, folder: Path) -> Observed:
    """Findings from the capture of a run of Linux; makes the run if the folder lacks it."""
    file = folder / f"{name}.pcapng"
    if not file.exists():
        run_once(loading.of_text(toml, f"{name}.toml"), seed, _HOSTS, Capture(file, snap=128))
    return observed.read([file])


@dataclasses.dataclass(frozen=True)
class Judged:
    """Distance of the median of the twin's runs from the capture."""

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
    for index, observation in enumerate(seen.observations):
        observations = [run.observations[index] for run in runs if index < len(run.observations)]
        shares.append(
            float(np.median([each.share for each in observations] or [0.0])) - observation.share
        )
        known = [each.rtt_ms[0] for each in observations if each.rtt_ms is not None]
        if observation.rtt_ms is not None and known and observation.share > _LEAST_SHARE:
            rtts.append(float(np.median(known)) / observation.rtt_ms[0] - 1)
    return Judged(goodput / seen.goodput_mbps - 1, max(shares, key=abs), max(rtts, key=abs))


def limited(seed: int, index: int) -> Scenario:
    """A drawn scenario of endless data over two paths, with buffers that may be too small."""
    draws = random.Random(f"anabranch twins {seed} {index}")
    scenario = drawn.draw(seed, 3 * index)
    (connection,) = scenario.connections
    send, receive = (f"{draws.randint(*_SMALL_KB)}kB" for _ in range(2))
    changed = dataclasses.replace(
        connection, workload=Bulk(), send_buffer=send, receive_buffer=receive
    )
    rates = scenario.name.split(",")[0].split(maxsplit=1)[1]
    name = f"{seed}-w{index + 1:02} {rates}, {send} + {receive} {connection.direction}"
    return dataclasses.replace(scenario, name=name, duration="20s", connections=(changed,))


def with_change(scenario: Scenario, change: ScenarioChange, twin: str) -> str:
    """The scenario with a change that was predicted for its twin.

    Paths are changed by their places, and buffers by the same factor.
    """
    settings = loading.of(scenario).settings
    names = {
        mine["name"]: real["name"]
        for mine, real in zip(
            loading.of_text(twin, "twin").settings["path"], settings["path"], strict=False
        )
    }
    (connection,) = settings["connection"]
    new: dict[str, Any] = {}
    for key, value in change.settings.items():
        if key.endswith("_buffer"):
            factor = int(change.words.split("×")[1])
            for each in ("send_buffer", "receive_buffer"):
                new[each] = f"{size(connection[each], each) * factor}B"
        elif key == "paths":
            new[key] = [names[each] for each in value]
        elif key == "path_manager":
            new[key] = value | {"regular": names[value["regular"]]}
        else:
            new[key] = value
    changes = {f"connection[0].{key}": value for key, value in new.items()}
    return loading.of(scenario, changes).to_toml()


def judge_twins(seed: int, count: int, folder: Path) -> Tables:
    """Print and return a row for each drawn scenario: how far its twin is off.

    If it is too far, the row also has how far Linux itself is off with other seeds. The last row
    counts the same for the drawn scenarios themselves in virtual time.
    """
    print("| scenario | goodput | share | median RTT | within | Linux again |")
    print("|---|--:|--:|--:|---|--:|")
    seeds = range(2, fit.SEEDS + 2)
    rows: list[list[str]] = []
    good, true = np.zeros(4, dtype=int), np.zeros(4, dtype=int)
    for index in range(count):
        scenario = draw(seed, index)
        toml, name = scenario.to_toml(), scenario.name.split()[0]
        seen = captured(toml, name, 1, folder)
        found = judge(seen, fit.fit(seen, name, name).runs)
        good += [*found.within, all(found.within)]
        itself = judge(seen, fit.run_all([(toml, each) for each in seeds], name, None))
        true += [*itself.within, all(itself.within)]
        again = ""
        if not all(found.within):
            runs = [captured(toml, f"{name}-{each}", each, folder) for each in seeds]
            off = [run.goodput_mbps / seen.goodput_mbps - 1 for run in runs]
            again = f"{min(off):+.1%} to {max(off):+.1%}"
        off_by = f"{found.goodput:+.1%}", f"{found.share * 100:+.1f}", f"{found.rtt:+.1%}"
        rows.append([scenario.name, *off_by, "no" if again else "yes", again])
        print(f"| {' | '.join(rows[-1])} |", flush=True)
    print(f"\n| of {count} within the bound | goodput | share | median RTT | all three |")
    print("|---|--:|--:|--:|--:|")
    both = (("the twin", good), ("the true scenario in virtual time", true))
    totals = [[words, *map(str, counts)] for words, counts in both]
    for total in totals:
        print(f"| {' | '.join(total)} |")
    return {"capture": rows, "true-scenario": totals}


def judge_changes(seed: int, count: int, folder: Path) -> Tables:
    """Print and return a row for each drawn scenario for whose twin a change of Linux helps."""
    print("| scenario | change | predicted | seen | within |")
    print("|---|---|--:|--:|---|")
    rows: list[list[str]] = []
    good = cases = index = 0
    while cases < count:
        scenario = limited(seed, index)
        index += 1
        name = scenario.name.split()[0]
        before = captured(scenario.to_toml(), name, 1, folder)
        twin = to_toml(fit.fit(before, name, name, 1).twin, name, draws=True)
        normal, pairs = loading.of_text(twin, name), range(1, 1 + what_if.SEEDS)
        predicted = what_if.predict(normal, pairs, linux_only=True)
        best = predicted.best(linux=True)
        if best is None:
            continue
        cases += 1
        changed = with_change(scenario, best.change, twin)
        after = captured(changed, f"{name}-changed", 1, folder)
        wanted = best.goodput.value / before.goodput_mbps
        gain = after.goodput_mbps / before.goodput_mbps - 1
        is_near = abs(wanted - gain) <= GAIN
        good += is_near
        gains = f"{wanted:+.0%}", f"{gain:+.0%}", "yes" if is_near else "no"
        rows.append([scenario.name, best.change.words, *gains])
        print(f"| {' | '.join(rows[-1])} |", flush=True)
    print(f"\nwithin {GAIN * 100:.0f} points: {good} of {cases}; {index} scenarios drawn")
    return {"what-if": rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--what-if", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path, metavar="FILE", help="Replace the rows of results.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        work = judge_changes if options.what_if else judge_twins
        tables = work(options.seed, options.count, folder)
    if options.json:
        for name, rows in tables.items():
            update(options.json, name, rows, f"python {' '.join(sys.argv)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
