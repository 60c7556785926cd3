"""Pictures of the congestion controls, and of shared-bottleneck detection."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from anabranch import Bulk, Connection, NetworkPath, Queue, Run, Scenario
from anabranch.reports.figures import BLUE, GREEN, GREY, ORANGE, SKY
from anabranch.results.metrics import connection_row
from anabranch.scenarios.scenario import SharedBottleneckDetection
from pictures.common import (
    Caption,
    Numbers,
    bulk,
    curve,
    goodput,
    label,
    names_below,
    picture,
    run_each,
    run_one,
    scenario,
    series,
    throughput,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def access(name: str, via: str = "core", delay: str = "1ms") -> NetworkPath:
    """An access path to a shared link. It is never the bottleneck itself."""
    return NetworkPath(name=name, via=via, rate="1Gbit/s", delay=delay, limit="infinite")


def tcp(path: str, start_ms: int = 0) -> Connection:
    """A competing TCP flow: NewReno over one path."""
    return bulk(paths=(path,), protocol="tcp", start=f"{start_ms}ms", congestion_control="new_reno")


def _alone(path: NetworkPath, control: str, duration_s: float = 60, **keys: Any) -> Run:
    connection = bulk(protocol="tcp", congestion_control=control, **keys)
    return run_one(scenario([path], [connection], duration_s, 10, "50ms"))


# ---- uncoupled ------------------------------------------------------------------------------

LONG = NetworkPath(name="long", rate="100Mbit/s", delay="50ms", limit="1250kB")
LOSSY = NetworkPath(name="lossy", rate="20Mbit/s", delay="20ms", limit="70packets")
AMPLE: dict[str, Any] = {"send_buffer": "64MiB", "receive_buffer": "64MiB"}


@picture()
def new_reno(axes: Sequence[Axes]) -> Caption:
    """The sawtooth of the congestion window, and the queue at the end of slow start."""
    path = NetworkPath(name="path", rate="10Mbit/s", delay="20ms", limit="35packets")
    seconds, cwnd = series(_alone(path, "new_reno"), "cwnd")
    curve(axes[0], (seconds, cwnd / 1448), BLUE)
    axes[0].set(xlabel="time (s)", ylabel="congestion window (segments)", xlim=(0, 60))
    axes[0].set_ylim(0)
    axes[0].set_title("10 Mbit/s; path of 42 packets, queue of 35")
    numbers = {}
    for hystart, colour, name in ((False, GREY, "without"), (True, BLUE, "with HyStart++")):
        run = _alone(LONG, "new_reno", hystart=hystart, **AMPLE)
        seconds, queue = series(run, "queue_packets")
        early = seconds < 8
        curve(axes[1], (seconds[early], queue[early]), colour, name)
        numbers[f"packets dropped, {name}"] = float(run.links["dropped_by_queue"][0])
    axes[1].set(xlabel="time (s)", ylabel="queue (packets)", xlim=(0, 8), ylim=(0, 1000))
    axes[1].set_title("slow start on 100 Mbit/s, 100 ms RTT")
    axes[1].legend(loc="upper right")
    return Caption(
        "The window grows by a segment per RTT and halves on loss; HyStart++ limits the first loss",
        "one TCP flow; the queues hold one bandwidth-delay product",
        numbers,
    )


@picture()
def cubic(axes: Sequence[Axes]) -> Caption:
    """Two subflows of one connection over equal lossy paths, one with CUBIC, one with NewReno."""
    paths = [
        NetworkPath(name=name, rate="100Mbit/s", delay="50ms", limit="900packets", loss="0.02%")
        for name in ("a", "b")
    ]
    numbers = {}
    for panel, controls in zip(axes, (("cubic", "new_reno"), ("new_reno", "cubic")), strict=True):
        control = dict(zip("ab", controls, strict=True))
        connection = bulk(
            send_buffer="16MiB", receive_buffer="16MiB", hystart=False, congestion_control=control
        )
        run = run_one(scenario(paths, [connection], 100))
        for at, name in enumerate(controls):
            seconds, cwnd = series(run, "cwnd", at)
            colour = BLUE if name == "cubic" else GREY
            rate = run.subflows["bytes_sent"][at] * 8e-8
            curve(panel, (seconds, cwnd / 1448), colour, f"{name} on {'ab'[at]}: {rate:.0f} Mbit/s")
            numbers[f"Mbit/s, {name} on {'ab'[at]}"] = rate
        dropped = _alone(LONG, "cubic", hystart=controls[0] == "cubic", **AMPLE).links
        words = "with HyStart++" if controls[0] == "cubic" else "without"
        numbers[f"packets dropped on 100 Mbit/s alone, {words}"] = dropped["dropped_by_queue"][0]
        panel.set(xlabel="time (s)", xlim=(0, 100), ylim=(0, 650))
        panel.legend(loc="upper right")
    axes[0].set_ylabel("congestion window (segments)")
    for place, core in QUEUES.items():
        share = _shares(tuple(core.items()), "cubic").mean()
        numbers[f"share of two subflows against NewReno, {place}, %"] = 100 * float(share)
    return Caption(
        "On long paths CUBIC recovers faster than NewReno from the same losses",
        "2 × 100 Mbit/s, 100 ms RTT, 0.02 % loss; one connection with a different control on each "
        "path, then swapped",
        numbers,
    )


@picture()
def cubic_linux(axes: Sequence[Axes]) -> Caption:
    """Goodput over a lossy path, by loss rate and by round-trip time."""
    colours = {"cubic": BLUE, "cubic_linux": ORANGE, "new_reno": GREY}
    losses, delays = np.array([0.1, 0.2, 0.5, 1, 2]), np.array([5, 10, 20, 40, 80])
    numbers = {}
    for panel, (values, cases) in zip(
        axes,
        ((losses, [(loss, 20) for loss in losses]), (delays * 2, [(0.5, d) for d in delays])),
        strict=True,
    ):
        for name, colour in colours.items():
            scenarios = []
            for loss, delay in cases:
                path = NetworkPath(
                    name="a",
                    rate="100Mbit/s",
                    delay=f"{delay}ms",
                    limit="900packets",
                    loss=f"{loss}%",
                )
                scenarios.append(
                    scenario([path], [bulk(protocol="tcp", congestion_control=name)], 100, 5)
                )
            rates = np.array([goodput(run) for (run,) in run_each(scenarios)])
            curve(panel, (values, rates), colour, name)
            if values is losses:
                numbers[f"{name} with 0.5 % of losses and 40 ms, Mbit/s"] = float(rates[2])
        panel.set(ylabel="goodput (Mbit/s)", yscale="log", xscale="log")
        panel.minorticks_off()
        panel.set_xticks(values, [f"{value:g}" for value in values])
        panel.set_yticks([2, 5, 10, 20], ["2", "5", "10", "20"])
    axes[0].set_xlabel("loss rate (%), 40 ms RTT")
    axes[1].set_xlabel("round-trip time (ms), 0.5 % loss")
    axes[0].legend(loc="upper right")
    return Caption(
        "With random loss, cubic_linux is slower than NewReno, except on long paths",
        "100 Mbit/s; one TCP connection; 95 s each",
        numbers,
    )


def _model_of_path(axes: Sequence[Axes], message: str, colours: dict[str, str]) -> Caption:
    """The round-trip time over a bufferbloated path, and the goodput over a lossy one."""
    deep = NetworkPath(name="deep", rate="10Mbit/s", delay="20ms", limit="400packets")
    numbers = {}
    for name, colour in colours.items():
        seconds, srtt = series(_alone(deep, name, 30), "srtt_ns")
        curve(axes[0], (seconds, srtt / 1e6), colour, name)
        numbers[f"{name}: median round-trip time, ms"] = float(np.nanmedian(srtt)) / 1e6
    axes[0].set(xlabel="time (s)", ylabel="round-trip time (ms)", xlim=(0, 30))
    axes[0].set_ylim(0)
    axes[0].set_title("10 Mbit/s, 40 ms; queue of 400 packets")
    losses = np.array([0.1, 0.2, 0.5, 1, 2, 5])
    for name, colour in colours.items():
        connection = bulk(protocol="tcp", congestion_control=name)
        paths = [dataclasses.replace(LOSSY, loss=f"{loss}%") for loss in losses]
        runs = run_each([scenario([path], [connection], 60, 5) for path in paths])
        rates = np.array([goodput(run) for (run,) in runs])
        curve(axes[1], (losses, rates), colour, name)
        numbers[f"{name} with 1 % of losses, Mbit/s"] = float(rates[3])
    axes[1].set(xlabel="loss rate (%)", ylabel="goodput (Mbit/s)", xscale="log")
    axes[1].minorticks_off()
    axes[1].set_xticks(losses, [f"{loss:g}" for loss in losses])
    axes[1].set_ylim(0)
    axes[1].set_title("20 Mbit/s, 40 ms")
    axes[1].legend(loc="lower left")
    return Caption(message, "one TCP connection", numbers)


@picture()
def bbr(axes: Sequence[Axes]) -> Caption:
    """BBR version 1, compared with CUBIC."""
    message = "BBR keeps the queue short, and losses hardly slow it down"
    return _model_of_path(axes, message, {"bbr": BLUE, "cubic_linux": ORANGE})


@picture()
def bbr3(axes: Sequence[Axes]) -> Caption:
    """BBR version 3, compared with version 1 and with CUBIC."""
    message = "Version 3 keeps the queue shorter, and gives way to losses above 2 %"
    return _model_of_path(axes, message, {"bbr3": GREEN, "bbr": BLUE, "cubic_linux": ORANGE})


# ---- coupled, on one shared link ------------------------------------------------------------

QUEUES: dict[str, dict[str, Any]] = {
    "random loss 0.5 %": {"limit": "400packets", "loss": "0.5%"},
    "drop-tail, 35 packets": {"limit": "35packets"},
}
CONTROLS = {
    "new_reno": GREY, "lia": BLUE, "olia": GREEN, "balia": ORANGE, "wvegas": SKY,
}  # fmt: skip


def _against_tcp(core: tuple[tuple[str, str], ...], control: str, seed: int) -> Scenario:
    keys: dict[str, Any] = dict(core)
    paths = [
        NetworkPath(name="core", rate="10Mbit/s", delay="20ms", **keys),
        *(access(name) for name in "abc"),
    ]
    first = bulk(paths=("a", "b"), congestion_control=control)
    return scenario(paths, [first, tcp("c", seed * 7919 % 1000)], 170, 20, "10s")


@functools.cache
def _shares(core: tuple[tuple[str, str], ...], control: str) -> Numbers:
    """The share of two subflows on a link with one TCP flow, for each seed."""
    seeds = range(1, 7)
    runs = [run_each([_against_tcp(core, control, seed)], [seed])[0][0] for seed in seeds]
    return np.array([goodput(run) / (goodput(run) + goodput(run, 1)) for run in runs])


@picture()
def lia(axes: Sequence[Axes]) -> Caption:
    """The share of two subflows that compete with one TCP flow on one link."""
    numbers = {}
    names = [name for name in CONTROLS if name != "wvegas"]
    for panel, (queue, core) in zip(axes, QUEUES.items(), strict=True):
        for at, name in enumerate(names):
            shares = 100 * _shares(tuple(core.items()), name)
            spread = np.linspace(-0.2, 0.2, shares.size)
            panel.plot(at + spread, shares, ".", color=CONTROLS[name])
            panel.plot((at - 0.3, at + 0.3), [shares.mean()] * 2, color=CONTROLS[name])
            numbers[f"{name}, {queue}, %"] = float(shares.mean())
        panel.axhline(50, color=GREY, linestyle=":", linewidth=0.9)
        names_below(panel, names)
        panel.set(ylim=(40, 75), title=queue)
    axes[0].set_ylabel("share of the link (%)")
    return Caption(
        "Against a TCP flow, two coupled subflows take half of a link, uncoupled ones two thirds",
        "10 Mbit/s, 42 ms RTT, against one NewReno flow; 150 s; 6 seeds (dots) and mean",
        numbers,
    )


# ---- scenario C -----------------------------------------------------------------------------


@picture(columns=1)
def lia_linux(axes: Sequence[Axes]) -> Caption:
    """Goodput of both forms of LIA with random losses."""
    losses = np.array([0.1, 0.2, 0.5, 1.0])
    numbers: dict[str, float] = {}
    for name, colour in (("lia", BLUE), ("lia_linux", ORANGE)):
        means = []
        for loss in losses:
            path = NetworkPath(
                name="one", rate="20Mbit/s", delay="20ms", limit="100packets", loss=f"{loss}%"
            )
            offered = bulk(stack="mptcp.org-0.89", congestion_control=name, **AMPLE)
            paths = [path, dataclasses.replace(path, name="other")]
            (runs,) = run_each([scenario(paths, [offered], 60, 5)], range(1, 6))
            means.append(float(np.mean([goodput(run) for run in runs])))
            numbers[f"{name}, {loss} %, Mbit/s"] = means[-1]
        curve(axes[0], (losses, np.array(means)), colour, name)
    axes[0].set(xlabel="loss on each path (%)", ylabel="goodput (Mbit/s)", ylim=(0, None))
    axes[0].legend()
    return Caption(
        "A segment more after each loss",
        "the original kernel's stack; two paths of 20 Mbit/s and 40 ms; means of 5 seeds",
        numbers,
    )


def _red(least: int, most: int) -> Queue:
    return Queue(kind="red", min_packets=least, max_packets=most)


def _scenario_c(control: str, seed: int) -> Scenario:
    """Three users with a private link and a shared link, three users with only the shared link."""
    limit = "1000packets"
    paths = [
        NetworkPath(name="shared", rate="6Mbit/s", delay="20ms", limit=limit, queue=_red(10, 42))
    ]  # fmt: skip
    for n in range(3):
        own = NetworkPath(
            name=f"own{n}", rate="2Mbit/s", delay="21ms", limit=limit, queue=_red(5, 15)
        )
        paths += [own, access(f"also{n}", "shared"), access(f"only{n}", "shared")]
    several = [
        bulk(
            paths=(f"own{n}", f"also{n}"), congestion_control=control,
            start=f"{(seed * 7919 + 331 * n) % 1500}ms",
        )
        for n in range(3)
    ]  # fmt: skip
    single = [tcp(f"only{n}", (seed * 7919 + 557 * n + 100) % 1500) for n in range(3)]
    return scenario(paths, several + single, 220, 20, "10s")


@picture(columns=1)
def olia(axes: Sequence[Axes]) -> Caption:
    """The mean goodput of multipath users and of TCP users."""
    names = ("new_reno", "lia", "balia", "olia")
    found = []
    for name in names:
        runs = [run_one(_scenario_c(name, seed), seed) for seed in range(1, 5)]
        users = np.array([[goodput(run, n) for n in range(6)] for run in runs])
        found.append((users[:, :3].mean(), users[:, 3:].mean()))
    for side, (kind, colour) in enumerate((("multipath users", BLUE), ("TCP users", ORANGE))):
        heights = [float(pair[side]) for pair in found]
        at = np.arange(len(names)) + (side - 0.5) * 0.38
        axes[0].bar(at, heights, 0.36, color=colour, label=kind)
        for x, height in zip(at, heights, strict=True):
            label(axes[0], x, height, f"{height:.2f}", "black", ha="center", va="bottom")
    names_below(axes[0], names)
    axes[0].axhline(1.93, color=GREY, linestyle=":", linewidth=0.9)
    axes[0].set(ylabel="mean goodput of a user (Mbit/s)", ylim=(0, 3.9))
    axes[0].legend(loc="upper right", ncols=2)
    return Caption(
        "OLIA leaves more goodput to TCP users than LIA",
        "3 users with a private 2 Mbit/s path and a path over 6 Mbit/s shared with 3 TCP users;\n"
        "RED; 200 s; means of 4 seeds; dotted: goodput of a 2 Mbit/s path alone",
        {f"{name}, multipath": float(pair[0]) for name, pair in zip(names, found, strict=True)}
        | {f"{name}, TCP": float(pair[1]) for name, pair in zip(names, found, strict=True)},
    )


# ---- responsiveness -------------------------------------------------------------------------


def _rivals(control: str, seed: int) -> Scenario:
    """Two links. After a minute, three TCP flows of 18 MB each join the second link."""
    paths = [
        NetworkPath(name=name, rate="10Mbit/s", delay="20ms", limit="35packets")
        for name in ("a", "b")
    ]
    starts = [60_000 + seed * 7919 % 1000 + 331 * n for n in range(3)]
    rivals = [dataclasses.replace(tcp("b", start), workload=Bulk(size="18MB")) for start in starts]
    return scenario(paths, [bulk(paths=("a", "b"), congestion_control=control), *rivals], 160)


@picture(columns=1)
def balia(axes: Sequence[Axes]) -> Caption:
    """The throughput of a subflow that yields to competitors, and recovers afterwards."""
    numbers = {}
    for name in ("new_reno", "lia", "olia", "balia"):
        runs = [run_one(_rivals(name, seed), seed) for seed in range(1, 7)]
        seconds, _ = throughput(runs[0], 1)
        rate = np.mean([throughput(run, 1)[1] for run in runs], axis=0)
        curve(axes[0], (seconds, rate), CONTROLS[name], name)
        shared = (seconds > 60) & (rate < 2)
        numbers[f"s until below 2 Mbit/s, {name}"] = float(seconds[shared][0] - 60)
        numbers[f"Mbit/s from 62 s to 65 s, {name}"] = float(rate[62:65].mean())
        back = seconds[(seconds > 90) & (rate > 9)][0] - seconds[(seconds > 90) & (rate < 3)][-1]
        numbers[f"s from 3 to 9 Mbit/s, {name}"] = float(back)
    axes[0].set(xlabel="time (s)", ylabel="throughput (Mbit/s)")
    axes[0].set(xlim=(50, 150), ylim=(0, 11))
    axes[0].set_title("subflow on the link that three TCP flows join")
    axes[0].legend(loc="center right")
    return Caption(
        "BALIA yields within three seconds, and recovers before OLIA",
        "2 × 10 Mbit/s, 40 ms RTT, queues of 35 packets; at 60 s three NewReno flows of 18 MB\n"
        "each join one of the links; means of 6 seeds",
        numbers,
    )


# ---- delay ----------------------------------------------------------------------------------


@picture()
def wvegas(axes: Sequence[Axes]) -> Caption:
    """The queue that wVegas keeps, and the paths that it does not fill."""
    path = NetworkPath(name="path", rate="100Mbit/s", delay="10ms", limit="250kB")
    for name, colour in (("new_reno", GREY), ("wvegas", BLUE)):
        seconds, queue = series(_alone(path, name), "queue_packets")
        curve(axes[0], (seconds, queue), colour, name)
    axes[0].set(xlabel="time (s)", ylabel="queue (packets)", xlim=(0, 60), ylim=(0, 240))
    axes[0].set_title("100 Mbit/s, 20 ms RTT")
    axes[0].legend(loc="upper right")
    numbers = {}
    places = ((8, 20), (10, 100), (10, 200), (20, 200), (50, 200))
    for at, (rate, rtt) in enumerate(places):
        queue_kb = rate * rtt / 8
        path = NetworkPath(
            name="p", rate=f"{rate}Mbit/s", delay=f"{rtt / 2:g}ms", limit=f"{queue_kb:g}kB"
        )
        for side, (name, colour) in enumerate((("new_reno", GREY), ("wvegas", BLUE))):
            used = goodput(_alone(path, name, 100)) * 1500 / 1448 / rate
            axes[1].bar(at + (side - 0.5) * 0.38, 100 * used, 0.36, color=colour)
            numbers[f"{name}, {rate} Mbit/s × {rtt} ms, %"] = 100 * used
    for place, core in QUEUES.items():
        share = _shares(tuple(core.items()), "wvegas").mean()
        numbers[f"share of two subflows against NewReno, {place}, %"] = 100 * float(share)
    names_below(axes[1], [f"{rate} Mbit/s\n{rtt} ms" for rate, rtt in places])
    axes[1].tick_params(axis="x", labelsize=7)
    axes[1].set(ylabel="link used (%)", ylim=(0, 115), title="other links, 90 s")
    return Caption(
        "wVegas keeps ten segments in the queue; on long paths it can get stuck below capacity",
        "one TCP flow; the queues hold one bandwidth-delay product",
        numbers,
    )


# ---- shared-bottleneck detection ------------------------------------------------------------


def _detection(separate: bool, keys: dict[str, Any], seed: int) -> Scenario:
    """Two links with one TCP flow each, or one link with one TCP flow."""
    start = seed * 7919 % 1000
    if separate:
        links = (("a", "15ms", 50), ("b", "30ms", 80))
        paths = [
            NetworkPath(name=n, rate="10Mbit/s", delay=d, limit=f"{p}packets") for n, d, p in links
        ]
        rivals = [tcp("a", start), tcp("b", 2 * start)]
    else:
        core = NetworkPath(name="core", rate="10Mbit/s", delay="10ms", limit="60packets")
        paths = [core, access("a", delay="5ms"), access("b", delay="20ms")]
        rivals = [tcp("core", start)]
    return scenario(paths, [bulk(paths=("a", "b"), **keys), *rivals], 200, 60, "350ms")


SEEDS = range(1, 7)
DETECTION: dict[str, dict[str, Any]] = {
    "coupled": {},
    "coupled if\ndetected": {"shared_bottleneck_detection": SharedBottleneckDetection()},
    "uncoupled": {"congestion_control": "new_reno"},
}


@picture()
def shared_bottleneck_detection(axes: Sequence[Axes]) -> Caption:
    """The share of the multipath connection, and how often the detection is right."""
    numbers: dict[str, float] = {}
    for place, separate in enumerate((True, False)):
        where = "2 links with a TCP flow each" if separate else "1 link with a TCP flow"
        for at, (name, keys) in enumerate(DETECTION.items()):
            runs = [run_one(_detection(separate, keys, seed), seed) for seed in SEEDS]
            shares = np.array([100 * _share(run) for run in runs])
            colour = (GREY, BLUE, ORANGE)[at]
            axes[place].plot(at + np.linspace(-0.2, 0.2, shares.size), shares, ".", color=colour)
            axes[place].plot((at - 0.3, at + 0.3), [shares.mean()] * 2, color=colour)
            numbers[f"share, {name}, {where}, %"] = float(shares.mean())
            if at == 1:
                same = [connection_row(run)["one_bottleneck_share"] or 0 for run in runs]
                words = f"both coupled, {where}, % of intervals"
                numbers[words] = 100 * float(np.mean(same))
                numbers[f"{words}, least"] = 100 * min(same)
                numbers[f"{words}, most"] = 100 * max(same)
        names_below(axes[place], list(DETECTION))
        axes[place].set(ylim=(20, 80), title=where)
    axes[0].set_ylabel("share of all goodput (%)")
    return Caption(
        "Subflows are uncoupled on separate links, and coupled most of the time on a shared link",
        "10 Mbit/s links, LIA or NewReno against NewReno; 140 s after 60 s of warm-up; "
        "6 seeds (dots), mean",
        numbers,
    )


def _share(run: Run) -> float:
    each = [goodput(run, connection) for connection in range(run.connections.height)]
    return each[0] / sum(each)
