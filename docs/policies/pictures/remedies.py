"""Pictures of the remedies."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from anabranch import NetworkPath, Run
from anabranch.reports.figures import BLACK, BLUE, GREEN, GREY, ORANGE, RED, plain_ticks
from anabranch.scenarios.scenario import Change
from pictures.common import (
    THREE_G,
    WIFI,
    Caption,
    Numbers,
    bulk,
    curve,
    goodput,
    label,
    picture,
    run_each,
    run_one,
    scenario,
    series,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

M1: dict[str, Any] = {"opportunistic_retransmission": True}
M2: dict[str, Any] = {"penalisation": "conext13"}
M2_NSDI12 = {"penalisation": "nsdi12"}

# ---- the slow path blocks the shared receive window -----------------------------------------

BUFFERS = (50, 75, 100, 150, 200, 300, 400, 600, 800, 1000)
SWEEP = (
    "WiFi 8 Mbit/s, 20 ms RTT; 3G 2 Mbit/s, 150 ms RTT (NSDI 2012), jitter ±1 ms; send = receive "
    "buffer; 60 s; medians of 3 seeds"
)


def _jittery() -> list[NetworkPath]:
    return [dataclasses.replace(path, jitter="1ms") for path in (WIFI, THREE_G)]


@functools.cache
def _goodput_over_buffer(remedies: tuple[tuple[str, Any], ...] | None) -> Numbers:
    """Median goodputs over seeds for each buffer size. `None` stands for TCP over WiFi."""
    keys: dict[str, Any] = {"remedies": dict(remedies or ())}
    if remedies is None:
        keys = {"protocol": "tcp", "paths": ("wifi",), "congestion_control": "new_reno"}
    connections = [
        bulk(send_buffer=f"{size}kB", receive_buffer=f"{size}kB", **keys) for size in BUFFERS
    ]
    runs = run_each((scenario(_jittery(), [each], 60, 5) for each in connections), (1, 2, 3))
    return np.array([np.median([goodput(run) for run in each]) for each in runs])


def _sweep(axes: Axes, curves: Mapping[str, tuple[dict[str, Any], str]]) -> dict[str, Numbers]:
    """Draw goodput over the buffer size for these remedies, with TCP over WiFi as the baseline."""
    x = np.array(BUFFERS, dtype=float)
    tcp = _goodput_over_buffer(None)
    axes.plot(x, tcp, color=BLACK, linestyle=(0, (1, 1)), label="TCP over WiFi")
    found = {"TCP over WiFi": tcp}
    for name, (remedies, colour) in curves.items():
        found[name] = _goodput_over_buffer(tuple(remedies.items()))
        axes.plot(x, found[name], color=colour, label=name, marker="o", markersize=3)
    plain_ticks(axes, [50, 100, 200, 400, 1000])
    axes.set(xlabel="buffer size (kB)", ylabel="goodput (Mbit/s)", ylim=(0, 11))
    axes.legend(loc="lower left")
    return found


def _at(found: Mapping[str, Numbers], *sizes: int) -> dict[str, float]:
    return {
        f"{name}, {size} kB": float(values[BUFFERS.index(size)])
        for size in sizes
        for name, values in found.items()
    }


@picture(columns=1)
def opportunistic_retransmission(axes: Sequence[Axes]) -> Caption:
    """Goodput over the buffer size."""
    curves: dict[str, tuple[dict[str, Any], str]] = {
        "no remedy": ({}, GREY),
        "M1": (M1, ORANGE),
        "M1 and M2": (M1 | M2, BLUE),
    }
    found = _sweep(axes[0], curves)
    buffers = {"send_buffer": "300kB", "receive_buffer": "300kB"}
    row = run_one(scenario(_jittery(), [bulk(remedies=M1, **buffers)], 100)).connections
    copies = {
        "M1, 300 kB, 100 s: copies": float(row["reinjections"][0]),
        "M1, 300 kB, 100 s: segments delivered": row["bytes_delivered"][0] / 1448,
    }
    return Caption(
        "M1 alone helps little, and only from 600 kB on; it needs M2",
        SWEEP.replace("; send", "\nsend"),
        _at(found, 100, 200, 400, 600) | copies,
    )


@picture()
def penalisation(axes: Sequence[Axes]) -> Caption:
    """The congestion window of the slow subflow, and goodput over the buffer size."""
    buffers = {"send_buffer": "200kB", "receive_buffer": "200kB"}
    for name, remedies, colour in (("no remedy", {}, GREY), ("M2", M2, BLUE)):
        run = run_one(scenario(_jittery(), [bulk(remedies=remedies, **buffers)], 30))
        seconds, cwnd = series(run, "cwnd", 1)
        curve(axes[0], (seconds, cwnd / 1e3), colour, name)
    axes[0].set(xlabel="time (s)", ylabel="congestion window on 3G (kB)", xlim=(0, 30))
    axes[0].set_ylim(0)
    axes[0].set_title("buffers of 200 kB")
    axes[0].legend()
    curves: dict[str, tuple[dict[str, Any], str]] = {
        "no remedy": ({}, GREY),
        "M2, conext13": (M2, BLUE),
        "M2, nsdi12": (M2_NSDI12, GREEN),
    }
    found = _sweep(axes[1], curves)
    return Caption(
        "Halving the slow subflow's window prevents it from filling the shared window",
        SWEEP,
        _at(found, 100, 200, 400, 1000),
    )


# ---- buffers --------------------------------------------------------------------------------

CLEAN = [
    NetworkPath(name=name, rate="10Mbit/s", delay="20ms", limit="50kB")
    for name in ("first", "second")
]


@picture()
def buffer_autotuning(axes: Sequence[Axes]) -> Caption:
    """Buffer memory and goodput, over clean paths and with a long queue on one path."""
    kinds: dict[str, dict[str, Any]] = {
        "fixed": {},
        "M3": {"buffer_autotuning": True},
        "M3 and M4": {"buffer_autotuning": True, "cwnd_cap": 2.0},
    }
    numbers: dict[str, float] = {}
    for side, (where, paths) in enumerate(
        {"2 × 10 Mbit/s, short queues": CLEAN, "WiFi and 3G, queue of 2 s": [WIFI, THREE_G]}.items()
    ):
        runs = run_each(scenario(paths, [bulk(remedies=each)], 60, 5) for each in kinds.values())
        for at, (name, (run,)) in enumerate(zip(kinds, runs, strict=True)):
            row = run.connections.row(0, named=True)
            send, receive = row["send_buffer"] / 1e6, row["receive_buffer"] / 1e6
            axes[side].bar(at - 0.19, send, 0.36, color=BLUE, label=None if at else "send buffer")
            axes[side].bar(
                at + 0.19, receive, 0.36, color=ORANGE, label=None if at else "receive buffer"
            )
            label(
                axes[side], at, max(send, receive), f"{goodput(run):.1f} Mbit/s", BLACK,
                ha="center", va="bottom", xytext=(0, 3), textcoords="offset points",
            )  # fmt: skip
            numbers |= {
                f"{name}, {where}: send, MB": send,
                f"{name}, {where}: receive, MB": receive,
                f"{name}, {where}: Mbit/s": goodput(run),
            }
        axes[side].set_xticks(range(3), list(kinds))
        axes[side].grid(visible=False, axis="x")
        axes[side].set(ylabel="buffer at the end (MB)", ylim=(0, 8), title=where)
    axes[0].legend(loc="upper right")
    return Caption(
        "Autotuning finds the size that clean paths need; with a long queue it needs M4",
        "bulk, 60 s; maximum: 4 MiB send buffer, 6 MiB receive buffer",
        numbers,
    )


# ---- queues ---------------------------------------------------------------------------------

LOSS = (
    Change(at="460ms", loss="100%", applies_to="forward"),
    Change(at="480ms", loss="0%", applies_to="forward"),
)
"""A burst of losses that ends slow start on 3G below the bandwidth-delay product."""
ENDLESS = dataclasses.replace(THREE_G, limit="infinite")
BLOAT = "WLAN 8 Mbit/s, 20 ms RTT and 3G 2 Mbit/s, 150 ms RTT; buffers of 16 MiB; NewReno"


def _bloated(remedies: dict[str, Any], path: NetworkPath) -> Run:
    connection = bulk(
        send_buffer="16MiB", receive_buffer="16MiB", congestion_control="new_reno",
        remedies=remedies,
    )  # fmt: skip
    return run_one(scenario([WIFI, path], [connection], 60))


def _relative_srtt(run: Run) -> tuple[Numbers, Numbers]:
    seconds, srtt = series(run, "srtt_ns", 1)
    known = srtt > 0
    return seconds[known], srtt[known] / srtt[known].min()


def _bloat(axes: Sequence[Axes], kinds: Mapping[str, dict[str, Any]]) -> dict[str, float]:
    """Draw smoothed round-trip times on 3G, if the cap binds after or during slow start."""
    places = {
        "early loss: congestion avoidance": dataclasses.replace(ENDLESS, changes=LOSS),
        "no early loss: slow start": THREE_G,
    }
    numbers = {}
    for panel, (place, path) in zip(axes, places.items(), strict=True):
        top = 0.0
        for (name, remedies), colour in zip(kinds.items(), (GREY, BLUE, RED), strict=False):
            seconds, times = _relative_srtt(_bloated(remedies, path))
            curve(panel, (seconds, times), colour)
            late = float(np.median(times[seconds > 30]))
            label(panel, 60.5, times[-1], name, colour, va="center")
            numbers[f"{name}, {place}"] = late
            top = max(top, float(times.max()))
        panel.set(xlabel="time (s)", xlim=(0, 60), ylim=(0, top * 1.1))
        panel.set_title(place)
    axes[0].set_ylabel("smoothed RTT on 3G ÷ its minimum")
    return numbers


@picture()
def cwnd_cap(axes: Sequence[Axes]) -> Caption:
    """Smoothed round-trip times on 3G."""
    numbers = _bloat(axes, {"no remedy": {}, "M4": {"cwnd_cap": 2.0}})
    return Caption(
        "M4 keeps the RTT at its first limit: twice the minimum, or its value after slow start",
        BLOAT + "; right: queue of 2 s",
        numbers,
    )


@picture()
def mpt_bm(axes: Sequence[Axes]) -> Caption:
    """Smoothed round-trip times on 3G."""
    kinds = {"no remedy": {}, "λ = 1.5": {"mpt_bm": 1.5}, "λ = 3": {"mpt_bm": 3.0}}
    numbers = _bloat(axes, kinds)
    return Caption(
        "λ limits the RTT in congestion avoidance; after slow start it stays about twice as high",
        BLOAT + "; right: queue of 2 s",
        numbers,
    )
