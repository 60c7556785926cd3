"""Pictures of the path managers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from anabranch import Blocks, Connection, NetworkPath, Queue, Run
from anabranch.reports.figures import BLACK, BLUE, GREEN, GREY, RED
from anabranch.results import metrics
from anabranch.scenarios.scenario import Change
from pictures.common import (
    GPRS,
    LTE,
    THREE_G,
    WIFI,
    Caption,
    bulk,
    curve,
    delivered,
    goodput,
    label,
    names_below,
    picture,
    run_each,
    run_one,
    scenario,
    throughput,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TCP = {"protocol": "tcp"}
WLAN = dataclasses.replace(WIFI, name="wlan")
LINKS = "WLAN 8 Mbit/s, 20 ms RTT; LTE 8 Mbit/s, 60 ms RTT; buffers of 512 KiB"


def _silent(down_s: int, up_s: int | None, noticed: bool = False) -> tuple[Change, ...]:
    down = Change(at=f"{down_s}s", state="down", noticed=noticed)
    return (down,) if up_s is None else (down, Change(at=f"{up_s}s", state="up", noticed=noticed))


def _run(
    manager: Any, changes: tuple[Change, ...] = (), second: NetworkPath = LTE, **keys: Any
) -> Run:
    connection = Connection(
        workload=Blocks(), path_manager=manager,
        **({"send_buffer": "512KiB", "receive_buffer": "512KiB"} | keys),
    )  # fmt: skip
    paths = [dataclasses.replace(WLAN, changes=changes), second]
    return run_one(scenario(paths, [connection], 60, 5))


def _by_path(axes: Axes, run: Run, title: str) -> None:
    """Draw the throughput of both paths over time."""
    curve(axes, throughput(run, 0), BLUE, "WLAN")
    curve(axes, throughput(run, 1), RED, "LTE")
    axes.set(xlabel="time (s)", xlim=(0, 60), ylim=(0, 11), title=title)


def _shade(axes: Axes, start: float, end: float, text: str = "WLAN is down") -> None:
    axes.axvspan(start, end, color=GREY, alpha=0.12, linewidth=0)
    label(axes, (start + end) / 2, 10.2, text, GREY, ha="center")


def _gap_s(run: Run, start: float, level: float = 1.0) -> float:
    """The time after `start` with a goodput below `level` Mbit/s, in steps of a sample."""
    rows = run.connection_samples
    seconds = rows["time_ns"].to_numpy() / 1e9
    samples = rows["bytes_delivered"].to_numpy().astype(np.float64)
    rate = np.diff(samples) * 8e-6 / np.diff(seconds)
    late = np.nonzero((seconds[1:] > start + 0.15) & (rate > level))[0]
    return float(seconds[1:][late[0]] - start)


@picture()
def full_mesh(axes: Sequence[Axes]) -> Caption:
    """Throughput by path while one path is down."""
    numbers = {}
    for panel, noticed in zip(axes, (True, False), strict=True):
        run = _run("full_mesh", _silent(20, 40, noticed))
        what = "the client is notified" if noticed else "no notification"
        _by_path(panel, run, f"WLAN goes down: {what}")
        _shade(panel, 20, 40)
        seconds, rate = throughput(run, 0)
        back = seconds[(seconds > 40) & (rate > 6)][0] - 0.5
        numbers[f"WLAN carries data again after, s, {what}"] = float(back - 40)
        numbers[f"goodput, {what}"] = goodput(run)
    axes[0].set_ylabel("throughput (Mbit/s)")
    axes[0].legend(loc="lower right")
    return Caption("All paths carry data; a path that recovers is used again", LINKS, numbers)


@picture(columns=1)
def initial_only(axes: Sequence[Axes]) -> Caption:
    """Goodput while the first path is down."""
    numbers = {}
    for name, colour in (("full_mesh", GREY), ("initial_only", BLUE)):
        run = _run(name, _silent(20, 40))
        curve(axes[0], delivered(run), colour, name)
        numbers[f"goodput, {name}"] = goodput(run)
        numbers[f"gap, {name}, s"] = _gap_s(run, 20)
    for name, keys in (("Multipath TCP", {"path_manager": "initial_only"}), ("TCP", TCP)):
        one = bulk(congestion_control="new_reno", **keys)
        numbers[f"WLAN alone, {name}, Mbit/s"] = goodput(run_one(scenario([WLAN], [one], 60, 5)))
    axes[0].set(xlabel="time (s)", ylabel="goodput (Mbit/s)", xlim=(0, 60), ylim=(0, 20))
    axes[0].axvspan(20, 40, color=GREY, alpha=0.12, linewidth=0)
    label(axes[0], 30, 18.5, "WLAN is down", GREY, ha="center")
    axes[0].legend(loc="lower right")
    return Caption("A sole subflow works like TCP: it stops while its path is down", LINKS, numbers)


PORTS = NetworkPath(
    name="wlan", rate="10Mbit/s", delay="20ms", limit="200packets",
    queue=Queue(kind="red", min_packets=10, max_packets=60),
)  # fmt: skip


@picture(columns=1)
def ndiffports(axes: Sequence[Axes]) -> Caption:
    """The share of one link against a TCP flow, over the number of subflows."""
    counts = np.array((1, 2, 3, 4, 6, 8))
    numbers: dict[str, float] = {}
    for control, colour in (("new_reno", GREY), ("lia", BLUE), ("olia", GREEN)):
        shares = []
        for count in counts:
            manager = {"kind": "ndiffports", "subflows": int(count)}
            pair = [
                bulk(congestion_control=control, path_manager=manager),
                bulk(protocol="tcp", start="1s", congestion_control="new_reno"),
            ]
            runs = run_each([scenario([PORTS], pair, 200, 20, "10s")], (1, 2, 3))[0]
            shares.append(np.mean([_share(run) for run in runs]) * 100)
        curve(axes[0], (counts.astype(float), np.array(shares)), colour, control)
        label(axes[0], 8.1, float(shares[-1]), control, colour, va="center")
        numbers |= {f"{control}, {n}": float(s) for n, s in zip(counts, shares, strict=True)}
    fair = 100 * counts / (counts + 1)
    axes[0].plot(counts, fair, color=BLACK, linestyle=(0, (1, 2)), linewidth=1)
    label(axes[0], 6.1, 82, "n / (n + 1)", BLACK, va="top")
    axes[0].set(xlabel="subflows", ylabel="share of the link (%)", ylim=(0, 100), xlim=(1, 8))
    return Caption(
        "Each uncoupled subflow takes a share, coupled ones about one in all",
        "10 Mbit/s, 40 ms RTT, RED; against one NewReno flow; 180 s; means of 3 seeds",
        numbers,
    )


def _share(run: Run) -> float:
    return goodput(run) / (goodput(run) + goodput(run, 1))


@picture()
def backup(axes: Sequence[Axes]) -> Caption:
    """Throughput by path while the regular path is down."""
    runs = {name: _run(name, _silent(20, 30)) for name in ("full_mesh", "backup")}
    for panel, (name, run) in zip(axes, runs.items(), strict=True):
        _by_path(panel, run, name)
        _shade(panel, 20, 30)
    axes[0].set_ylabel("throughput (Mbit/s)")
    axes[0].legend(loc="lower right")
    samples = runs["backup"].subflow_samples
    before = samples.filter((samples["path"] == 1) & (samples["time_ns"] <= 20_000_000_000))
    noticed = _run("backup", _silent(20, 30, noticed=True))
    return Caption(
        "The backup carries no data until the regular path fails",
        LINKS,
        {
            "bytes on LTE in the first 20 s": float(before["bytes_received"].to_numpy().max()),
            "gap, s": _gap_s(runs["backup"], 20),
            "gap when noticed, s": _gap_s(noticed, 20),
        },
    )


@picture()
def single_path(axes: Sequence[Axes]) -> Caption:
    """Throughput by path when the interface goes down, and when the path only falls silent."""
    numbers = {}
    for panel, noticed in zip(axes, (True, False), strict=True):
        run = _run("single_path", _silent(20, 25, noticed))
        _by_path(panel, run, "the interface goes down" if noticed else "the path goes silent")
        _shade(panel, 20, 25)
        numbers[f"gap, {'noticed' if noticed else 'silent'}, s"] = _gap_s(run, 20)
    upload = _run("single_path", _silent(20, None), direction="upload")
    numbers["gap, silent, upload, s"] = _gap_s(upload, 20)
    axes[0].set_ylabel("throughput (Mbit/s)")
    axes[0].legend(loc="lower right")
    return Caption(
        "A receiver moves when its interface goes down, but does not detect a silent path",
        LINKS + "; download",
        numbers,
    )


@picture()
def drepas(axes: Sequence[Axes]) -> Caption:
    """Goodput with a very slow second path, and with useful second paths."""
    names = {"drepas": "drepas", "full_mesh": "full_mesh", "WLAN only": "initial_only"}
    numbers: dict[str, float] = {}
    lines = ((BLUE, "-"), (GREY, "-"), (BLACK, (0, (2, 2))))
    sizes = ("256KiB", "512KiB", "1MiB", "2MiB")
    for (name, manager), (colour, line) in zip(names.items(), lines, strict=True):
        runs = [_run(manager, (), GPRS, send_buffer=b, receive_buffer=b) for b in sizes]
        rates = np.array([goodput(run) for run in runs])
        curve(axes[0], (np.arange(4.0), rates), colour, name, line)
        delays = [metrics.delays_ms(run).mean() for run in runs]
        numbers |= {f"2G, {name}, {b}": float(v) for b, v in zip(sizes, rates, strict=True)}
        numbers |= {f"2G, {name}, {b}, ms": float(v) for b, v in zip(sizes, delays, strict=True)}
    axes[0].set_xticks(range(4), ("256 KiB", "512 KiB", "1 MiB", "2 MiB"))
    axes[0].set(xlabel="send and receive buffer", ylabel="goodput (Mbit/s)", ylim=(0, 10))
    axes[0].set_title("with 2G: 0.2 Mbit/s, 400 ms RTT")
    axes[0].legend(loc="center right")
    probed = _run("drepas", (), GPRS).subflows["bytes_received"][1]
    numbers["2G, drepas, 512KiB, Mbit/s on 2G"] = probed * 8e-6 / 60
    _others(axes[1], numbers)
    return Caption(
        "DRePaS makes a very slow path harmless, but not a path that stalls the window",
        "WLAN 8 Mbit/s (right: 8 or 20), 20 ms RTT; right: second path of 2 Mbit/s, RTT 150 ms (3G)"
        " or 20 ms (equal)",
        numbers,
    )


def _others(axes: Axes, numbers: dict[str, float]) -> None:
    """Draw the goodput of the three path managers with second paths that are worth using."""
    equal = dataclasses.replace(WLAN, name="b", rate="2Mbit/s")
    places = {
        "8 + 2, 3G\n512 KiB": ("8Mbit/s", THREE_G, "512KiB"),
        "8 + 2, 3G\n2 MiB": ("8Mbit/s", THREE_G, "2MiB"),
        "20 + 2, 3G\n512 KiB": ("20Mbit/s", THREE_G, "512KiB"),
        "20 + 2, equal\n2 MiB": ("20Mbit/s", equal, "2MiB"),
    }
    for at, (where, (rate, second, buffer)) in enumerate(places.items()):
        for side, (manager, colour) in enumerate(
            (("initial_only", BLACK), ("full_mesh", GREY), ("drepas", BLUE))
        ):
            connection = Connection(
                workload=Blocks(), path_manager=manager, send_buffer=buffer, receive_buffer=buffer
            )
            paths = [dataclasses.replace(WLAN, rate=rate), second]
            value = goodput(run_one(scenario(paths, [connection], 60, 5)))
            axes.bar(at + (side - 1) * 0.27, value, 0.25, color=colour)
            numbers[f"{where.replace(chr(10), ', ')}, {manager}"] = value
    names_below(axes, list(places))
    axes.tick_params(axis="x", labelsize=7)
    axes.set(
        ylabel="goodput (Mbit/s)",
        ylim=(0, 24),
        title="second path of 2 Mbit/s (rates in Mbit/s; buffers)",
    )
