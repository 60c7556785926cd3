"""Pictures of the schedulers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from anabranch import Blocks, Bulk, Cbr, Connection, NetworkPath, Run
from anabranch.reports.figures import BLUE, GREEN, GREY, ORANGE, RED
from anabranch.results import metrics
from anabranch.scenarios.scenario import Change, RequestResponse
from pictures.common import (
    THREE_G,
    WIFI,
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
    share_of_second,
    values_above,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@picture()
def min_rtt(axes: Sequence[Axes]) -> Caption:
    """The share of the slow path, and its cost in delay, as the load grows."""
    loads = np.arange(0.5, 10, 0.5)
    shares, delays = {}, {}
    for name in ("min_rtt", "round_robin"):
        offered = [
            Connection(workload=Cbr(rate=f"{load:g}Mbit/s"), scheduler=name) for load in loads
        ]
        runs = [run for (run,) in run_each(scenario([WIFI, THREE_G], [c], 60, 5) for c in offered)]
        shares[name] = np.array([100 * share_of_second(run) for run in runs])
        delays[name] = np.array([metrics.delays_ms(run).mean() for run in runs])
    for panel, values in zip(axes, (shares, delays), strict=True):
        for (name, y), colour in zip(values.items(), (BLUE, ORANGE), strict=True):
            curve(panel, (loads, y), colour, name)
        panel.set_xlabel("offered load (Mbit/s)")
        panel.set_xlim(0)
    axes[0].set(ylabel="carried by 3G (% of payload)", ylim=(0, 60))
    axes[1].set(ylabel="mean delay of a block (ms)", yscale="log", ylim=(8, 3000))
    axes[0].legend(loc="upper right")
    low = loads == 4
    return Caption(
        "min_rtt leaves the slow path empty until the fast one is full",
        "WiFi 8 Mbit/s, 20 ms RTT; 3G 2 Mbit/s, 150 ms RTT; blocks of 8 KiB at a constant rate; "
        "60 s each",
        {f"{name} at 4 Mbit/s, ms": float(delays[name][low][0]) for name in delays}
        | {f"{name} at 4 Mbit/s, % on 3G": float(shares[name][low][0]) for name in shares},
    )


NEAR = NetworkPath(name="near", rate="50Mbit/s", delay="5ms", limit="200packets")
FAR = NetworkPath(name="far", rate="50Mbit/s", delay="50ms", limit="200packets")
FAST = NetworkPath(name="fast", rate="8Mbit/s", delay="5ms", limit="200packets")
SLOW = NetworkPath(name="slow", rate="2Mbit/s", delay="50ms", limit="200packets")
STRICT = {"kind": "round_robin", "cwnd_limited": False}


@picture()
def round_robin(axes: Sequence[Axes]) -> Caption:
    """Throughput by path where turns decide, and where congestion windows decide."""
    few = [bulk(scheduler=name, send_buffer="15kB") for name in ("min_rtt", "round_robin")]
    left = [run for (run,) in run_each(scenario([NEAR, FAR], [each], 30) for each in few)]
    _stacked(axes[0], left, ("near, 10 ms RTT", "far, 100 ms RTT"))
    names_below(axes[0], ("min_rtt", "round_robin"))
    axes[0].set_title("send buffer of 15 kB: turns decide")
    much = [bulk(scheduler=name) for name in ("min_rtt", "round_robin", STRICT)]
    right = [run for (run,) in run_each(scenario([FAST, SLOW], [each], 30) for each in much)]
    _stacked(axes[1], right, ("8 Mbit/s", "2 Mbit/s"))
    names_below(axes[1], ("min_rtt", "round_robin", "round_robin,\ncwnd_limited = false"))
    axes[1].set_title("bulk: congestion windows decide")
    shares = [share_of_second(run) for run in left]
    return Caption(
        "Turns are equal only while windows have room; the slow path limits strict round robin",
        "left: 2 × 50 Mbit/s; right: 8 Mbit/s, 10 ms RTT and 2 Mbit/s, 100 ms RTT; 30 s each",
        {
            "far's share, min_rtt": shares[0],
            "far's share, round_robin": shares[1],
            "goodput, round_robin": goodput(right[1]),
            "goodput, strict": goodput(right[2]),
        },
    )


def _stacked(axes: Axes, runs: Sequence[Run], paths: Sequence[str]) -> None:
    """Draw the payload throughput of two paths as stacked bars, one bar for each run."""
    for at, run in enumerate(runs):
        byte_count = run.subflows.group_by("path").agg(pl.col("bytes_received").sum())
        by_path = dict(byte_count.iter_rows())
        below = 0.0
        for path, (name, colour) in enumerate(zip(paths, (BLUE, RED), strict=True)):
            rate = by_path.get(path, 0) * 8e3 / run.virtual_ns
            axes.bar(at, rate, 0.6, bottom=below, color=colour, label=None if at else name)
            below += rate
        label(
            axes, at, below, f"{below:.1f}", "black",
            ha="center", va="bottom", xytext=(0, 2), textcoords="offset points",
        )  # fmt: skip
    axes.set_ylabel("throughput (Mbit/s)")
    axes.set_ylim(0, 14)
    axes.legend(loc="upper right")


def _two_paths(dead: bool) -> list[NetworkPath]:
    down = (Change(at="5s", state="down"),) if dead else ()
    return [
        NetworkPath(name="fast", rate="8Mbit/s", delay="10ms", limit="54packets", changes=down),
        NetworkPath(name="slow", rate="8Mbit/s", delay="20ms", limit="54packets"),
    ]


def _blackout(name: str) -> Run:
    connection = Connection(
        workload=Blocks(), scheduler=name, send_buffer="40kB", congestion_control="new_reno"
    )
    return run_one(scenario(_two_paths(dead=True), [connection], 20))


@picture()
def redundant(axes: Sequence[Axes]) -> Caption:
    """Delay of blocks when a path becomes a black hole, and the cost in goodput."""
    worst, prices = {}, {}
    for name, colour in (("min_rtt", GREY), ("redundant", BLUE)):
        blocks = _blackout(name).blocks
        at, delay = _delays(blocks)
        near = (at > 4) & (at < 6.5)
        axes[0].plot(at[near], delay[near], ".", markersize=4, color=colour, label=name)
        worst[name] = float(delay[at > 4].max())
        steady = bulk(scheduler=name, congestion_control="new_reno")
        prices[name] = goodput(run_one(scenario(_two_paths(dead=False), [steady], 60, 5)))
    axes[0].set(xlabel="time of acceptance (s)", ylabel="delay of a block (ms)", ylim=(0, None))
    axes[0].axvline(5, color=GREY, linewidth=0.8, linestyle=":")
    label(axes[0], 5.03, worst["min_rtt"] * 0.5, "fast path\ndrops all", GREY)
    axes[0].legend(loc="upper left")
    axes[1].bar(range(2), list(prices.values()), 0.6, color=(GREY, BLUE))
    names_below(axes[1], list(prices))
    values_above(axes[1], list(prices.values()))
    axes[1].set(ylabel="goodput, both paths up (Mbit/s)")
    axes[1].margins(y=0.15)
    return Caption(
        f"With redundancy, a black hole delays a block by {worst['redundant']:.0f} ms instead of "
        f"{worst['min_rtt']:.0f} ms, at half the capacity",
        "2 × 8 Mbit/s, 20 and 40 ms RTT, the first is a black hole from 5 s on; 8 KiB blocks, "
        "send buffer 40 kB; right: bulk, 4 MiB",
        {f"worst delay, {name}, ms": value for name, value in worst.items()}
        | {f"goodput, {name}": value for name, value in prices.items()},
    )


def _delays(blocks: pl.DataFrame) -> tuple[Numbers, Numbers]:
    accepted = blocks["accepted_ns"].to_numpy().astype(np.float64)
    delivered = blocks["delivered_ns"].to_numpy().astype(np.float64)
    return accepted / 1e9, (delivered - accepted) / 1e6


WLAN = NetworkPath(name="wlan", rate="25Mbit/s", delay="25ms", limit="100packets", loss="1%")
BLOATED = NetworkPath(name="3g", rate="5Mbit/s", delay="65ms", limit="3750packets")


@picture()
def blest(axes: Sequence[Axes]) -> Caption:
    """Reinjections and duration of a bulk transfer, for each seed."""
    remedies = {"opportunistic_retransmission": True, "penalisation": True}
    chosen: dict[str, Any] = {
        "min_rtt": "min_rtt",
        "blest\nlinux": "blest",
        "blest paper\nstep 0.01": {"kind": "blest", "rule": "paper"},
        "blest paper\nstep 0.001": {"kind": "blest", "rule": "paper", "step": 0.001},
    }
    transfers = [
        Connection(
            workload=Bulk(size="64MiB"), send_buffer="1024KiB", receive_buffer="2048KiB",
            congestion_control="olia", remedies=remedies, scheduler=each,
        )
        for each in chosen.values()
    ]  # fmt: skip
    runs = run_each((scenario([WLAN, BLOATED], [c], 150) for c in transfers), range(1, 11))
    again = [np.array([run.connections["reinjections"][0] for run in each]) for each in runs]
    took = [np.array([_duration_s(run) for run in each]) for each in runs]
    for panel, values in zip(axes, (again, took), strict=True):
        for at, each in enumerate(values):
            colour = (GREY, BLUE, ORANGE, RED)[at]
            panel.plot(np.linspace(-0.2, 0.2, each.size) + at, each, ".", color=colour)
            panel.plot((at - 0.3, at + 0.3), [np.median(each)] * 2, color=colour)
        names_below(panel, list(chosen))
        panel.tick_params(axis="x", labelsize=7)
        panel.set_ylim(0, 1.12 * max(float(each.max()) for each in values))
    axes[0].set_ylabel("reinjected segments")
    axes[1].set_ylabel("duration of the transfer (s)")
    words = [name.replace("\n", ", ") for name in chosen]
    medians = [float(np.median(each)) for each in again]
    return Caption(
        f"BLEST reinjects {medians[1]:.0f} segments, min_rtt {medians[0]:.0f}; "
        "the rule of the paper avoids few reinjections",
        "64 MiB over WLAN 25 Mbit/s, 1 % loss and 3G 5 Mbit/s (Ferlin et al. 2016); OLIA; 10 seeds"
        " (dots) and median",
        {f"reinjections, {name}": value for name, value in zip(words, medians, strict=True)}
        | {f"s, {n}": float(np.median(each)) for n, each in zip(words, took, strict=True)},
    )


def _duration_s(run: Run) -> float:
    done = run.connection_samples.filter(pl.col("bytes_delivered") >= 64 << 20)["time_ns"]
    return float(done.to_numpy().min()) / 1e9


@picture(columns=1)
def ecf(axes: Sequence[Axes]) -> Caption:
    """The duration of transfers over their size."""
    paths = [
        NetworkPath(name="fast", rate="10Mbit/s", delay="20ms", limit="100packets"),
        NetworkPath(name="slow", rate="1Mbit/s", delay="50ms", limit="infinite"),
    ]
    sizes = np.arange(256, 4097, 128)
    kinds: dict[str, tuple[dict[str, Any], str]] = {
        "min_rtt": ({"scheduler": "min_rtt"}, GREY),
        "ecf": ({"scheduler": "ecf"}, BLUE),
        "TCP, fast path": ({"protocol": "tcp", "congestion_control": "new_reno"}, GREEN),
    }
    ends = {}
    for name, (keys, colour) in kinds.items():
        transfers = [Connection(workload=Blocks(count=int(n) // 8), **keys) for n in sizes]
        runs = run_each(scenario(paths, [each], 30) for each in transfers)
        ends[name] = np.array(
            [float(run.blocks["delivered_ns"].to_numpy().max()) for (run,) in runs]
        )
        ends[name] /= 1e9
        curve(axes[0], (sizes / 1024, ends[name]), colour, name)
        label(axes[0], 4.03, ends[name][-1], name, colour, va="center")
    axes[0].set(xlabel="size of the transfer (MiB)", ylabel="time until delivery (s)")
    axes[0].set(xlim=(0, 4), ylim=(0, None))
    return Caption(
        f"ECF delivers 4 MiB in {ends['ecf'][-1]:.1f} s, min_rtt in {ends['min_rtt'][-1]:.1f} s",
        "10 Mbit/s, 40 ms RTT and 1 Mbit/s, 100 ms RTT with an infinite queue; LIA",
        {f"s, 4 MiB, {name}": float(values[-1]) for name, values in ends.items()}
        | {f"s, 1 MiB, {name}": float(values[sizes == 1024][0]) for name, values in ends.items()}
        | {
            f"bulk, 300 s, Mbit/s, {name}": goodput(
                run_one(scenario(paths, [bulk(scheduler=name)], 300))
            )
            for name in ("min_rtt", "ecf")
        },
    )


def _responses(axes: Sequence[Axes], name: str) -> Caption:
    """The mean time of responses over their size, with this scheduler and with min_rtt."""
    paths = [
        NetworkPath(name="fast", rate="10Mbit/s", delay="5ms", limit="100packets"),
        NetworkPath(name="slow", rate="10Mbit/s", delay="50ms", limit="100packets"),
    ]
    sizes = np.array([20, 30, 50, 75, 100, 150, 200, 250, 300, 400])
    kinds: dict[str, tuple[dict[str, Any], str]] = {
        "min_rtt": ({"scheduler": "min_rtt"}, GREY),
        name: ({"scheduler": name}, BLUE),
        "TCP, fast path": ({"protocol": "tcp", "congestion_control": "new_reno"}, GREEN),
    }
    means = {}
    for kind, (keys, colour) in kinds.items():
        asked = [
            RequestResponse(request_size="100B", response_size=f"{size}kB", think_time="200ms")
            for size in sizes
        ]
        runs = run_each(
            scenario(paths, [Connection(workload=each, **keys)], 30, 5) for each in asked
        )
        means[kind] = np.array([float(metrics.delays_ms(run).mean()) for (run,) in runs])
        curve(axes[0], (sizes, means[kind]), colour, kind)
        label(axes[0], 403, means[kind][-1], kind, colour, va="center")
    axes[0].set(xlabel="size of a response (kB)", ylabel="mean time of a response (ms)")
    axes[0].set(xlim=(0, 400), ylim=(0, None))
    return Caption(
        f"{name} answers 50 kB after {means[name][2]:.0f} ms, min_rtt after "
        f"{means['min_rtt'][2]:.0f} ms",
        "10 Mbit/s each; 10 ms and 100 ms RTT; 200 ms of pause between requests; LIA",
        {
            f"ms, {size} kB, {kind}": float(means[kind][index])
            for kind in means
            for index, size in ((2, 50), (4, 100), (8, 300))
        },
    )


@picture(columns=1)
def otias(axes: Sequence[Axes]) -> Caption:
    """Responses with OTIAS."""
    return _responses(axes, "otias")


@picture(columns=1)
def sttf(axes: Sequence[Axes]) -> Caption:
    """Responses with STTF."""
    return _responses(axes, "sttf")


@picture()
def daps(axes: Sequence[Axes]) -> Caption:
    """Out-of-order data over the size of responses, and delays of frames over the loss rate."""
    unequal = [
        NetworkPath(name="fast", rate="10Mbit/s", delay="10ms", limit="100packets"),
        NetworkPath(name="slow", rate="2Mbit/s", delay="75ms", limit="100packets"),
    ]
    sizes = np.array([50, 100, 200, 300, 400, 600, 800, 1000, 1500, 2000])
    losses = np.array([0, 0.25, 0.5, 0.75, 1, 1.5, 2])

    def equal(loss: float) -> list[NetworkPath]:
        return [
            NetworkPath(
                name=name, rate="25Mbit/s", delay="25ms", limit="100packets", loss=f"{loss:g}%"
            )
            for name in ("a", "b")
        ]

    frames = Cbr(rate="1Mbit/s", block_size="5KiB")
    waiting, times, delays = {}, {}, {}
    for name, colour in (("min_rtt", GREY), ("daps", BLUE)):
        asked = [
            RequestResponse(request_size="100B", response_size=f"{size}kB", think_time="200ms")
            for size in sizes
        ]
        runs = run_each(
            scenario(unequal, [Connection(workload=each, scheduler=name)], 60, 5) for each in asked
        )
        waiting[name] = np.array(
            [
                run.connection_samples["out_of_order_bytes"].to_numpy().mean() / 1e3
                for (run,) in runs
            ]
        )
        times[name] = np.array([float(metrics.delays_ms(run).mean()) for (run,) in runs])
        shown = [Connection(workload=frames, scheduler=name)]
        lossy = (scenario(equal(loss), shown, 60, 5) for loss in losses)
        means = [
            [float(metrics.delays_ms(run).mean()) for run in each]
            for each in run_each(lossy, range(1, 11))
        ]
        delays[name] = np.median(means, axis=1)
        curve(axes[0], (sizes, waiting[name]), colour, name)
        curve(axes[1], (losses, delays[name]), colour, name)
    axes[0].set(xlabel="size of a response (kB)", ylabel="mean out of order (kB)")
    axes[0].set_title("10 and 2 Mbit/s, 20 and 150 ms RTT", loc="left")
    axes[1].set(xlabel="losses on both paths (%)", ylabel="mean delay of a frame (ms)")
    axes[1].set_title("2 × 25 Mbit/s, 50 ms RTT", loc="left")
    for panel in axes:
        panel.set(xlim=(0, None), ylim=(0, None))
    axes[0].legend(loc="upper left")
    return Caption(
        f"DAPS halves the data out of order, but at 1 % loss a frame takes {delays['daps'][4]:.0f} "
        f"ms instead of {delays['min_rtt'][4]:.0f} ms",
        "left: responses with 200 ms of pause between them, 60 s; right: frames of 5 KiB at "
        "1 Mbit/s, medians of 10 seeds; LIA",
        {
            f"{unit}, {size} kB, {name}": float(values[name][sizes == size][0])
            for unit, values in (("kB", waiting), ("ms", times))
            for name in values
            for size in (50, 100, 200, 600, 1000, 2000)
        }
        | {
            f"ms, loss of {loss:g} %, {name}": float(delays[name][losses == loss][0])
            for name in delays
            for loss in (0, 0.25, 1, 2)
        },
    )


@picture()
def linux(axes: Sequence[Axes]) -> Caption:
    """Goodput and delay with Linux's scheduler and buffers, over the requested buffer size."""
    asked = np.array([50, 100, 150, 200, 300, 400, 600])
    numbers = {}
    for name, colour in (("linux", BLUE), ("min_rtt", ORANGE)):
        connections = [
            Connection(
                workload=Blocks(block_size="8KiB"),
                send_buffer=f"{kilobytes}kB",
                receive_buffer=f"{kilobytes}kB",
                host={"kind": "linux", "buffers": "socket"},
                scheduler=name,
                congestion_control="cubic_linux",
            )
            for kilobytes in asked
        ]
        runs = [
            run for (run,) in run_each(scenario([WIFI, THREE_G], [c], 35, 5) for c in connections)
        ]
        rates = np.array([goodput(run) for run in runs])
        delays = np.array([metrics.delays_ms(run).mean() for run in runs])
        curve(axes[0], (asked, rates), colour, name)
        curve(axes[1], (asked, delays), colour, name)
        numbers[f"{name} with 100 kB, Mbit/s"] = float(rates[1])
        numbers[f"{name} with 400 kB, Mbit/s"] = float(rates[5])
    axes[0].axhline(7.7, color=GREY, linestyle="--", label="TCP over WiFi")
    axes[0].set(ylabel="goodput (Mbit/s)", ylim=(0, 10.5))
    axes[1].set(ylabel="mean delay of a block (ms)", ylim=(0, None))
    for panel in axes:
        panel.set_xlabel("requested buffer size (kB)")
        panel.set_xlim(0)
    axes[0].legend(loc="lower right")
    return Caption(
        "With small buffers, a burst on the slow path fills the window",
        "WiFi 8 Mbit/s, 20 ms RTT; 3G 2 Mbit/s, 150 ms RTT; socket buffers as in Linux;\n"
        "blocks of 8 KiB as fast as the buffers accept them; 30 s each",
        numbers,
    )


