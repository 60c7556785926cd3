"""How far virtual time is from this machine's Linux: the same scenarios, side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from anabranch import figures
from anabranch.claims import Claim, Condition
from anabranch.estimates import estimate
from anabranch.gallery import real_time
from anabranch.gallery.real_time import KERNEL, VIRTUAL
from anabranch.gallery.wifi_3g import MPTCP, TCP_3G, TCP_WIFI, THREE_G, WIFI, cell_key, connection
from anabranch.plan import Cell, Entry, Overview, Panel, Parameter, Tier
from anabranch.results import Factor, Results
from anabranch.scenario import Blocks, Connection, Path, Scenario

_LINKS = {
    "8 Mbit/s, 20 ms": WIFI,
    "2 Mbit/s, 150 ms": THREE_G,
    "20 Mbit/s, 40 ms": Path(name="link", rate="20Mbit/s", delay="20ms", limit="67packets"),
    "50 Mbit/s, 10 ms": Path(name="link", rate="50Mbit/s", delay="5ms", limit="84packets"),
    "20 Mbit/s, 40 ms, shallow": Path(
        name="link", rate="20Mbit/s", delay="20ms", limit="20packets"
    ),
    "20 Mbit/s, 40 ms, 0.5 % lost": Path(
        name="link", rate="20Mbit/s", delay="20ms", limit="67packets", loss="0.5%"
    ),
}
"""Rate and round-trip time; queues of one bandwidth-delay product and more, unless shallow."""

_ASKED_KB = (100, 200, 400)
_SINGLE, _WINDOWS, _TWO_PATHS = "single path", "receive window", "two paths"
_LARGE = ("2MB", "4MB")


def _single_path() -> list[tuple[str, str, tuple[Path, ...], Connection]]:
    """NewReno and CUBIC over six links, with buffers that do not limit."""
    return [
        (
            _SINGLE,
            f"{link}, {control}",
            (path,),
            _connection((path.name,), "tcp", control, *_LARGE),
        )
        for link, path in _LINKS.items()
        for control in ("new_reno", "cubic")
    ]


def _connection(
    paths: tuple[str, ...], protocol: str, control: str, send: str, receive: str
) -> Connection:
    return Connection(
        name="main",
        paths=paths,
        protocol=protocol,
        congestion_control=control,
        send_buffer=send,
        receive_buffer=receive,
        workload=Blocks(block_size="8KiB"),
    )


def _windows() -> list[tuple[str, str, tuple[Path, ...], Connection]]:
    """The curves of nsdi12-fig7 that Linux has, with three buffers."""
    both = (WIFI, THREE_G)
    return [
        (
            _WINDOWS,
            f"{curve}, {asked} kB asked for",
            both,
            connection(curve, f"{asked}kB", f"{asked}kB", Blocks(block_size="8KiB")),
        )
        for asked in _ASKED_KB
        for curve in (TCP_WIFI, TCP_3G, MPTCP)
    ]


def _two_paths() -> list[tuple[str, str, tuple[Path, ...], Connection]]:
    """Two paths together, with buffers that do not limit."""
    pairs = {
        "8 + 2 Mbit/s": (WIFI, THREE_G),
        "20 + 20 Mbit/s": (
            dataclasses.replace(_LINKS["20 Mbit/s, 40 ms"], name="first"),
            dataclasses.replace(_LINKS["20 Mbit/s, 40 ms"], name="second"),
        ),
    }
    return [
        (
            _TWO_PATHS,
            name,
            paths,
            _connection(tuple(each.name for each in paths), "mptcp", "cubic", *_LARGE),
        )
        for name, paths in pairs.items()
    ]


_ALL = (*_single_path(), *_windows(), *_two_paths())


def cells(tier: Tier) -> list[Cell]:
    """Everything in virtual time and with Linux at both ends."""
    return [_cell(tier, hosts, *each) for hosts in (VIRTUAL, KERNEL) for each in _ALL]


def _cell(
    tier: Tier, hosts: str, group: str, name: str, paths: tuple[Path, ...], conn: Connection
) -> Cell:
    scenario = Scenario(
        name=f"{name}, {hosts}",
        duration=tier.duration,
        warm_up=tier.warm_up,
        paths=paths,
        connections=(conn,),
    )
    key = cell_key(name.replace("/", "-").replace("%", "percent"), hosts.split(",")[0])
    if hosts == KERNEL and conn.congestion_control == "new_reno" and group == _SINGLE:
        # `real_time.cell` gives Linux cubic, which is not what is compared here.
        labels: dict[str, Factor] = {"hosts": hosts, "group": group, "scenario": name}
        return Cell(key, scenario, labels, stacks=("kernel", "kernel"))
    return real_time.cell(
        key, hosts, scenario, {"group": group, "scenario": name}, keep_blocks=False
    )


def names(group: str) -> list[str]:
    """The scenarios of a group, in order."""
    return [name for each, name, _, _ in _ALL if each == group]


def deviation(results: Results, name: str, metric: str) -> float:
    """By how much virtual time is off what Linux does, relative to it; medians over seeds."""
    virtual = np.median(results.values(metric, scenario=name, hosts=VIRTUAL))
    live = np.median(results.values(metric, scenario=name, hosts=KERNEL))
    return float(virtual / live - 1)


def _within(results: Results, group: str, metric: str, percent: float) -> list[Condition]:
    conditions = []
    for name in names(group):
        samples = [
            results.values(metric, scenario=name, hosts=hosts) for hosts in (VIRTUAL, KERNEL)
        ]
        off = estimate(_distance, *samples)
        conditions.append(Condition(f"{name}: off by", off, "≤", percent, "%"))
    return conditions


def _distance(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
    ratio = np.median(a, axis=axis) / np.median(b, axis=axis)
    return np.asarray(abs(ratio - 1) * 100)


CLAIMS = (
    Claim(
        "C1-goodput",
        "On a single path virtual time gives the goodput that Linux gets.",
        "ours",
        "within 3 %, NewReno and CUBIC over six links",
        lambda results: _within(results, _SINGLE, "goodput_mbps", 3),
    ),
    Claim(
        "C2-delay",
        "And the median delay of a block.",
        "ours",
        "within 10 %, NewReno and CUBIC over six links",
        lambda results: _within(results, _SINGLE, "delay_p50_ms", 10),
    ),
    Claim(
        "C3-two-paths",
        "Where buffers do not limit, two paths together give the same goodput.",
        "ours",
        "within 5 %",
        lambda results: _within(results, _TWO_PATHS, "goodput_mbps", 5),
    ),
    Claim(
        "C4-windows",
        "Where they do, the same buffers give the same goodput.",
        "ours; not to be expected: Linux counts them otherwise",
        "within 10 %, three buffers",
        lambda results: _within(results, _WINDOWS, "goodput_mbps", 10),
    ),
)


def _draw(results: Results, axes: Axes, group: str) -> None:
    """Deviations of goodput and median delay, one line for each scenario."""
    shown = names(group)[::-1]
    for metric, marker, colour, label in (
        ("goodput_mbps", "o", figures.BLUE, "goodput"),
        ("delay_p50_ms", "s", figures.ORANGE, "median delay"),
    ):
        off = [deviation(results, name, metric) * 100 for name in shown]
        axes.plot(off, range(len(shown)), marker, color=colour, label=label, markersize=4)
    axes.axvline(0, color=figures.GREY, linewidth=0.8)
    axes.set_yticks(range(len(shown)), shown, fontsize=6.5)
    axes.set_xlabel("virtual time against Linux (%)")


def _draw_single(results: Results, axes: Axes) -> None:
    _draw(results, axes, _SINGLE)


def _draw_windows(results: Results, axes: Axes) -> None:
    _draw(results, axes, _WINDOWS)


def _draw_two_paths(results: Results, axes: Axes) -> None:
    _draw(results, axes, _TWO_PATHS)


def side_by_side(results: Results) -> Mapping[str, Sequence[str]]:
    """For each scenario: goodput and delays of virtual time and of Linux, and how far off."""
    rows = {}
    for _, name, _, _ in _ALL:
        cells = []
        for metric, form in (
            ("goodput_mbps", "{:.2f}"),
            ("delay_p50_ms", "{:.0f}"),
            ("delay_p95_ms", "{:.0f}"),
        ):
            pair = [
                float(np.median(results.values(metric, scenario=name, hosts=hosts)))
                for hosts in (VIRTUAL, KERNEL)
            ]
            cells += [form.format(each) for each in pair]
            cells.append(f"{(pair[0] / pair[1] - 1) * 100:+.1f} %")
        rows[name] = cells
    return rows


def notes(results: Results) -> Sequence[str]:
    """How late the emulator was."""
    return [
        "Linux is asked for the buffers that the scenario names. It doubles them and charges each "
        "segment with what it occupies in memory.",
        real_time.lateness(results),
    ]


ENTRY = Entry(
    id="calibration",
    title="Virtual time beside this machine's Linux",
    question="The engine simulates in virtual time what Linux does in real time. By how much do "
    "they differ, and where?",
    references=("This kernel's own TCP and Multipath TCP, measured on this machine in real time.",),
    parameters=(
        Parameter("single path", "send 2 MB, receive 4 MB: buffers do not limit", "ours"),
        Parameter("workload", "8 KiB blocks as fast as the buffers take them", "ours"),
        *real_time.PARAMETERS,
    ),
    quick=Tier("quick", seeds=1, measured_s=15, warm_up_s=5),
    full=Tier("full", seeds=5, measured_s=30),
    cells=cells,
    claims=CLAIMS,
    panels=(
        Panel("One path, large buffers", "Further from the line is worse.", _draw_single),
        Panel("Limited by buffers", "Linux counts them otherwise.", _draw_windows),
        Panel("Two paths, large buffers", "Further from the line is worse.", _draw_two_paths),
    ),
    overview=Overview(
        factors={"scenario": "scenario", "hosts": "hosts"},
        metrics={
            "goodput_mbps": "goodput (Mbit/s)",
            "delay_p50_ms": "p50 (ms)",
            "delay_p95_ms": "p95 (ms)",
            "late_p999_ms": "lateness p99.9 (ms)",
        },
        path="wifi",
    ),
    notes=notes,
)
