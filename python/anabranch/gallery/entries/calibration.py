"""How far virtual time deviates from this machine's Linux, in the same scenarios."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from anabranch.gallery.entry import Cell, Entry, Overview, Parameter, Tier
from anabranch.gallery.shared import real_time
from anabranch.gallery.shared.measures import distance_of
from anabranch.gallery.shared.real_time import KERNEL, VIRTUAL
from anabranch.gallery.shared.wifi_3g import (
    MPTCP,
    TCP_3G,
    TCP_WIFI,
    THREE_G,
    WIFI,
    cell_key,
    connection,
)
from anabranch.reports import figures
from anabranch.reports.figures import Panel
from anabranch.results.claims import Claim, Condition, each
from anabranch.results.folder import Factor, NothingMeasured, Results
from anabranch.scenarios.classes import Protocol
from anabranch.scenarios.scenario import Blocks, Bulk, Cbr, Connection, NetworkPath, Scenario

_LINKS = {
    "8 Mbit/s, 20 ms": WIFI,
    "2 Mbit/s, 150 ms": THREE_G,
    "20 Mbit/s, 40 ms": NetworkPath(name="link", rate="20Mbit/s", delay="20ms", limit="67packets"),
    "50 Mbit/s, 10 ms": NetworkPath(name="link", rate="50Mbit/s", delay="5ms", limit="84packets"),
    "20 Mbit/s, 40 ms, shallow": NetworkPath(
        name="link", rate="20Mbit/s", delay="20ms", limit="20packets"
    ),
    "20 Mbit/s, 40 ms, 0.5 % lost": NetworkPath(
        name="link", rate="20Mbit/s", delay="20ms", limit="67packets", loss="0.5%"
    ),
}
"""Links by rate and round-trip time. Queues hold a bandwidth-delay product, unless shallow."""

_ASKED_KB = (100, 200, 400)
_BULK, _PACED, _WINDOWS, _TWO_PATHS = "bulk", "paced", "windows", "two paths"
_LARGE = ("2MB", "4MB")
"""Send and receive buffer, larger than one path needs."""


@dataclass(frozen=True)
class _Setting:
    group: str
    name: str
    paths: tuple[NetworkPath, ...]
    connection: Connection


def _connection(
    paths: tuple[str, ...], protocol: Protocol, control: str, workload: Bulk | Cbr
) -> Connection:
    send, receive = _LARGE
    return Connection(
        name="main",
        paths=paths,
        protocol=protocol,
        congestion_control=control,
        send_buffer=send,
        receive_buffer=receive,
        host={"kind": "linux", "buffers": "socket"},
        scheduler=None if protocol == "tcp" else "linux",
        workload=workload,
    )


def _single_path() -> list[_Setting]:
    """Over six links: bulk data with NewReno and with CUBIC, and blocks at 60 % of the rate."""
    settings = [
        _Setting(
            _BULK,
            f"{link}, {control}",
            (path,),
            _connection((path.name,), "tcp", control, Bulk()),
        )
        for link, path in _LINKS.items()
        for control in ("new_reno", "cubic_linux")
    ]
    for link, path in _LINKS.items():
        # With this loss, neither NewReno nor CUBIC reaches 60 % of the rate.
        rate = 2 if path.loss else int(link.split()[0]) * 6 // 10 or 1
        paced = Cbr(rate=f"{rate}Mbit/s", block_size="8KiB")
        settings.append(
            _Setting(
                _PACED,
                f"{link}, blocks at {rate} Mbit/s",
                (path,),
                _connection((path.name,), "tcp", "cubic_linux", paced),
            )
        )
    return settings


def _windows() -> list[_Setting]:
    """The curves of nsdi12-fig7 that Linux supports, with three buffer sizes."""
    both = (WIFI, THREE_G)
    return [
        _Setting(
            _WINDOWS,
            f"{curve}, {asked} kB asked for",
            both,
            dataclasses.replace(
                connection(curve, f"{asked}kB", f"{asked}kB", Blocks(block_size="8KiB")),
                congestion_control="cubic_linux" if curve == MPTCP else "new_reno",
                scheduler="linux" if curve == MPTCP else None,
                host={"kind": "linux", "buffers": "socket"},
            ),
        )
        for asked in _ASKED_KB
        for curve in (TCP_WIFI, TCP_3G, MPTCP)
    ]


def _two_paths() -> list[_Setting]:
    """Bulk data over two paths at once, with large buffers."""
    pairs = {
        "8 + 2 Mbit/s": (WIFI, THREE_G),
        "20 + 20 Mbit/s": (
            dataclasses.replace(_LINKS["20 Mbit/s, 40 ms"], name="first"),
            dataclasses.replace(_LINKS["20 Mbit/s, 40 ms"], name="second"),
        ),
    }
    return [
        _Setting(
            _TWO_PATHS,
            name,
            paths,
            _connection(tuple(each.name for each in paths), "mptcp", "cubic_linux", Bulk()),
        )
        for name, paths in pairs.items()
    ]


_ALL = (*_single_path(), *_windows(), *_two_paths())


def cells(tier: Tier) -> list[Cell]:
    """Every setting in virtual time, and with Linux at both ends."""
    return [_cell(tier, hosts, setting) for hosts in (VIRTUAL, KERNEL) for setting in _ALL]


def _cell(tier: Tier, hosts: str, setting: _Setting) -> Cell:
    scenario = Scenario(
        name=f"{setting.name}, {hosts}",
        duration=tier.duration,
        warm_up=tier.warm_up,
        paths=setting.paths,
        connections=(setting.connection,),
    )
    key = cell_key(setting.name.replace("/", "-").replace("%", "percent"), hosts.split(",")[0])
    factors: dict[str, Factor] = {"group": setting.group, "scenario": setting.name}
    return real_time.cell(key, hosts, scenario, factors, keep_blocks=False)


def names(group: str) -> list[str]:
    """The scenarios of a group, in order."""
    return [each.name for each in _ALL if each.group == group]


def deviation(results: Results, name: str, metric: str) -> float:
    """The relative deviation of virtual time from Linux, between medians over seeds."""
    virtual = np.median(results.values(metric, scenario=name, hosts=VIRTUAL))
    live = np.median(results.values(metric, scenario=name, hosts=KERNEL))
    return float(virtual / live - 1)


def _within(group: str, metric: str, percent: float, words: str) -> tuple[Condition, ...]:
    return each(
        words,
        (
            Condition(
                f"{name}: deviation",
                distance_of(
                    metric,
                    {"scenario": name, "hosts": VIRTUAL},
                    {"scenario": name, "hosts": KERNEL},
                ),
                "≤",
                percent,
                "%",
            )
            for name in names(group)
        ),
    )


CLAIMS = (
    Claim(
        "C1-goodput",
        "Over one path, virtual time and Linux have the same goodput.",
        "ours",
        _within(_BULK, "goodput_mbps", 3, "deviation of goodput, NewReno and CUBIC, six links"),
    ),
    Claim(
        "C2-delay",
        "Over one path, at 60 % of the rate or less, virtual time and Linux have the same median "
        "block delay.",
        "ours",
        _within(_PACED, "delay_p50_ms", 10, "deviation of the median delay, six links"),
    ),
    Claim(
        "C3-two-paths",
        "Over two paths with large buffers, virtual time and Linux have the same goodput.",
        "ours",
        _within(_TWO_PATHS, "goodput_mbps", 5, "deviation of goodput over two paths"),
    ),
    Claim(
        "C4-windows",
        "Where buffers limit, virtual time and Linux have the same goodput with the same buffers.",
        "ours",
        _within(
            _WINDOWS,
            "goodput_mbps",
            10,
            "deviation of goodput with three buffer sizes, TCP over either path and MPTCP",
        ),
    ),
)


def _draw(results: Results, axes: Axes, drawn: Mapping[str, str]) -> None:
    """Draw the deviations of one metric for each group, with a row for each scenario."""
    rows = [(name, metric) for group, metric in drawn.items() for name in names(group)][::-1]
    colours = {"goodput_mbps": figures.BLUE, "delay_p50_ms": figures.ORANGE}
    labels = {"goodput_mbps": "goodput", "delay_p50_ms": "median delay"}
    for metric in dict.fromkeys(drawn.values()):
        points = [
            (deviation(results, name, metric) * 100, row)
            for row, (name, drawn_metric) in enumerate(rows)
            if drawn_metric == metric
        ]
        axes.plot(*zip(*points, strict=True), "o", color=colours[metric], label=labels[metric])
    axes.axvline(0, color=figures.GREY, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=6)
    axes.set_xlabel("deviation of virtual time from Linux (%)")


def _draw_single(results: Results, axes: Axes) -> None:
    _draw(results, axes, {_BULK: "goodput_mbps", _TWO_PATHS: "goodput_mbps"})


def _draw_paced(results: Results, axes: Axes) -> None:
    _draw(results, axes, {_PACED: "delay_p50_ms"})


def _draw_windows(results: Results, axes: Axes) -> None:
    _draw(results, axes, {_WINDOWS: "goodput_mbps"})


def side_by_side(results: Results) -> Mapping[str, Sequence[str]]:
    """For each scenario: goodput and delays in virtual time and of Linux, and the deviation."""
    metrics = {"goodput_mbps": "{:.2f}", "delay_p50_ms": "{:.0f}", "delay_p95_ms": "{:.0f}"}
    return {
        each.name: [
            cell
            for metric, form in metrics.items()
            for cell in _pair(results, each.name, metric, form)
        ]
        for each in _ALL
    }


def _pair(results: Results, name: str, metric: str, form: str) -> tuple[str, str, str]:
    try:
        virtual, live = (
            float(np.median(results.values(metric, scenario=name, hosts=hosts)))
            for hosts in (VIRTUAL, KERNEL)
        )
    except NothingMeasured:
        return "–", "–", "–"
    return form.format(virtual), form.format(live), f"{(virtual / live - 1) * 100:+.1f} %"


def notes(results: Results) -> Sequence[str]:
    """The parts of the engine that model Linux, and the emulator's lateness."""
    return [
        "These parts of the engine model Linux: cubic_linux, the scheduler linux, and "
        'host = { kind = "linux", buffers = "socket" }.',
        real_time.lateness(results),
    ]


_CAPTION = "A point on the line is a perfect match with Linux."

ENTRY = Entry(
    id="calibration",
    title="Virtual time compared with this machine's Linux",
    question="The engine simulates in virtual time what Linux does in real time. Where do the two "
    "differ, and by how much?",
    references=("TCP and Multipath TCP of this machine's kernel, measured in real time.",),
    parameters=(
        Parameter("large buffers", "send 2 MB, receive 4 MB: more than one path needs", "ours"),
        Parameter(
            "workloads",
            "for goodput: one endless transfer; for delay: 8 KiB blocks at 60 % of the rate or "
            "less, so that no buffer limits; for buffers: 8 KiB blocks as fast as the buffers "
            "accept them",
            "ours",
        ),
        *real_time.PARAMETERS,
    ),
    quick=Tier("quick", seeds=1, measured_s=15, warm_up_s=5),
    full=Tier("full", seeds=5, measured_s=30),
    cells=cells,
    claims=CLAIMS,
    panels=(
        Panel("Goodput, large buffers", _CAPTION, _draw_single),
        Panel("Delay of a block at 60 % of the rate", _CAPTION, _draw_paced),
        Panel("Goodput limited by buffers", _CAPTION, _draw_windows),
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