_ASKED_KIB = np.array([16, 24, 32, 48, 64, 96, 128, 192, 256])


def _of_original_kernel(scheduler: str, receive_kib: int, **keys: Any) -> Connection:
    """A connection of the original kernel that writes blocks into 200 KiB."""
    return Connection(
        workload=Blocks(block_size="8KiB"),
        stack="mptcp.org-0.89",
        scheduler=scheduler,
        send_buffer="200KiB",
        receive_buffer=f"{receive_kib}KiB",
        **keys,
    )


@picture()
def mptcp_org(axes: Sequence[Axes]) -> Caption:
    """Goodput and the share of 3G over the receive buffer, with and without a subflow's window."""
    ignored = {"kind": "mptcp.org-0.89", "own_window": "ignored"}
    numbers: dict[str, float] = {}
    for name, colour, more in (
        ("as in the kernel", BLUE, {}),
        ("own window ignored", ORANGE, {"host": ignored}),
    ):
        offered = [
            _of_original_kernel("mptcp_org", kib, remedies={}, **more)
            for kib in map(int, _ASKED_KIB)
        ]
        runs = [run for (run,) in run_each(scenario([WIFI, THREE_G], [c], 35, 5) for c in offered)]
        rates = np.array([goodput(run) for run in runs])
        shares = np.array([100 * share_of_second(run) for run in runs])
        curve(axes[0], (_ASKED_KIB, rates), colour, name)
        curve(axes[1], (_ASKED_KIB, shares), colour, name)
        numbers[f"{name}, 32 KiB, Mbit/s"] = float(rates[2])
        numbers[f"{name}, 32 KiB, % on 3G"] = float(shares[2])
    axes[0].axhline(7.7, color=GREY, linestyle="--", label="TCP over WiFi")
    axes[0].set(ylabel="goodput (Mbit/s)", ylim=(0, 10.5))
    axes[1].set(ylabel="carried by 3G (% of payload)", ylim=(0, None))
    for panel in axes:
        panel.set_xlabel("requested receive buffer (KiB)")
        panel.set_xlim(0)
    axes[0].legend(loc="lower right")
    return Caption(
        "A subflow's own window makes data spill to the slow path",
        "the original kernel's stack without M1 and M2; WiFi 8 Mbit/s, 20 ms RTT; 3G 2 Mbit/s, "
        "150 ms RTT;\nblocks of 8 KiB as fast as 200 KiB of send buffer accept them; 30 s each",
        numbers,
    )


@picture()
def mptcp_org_round_robin(axes: Sequence[Axes]) -> Caption:
    """Throughput by path of both schedulers of the original kernel, in two receive buffers."""
    names = ("mptcp_org", "mptcp_org_round_robin")
    numbers: dict[str, float] = {}
    for panel, kib in zip(axes, (32, 1024), strict=True):
        offered = [_of_original_kernel(name, kib, remedies={}) for name in names]
        runs = [run for (run,) in run_each(scenario([FAST, SLOW], [c], 30) for c in offered)]
        _stacked(panel, runs, ("8 Mbit/s, 10 ms RTT", "2 Mbit/s, 100 ms RTT"))
        names_below(panel, names)
        panel.set_title(f"receive buffer of {kib} KiB")
        numbers |= {
            f"{name}, {kib} KiB, Mbit/s": goodput(run)
            for name, run in zip(names, runs, strict=True)
        }
    return Caption(
        "Turns are equal where the receive window is small, and cost goodput",
        "the original kernel's stack without M1 and M2; 30 s each",
        numbers,
    )
