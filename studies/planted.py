"""Scenarios with a planted cause, and how often `anabranch explain` names it first.

    python studies/planted.py --from 1001 --seeds 50
    python studies/planted.py --capture server

prints the confusion matrices of docs/results/explain.md: from runs, and from captures of runs. Each
scenario is drawn so that one cause takes most of the capacity by construction, not by what the
explanation says. Seeds below 1000 were used while the explanation was built, and those from 1001 on
judge it. ``--json docs/results/explain.json`` replaces the rows of the result.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from measured import update

from anabranch import _core
from anabranch.analyze.analysis import analyze
from anabranch.errors import InputError
from anabranch.explanations import capture
from anabranch.explanations.explanation import Explanation
from anabranch.runs.run import Capture, CaptureAt, run_scenario

NOTHING = "nothing"
"""The answer that no avoidable loss is large."""
FIRST_JUDGED = 1001
SEEDS = 50
_SECONDS = 12

Draw = Callable[[random.Random], dict[str, Any]]


def _path(draw: random.Random, name: str, rate: tuple[float, float], delay: tuple[int, int],
          **keys: Any) -> dict[str, Any]:  # fmt: skip
    return {
        "name": name,
        "rate": f"{draw.uniform(*rate):.1f}Mbit/s",
        "delay": f"{draw.randint(*delay)}ms",
        "limit": f"{draw.randint(60, 120)}ms",
        **keys,
    }


def _two(draw: random.Random) -> list[dict[str, Any]]:
    """Two paths that differ by less than a factor of about four."""
    return [_path(draw, "a", (5, 20), (5, 30)), _path(draw, "b", (5, 20), (5, 30))]


def _scenario(paths: list[dict[str, Any]], **keys: Any) -> dict[str, Any]:
    connection = {
        "name": "flow",
        "send_buffer": "8MiB",
        "receive_buffer": "8MiB",
        "congestion_control": "cubic",
        "workload": {"kind": "bulk"},
    } | {key: value for key, value in keys.items() if key != "cross_traffic"}
    more = {"cross_traffic": keys["cross_traffic"]} if "cross_traffic" in keys else {}
    return {
        "name": "planted", "duration": f"{_SECONDS}s", "path": paths, "connection": [connection],
        **more,
    }  # fmt: skip


def _nothing(draw: random.Random) -> dict[str, Any]:
    return _scenario([_path(draw, "a", (5, 20), (5, 30))])


def _congestion_window(draw: random.Random) -> dict[str, Any]:
    # 1.2 ÷ √0.5 % = 17 segments in flight, on paths that hold hundreds.
    loss = f"{draw.uniform(0.3, 0.8):.2f}%"
    paths = [_path(draw, name, (40, 80), (40, 80), loss=loss) for name in "ab"]
    return _scenario(paths, congestion_control=draw.choice(["new_reno", "lia", "olia", "balia"]))


def _silent(draw: random.Random) -> dict[str, Any]:
    # Once a burst begins, it also takes the retransmissions, so timeouts back off.
    bursts = {"to_bad": f"{draw.uniform(0.5, 1):.2f}%", "to_good": f"{draw.uniform(4, 8):.1f}%"}
    return _scenario([_path(draw, "a", (10, 30), (5, 30), burst_loss=bursts)])


def _standby(draw: random.Random) -> dict[str, Any]:
    manager = {"kind": "backup", "regular": draw.choice("ab")}
    return _scenario(_two(draw), path_manager=manager)


def _absent(draw: random.Random) -> dict[str, Any]:
    return _scenario(_two(draw), path_manager="initial_only")


def _opening(draw: random.Random) -> dict[str, Any]:
    # The box drops all SYNs that join, so the faster path is never used.
    fast = _path(draw, "b", (20, 40), (5, 30), middlebox=[{"kind": "blackhole_options"}])
    return _scenario([_path(draw, "a", (5, 10), (5, 30)), fast])


def _unequal(draw: random.Random) -> list[dict[str, Any]]:
    """A fast path, and a slow one behind which a small buffer fills."""
    slow = _path(draw, "slow", (1, 3), (80, 200)) | {"limit": f"{draw.randint(800, 2000)}ms"}
    return [_path(draw, "fast", (15, 40), (5, 20)), slow]


def _receive_window(draw: random.Random) -> dict[str, Any]:
    return _scenario(_unequal(draw), receive_buffer=f"{draw.randint(64, 192)}KiB")


def _send_buffer(draw: random.Random) -> dict[str, Any]:
    return _scenario(_unequal(draw), send_buffer=f"{draw.randint(64, 192)}KiB")


def _scheduler(draw: random.Random) -> dict[str, Any]:
    # Both schedulers wait for the fast path rather than use one whose round trip takes much longer.
    paths = [_path(draw, "fast", (8, 15), (5, 15)), _path(draw, "slow", (1, 3), (100, 200))]
    buffer = f"{draw.randint(280, 400)}KiB"
    scheduler = draw.choice(["ecf", "blest"])
    return _scenario(paths, scheduler=scheduler, send_buffer=buffer, receive_buffer=buffer)


def _application(draw: random.Random) -> dict[str, Any]:
    rate = f"{draw.uniform(0.5, 3):.1f}Mbit/s"
    interval = {"kind": "exponential", "mean": "2s"}
    burst = {"kind": "on_off", "burst_size": f"{draw.randint(50, 300)}kB", "interval": interval}
    workload = draw.choice([{"kind": "cbr", "rate": rate}, burst])
    return _scenario(_two(draw), workload=workload)


def _fallen_back(draw: random.Random) -> dict[str, Any]:
    box = {"kind": "strip_options"} | draw.choice(
        [{"options": ["mp_capable"]}, {"segments": ["syn"]}, {"options": ["mptcp"]}]
    )
    first, second = _two(draw)
    return _scenario([first | {"middlebox": [box]}, second])


def _outage(draw: random.Random) -> dict[str, Any]:
    first, second = _two(draw)
    since, length = draw.uniform(1, 3), draw.uniform(0.5, 0.7) * _SECONDS
    change = [
        {"at": f"{since:.2f}s", "state": "suspend"},
        {"at": f"{since + length:.2f}s", "state": "resume"},
    ]
    return _scenario([first | {"change": change}, second])


def _other_traffic(draw: random.Random) -> dict[str, Any]:
    paths = [_path(draw, "a", (10, 20), (5, 30))]
    rate = float(paths[0]["rate"].removesuffix("Mbit/s")) * draw.uniform(0.3, 0.6)
    others = {
        "name": "others", "path": "a", "rate": f"{rate:.2f}Mbit/s", "packet_size": "1200B",
    }  # fmt: skip
    return _scenario(paths, cross_traffic=[others])


def _remedy(draw: random.Random) -> dict[str, Any]:
    # With a factor of 1, any delay above the smallest one freezes the data in flight.
    paths = [_path(draw, name, (20, 40), (20, 40), jitter="4ms") for name in "ab"]
    return _scenario(paths, remedies={"cwnd_cap": {"cap_factor": 1.0}})


def _reinjected(draw: random.Random) -> dict[str, Any]:
    return _scenario(_two(draw), scheduler="redundant")


CAUSES: Mapping[str, Draw] = {
    NOTHING: _nothing,
    "congestion_window": _congestion_window,
    "silent": _silent,
    "standby": _standby,
    "absent": _absent,
    "opening": _opening,
    "receive_window": _receive_window,
    "send_buffer": _send_buffer,
    "scheduler": _scheduler,
    "application": _application,
    "fallen_back": _fallen_back,
    "outage": _outage,
    "other_traffic": _other_traffic,
    "remedy": _remedy,
    "reinjected": _reinjected,
}
"""The drawing of a scenario with each cause."""


def scenario(cause: str, seed: int) -> _core.Scenario:
    """A normalised scenario with this planted cause."""
    drawn = CAUSES[cause](random.Random(f"{cause}/{seed}"))
    return _core.Scenario.of(drawn, f"{cause}-{seed}.toml")


def answer(cause: str, seed: int) -> str:
    """The cause that the explanation names first."""
    run = run_scenario(scenario(cause, seed), seed, ledger=True)
    main = Explanation(run, 0).main
    return NOTHING if main is None else main.cause.name


SHOWN: Mapping[str, tuple[str, ...]] = {
    NOTHING: ("network",),
    "congestion_window": ("network",),
    "silent": ("silent",),
    "standby": ("standby",),
    "receive_window": ("receive_window",),
    "reinjected": ("reinjected",),
}
"""The causes that a capture can show, and the right answers, stated before they were judged."""

HIDDEN: Mapping[str, tuple[str, ...]] = {
    "absent": ("network",),
    "opening": ("network", "opening"),
    "send_buffer": ("unknown",),
    "scheduler": ("unknown",),
    "application": ("unknown",),
    "fallen_back": ("plain TCP",),
    "outage": ("silent", "unknown"),
    "other_traffic": ("network", "recovery"),
    "remedy": ("network", "unknown"),
}
"""The causes that a capture cannot tell apart, and the answers that are right nevertheless."""


def capture_answer(cause: str, seed: int, at: CaptureAt) -> str:
    """First finding from a capture at these hosts. The server sends the data."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{cause}-{seed}.pcapng"
        taken = Capture(file, at=at, snap=128)
        run_scenario(scenario(cause, seed), seed, taken)
        try:
            found = next(capture.explanations(analyze(file)))
        except InputError as error:
            return "plain TCP" if "plain TCP" in str(error) else "refused"
    return "network" if found.main is None else found.main[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--from", dest="first", type=int, default=FIRST_JUDGED)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--capture", choices=("server", "both"))
    parser.add_argument("--cause", choices=list(CAUSES), action="append")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Replace the rows of the result.")
    arguments = parser.parse_args()
    right = total = 0
    rows = []
    print("| planted | right | answers |\n|---|---|---|")
    for cause in arguments.cause or CAUSES:
        seeds = range(arguments.first, arguments.first + arguments.seeds)
        if arguments.capture is None:
            expected: tuple[str, ...] = (cause,)
            answers = Counter(answer(cause, seed) for seed in seeds)
        else:
            expected = SHOWN.get(cause) or HIDDEN[cause]
            answers = Counter(capture_answer(cause, seed, arguments.capture) for seed in seeds)
        hits = sum(answers[each] for each in expected)
        right, total = right + hits, total + len(seeds)
        words = ", ".join(f"{name} {count}" for name, count in answers.most_common())
        rows.append((cause, f"{hits} of {len(seeds)}", words))
        print(f"| {' | '.join(rows[-1])} |", flush=True)
    print(f"\n{right} of {total}: {right / total * 100:.1f} %")
    if arguments.json:
        name = f"capture-{arguments.capture}" if arguments.capture else "runs"
        update(arguments.json, name, rows, f"python {' '.join(sys.argv)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
