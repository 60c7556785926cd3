"""The fixed scenarios of the calibration.

Steady state over six links, blocks at a constant rate, the window curves of nsdi12-fig7, finite
transfers, autotuned buffers, reordering and losses, over one path and over two. All metrics count
from the first byte. A run of every scenario with Linux takes about ten minutes of real time.
"""

from __future__ import annotations

import dataclasses

from anabranch.calibration import case
from anabranch.calibration.case import Case
from anabranch.gallery.shared.wifi_3g import MPTCP, TCP_3G, TCP_WIFI, THREE_G, WIFI
from anabranch.scenarios.scenario import (
    Blocks,
    Bulk,
    Cbr,
    Connection,
    NetworkPath,
    Scenario,
    Workload,
)

LINKS = {
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

_PAIRS = {
    "8 + 2 Mbit/s": (WIFI, THREE_G),
    "20 + 20 Mbit/s": (
        dataclasses.replace(LINKS["20 Mbit/s, 40 ms"], name="first"),
        dataclasses.replace(LINKS["20 Mbit/s, 40 ms"], name="second"),
    ),
    "10 + 3 Mbit/s": (
        NetworkPath(name="first", rate="10Mbit/s", delay="25ms", limit="60packets"),
        NetworkPath(name="second", rate="3Mbit/s", delay="1ms", limit="60packets"),
    ),
}

_ASKED_KB = (100, 200, 400)
_LARGE = ("2MB", "4MB")
"""Send and receive buffer, larger than one path needs."""

_Buffers = tuple[str, str] | None
"""Send and receive buffer that a program requests; `None` if the stack tunes both."""


def _case(
    group: str,
    name: str,
    seconds: int,
    paths: tuple[NetworkPath, ...],
    workload: Workload,
    buffers: _Buffers = None,
    control: str = "cubic_linux",
    **changes: object,
) -> Case:
    """The case of one connection over all the paths: TCP over one, Multipath TCP over more."""
    send, receive = buffers or (None, None)
    connection = Connection(
        name="main",
        protocol="tcp" if len(paths) == 1 else "mptcp",
        congestion_control=control,
        scheduler=None if len(paths) == 1 else "linux",
        host={"kind": "linux", "buffers": "socket"},
        send_buffer=send,
        receive_buffer=receive,
        workload=workload,
    )
    scenario = Scenario(
        name=name,
        duration=f"{seconds}s",
        paths=paths,
        connections=(dataclasses.replace(connection, **changes),),  # type: ignore[arg-type]
    )
    return case.of(scenario, group)


def _transfer(size: str) -> Blocks:
    return Blocks(block_size=size, count=1)


def _steady() -> list[Case]:
    """Endless data over six links with NewReno and with CUBIC, and over two paths."""
    controls = {"new_reno": 10, "cubic_linux": 15}
    return [
        *(
            _case("steady", f"{link}, {control}", seconds, (path,), Bulk(), _LARGE, control)
            for link, path in LINKS.items()
            for control, seconds in controls.items()
        ),
        *(
            _case("steady", pair, seconds, _PAIRS[pair], Bulk(), _LARGE)
            for pair, seconds in (("8 + 2 Mbit/s", 15), ("20 + 20 Mbit/s", 10))
        ),
    ]


def _paced() -> list[Case]:
    """Blocks at 60 % of the rate of each link or less, so that no buffer limits their delay."""
    cases = []
    for link, path in LINKS.items():
        # With this loss, neither NewReno nor CUBIC reaches 60 % of the rate.
        rate = 2 if path.loss else int(link.split()[0]) * 6 // 10 or 1
        paced = Cbr(rate=f"{rate}Mbit/s", block_size="8KiB")
        cases.append(_case("paced", f"{link}, blocks at {rate} Mbit/s", 8, (path,), paced, _LARGE))
    return cases


def _windows() -> list[Case]:
    """The curves of nsdi12-fig7 that Linux supports, with three buffer sizes."""
    curves = {TCP_WIFI: (WIFI,), TCP_3G: (THREE_G,), MPTCP: (WIFI, THREE_G)}
    return [
        _case(
            "windows",
            f"{curve}, {asked} kB asked for",
            15 if curve == MPTCP else 8,
            paths,
            Blocks(block_size="8KiB"),
            (f"{asked}kB", f"{asked}kB"),
            "cubic_linux" if curve == MPTCP else "new_reno",
        )
        for asked in _ASKED_KB
        for curve, paths in curves.items()
    ]


def _transfers() -> list[Case]:
    """Finite transfers, with autotuned and with large buffers."""
    links: dict[str, dict[str, int]] = {
        "20 Mbit/s, 40 ms": {"64kB": 2, "1MB": 3, "16MB": 10},
        "2 Mbit/s, 150 ms": {"64kB": 3, "1MB": 8},
        "20 Mbit/s, 40 ms, 0.5 % lost": {"4MB": 12},
    }
    pairs: dict[str, dict[str, int]] = {
        "8 + 2 Mbit/s": {"64kB": 2, "1MB": 4, "16MB": 30},
        "10 + 3 Mbit/s": {"64kB": 2, "1MB": 3, "16MB": 25},
        "20 + 20 Mbit/s": {"1MB": 3, "16MB": 8},
    }
    large = {"8 + 2 Mbit/s": {"1MB": 4, "16MB": 30}, "20 Mbit/s, 40 ms": {"1MB": 3}}
    every = {**{name: (path,) for name, path in LINKS.items()}, **_PAIRS}
    return [
        _case(
            "transfer",
            f"{name}, {size.replace('kB', ' kB').replace('MB', ' MB')}{words}",
            seconds,
            every[name],
            _transfer(size),
            buffers,
        )
        for chosen, buffers, words in (
            (links, None, ""),
            (pairs, None, ""),
            (large, _LARGE, ", fixed buffers"),
        )
        for name, sizes in chosen.items()
        for size, seconds in sizes.items()
    ]


def _autotuned() -> list[Case]:
    """Endless data and blocks with buffers that the stack tunes."""
    link = LINKS["20 Mbit/s, 40 ms"]
    return [
        _case("autotuned", "20 Mbit/s, 40 ms, autotuned", 10, (link,), Bulk()),
        _case("autotuned", "20 Mbit/s, 40 ms, upload", 10, (link,), Bulk(), direction="upload"),
        _case("autotuned", "8 + 2 Mbit/s, autotuned", 15, _PAIRS["8 + 2 Mbit/s"], Bulk()),
        _case("autotuned", "20 + 20 Mbit/s, autotuned", 10, _PAIRS["20 + 20 Mbit/s"], Bulk()),
        *(
            _case(
                "autotuned",
                f"{pair}, blocks, autotuned",
                15,
                _PAIRS[pair],
                Blocks(block_size="8KiB"),
            )
            for pair in ("8 + 2 Mbit/s", "10 + 3 Mbit/s")
        ),
    ]


def _both_ways() -> list[Case]:
    """Data in both directions at once, so that acknowledgements wait behind data."""
    link = LINKS["20 Mbit/s, 40 ms"]
    blocks = Blocks(block_size="8KiB")
    return [
        _case("both ways", f"{name}, both ways", 10, paths, workload, _LARGE, direction="both")
        for name, paths, workload in (
            ("20 Mbit/s, 40 ms", (link,), Bulk()),
            ("8 + 2 Mbit/s", _PAIRS["8 + 2 Mbit/s"], Bulk()),
            ("20 + 20 Mbit/s", _PAIRS["20 + 20 Mbit/s"], blocks),
        )
    ]


def _disturbed() -> list[Case]:
    """Reordering jitter and losses."""

    def reordered(path: NetworkPath, jitter: str) -> NetworkPath:
        return dataclasses.replace(path, jitter=jitter, jitter_model="reordering")

    def lossy(path: NetworkPath, loss: str) -> NetworkPath:
        return dataclasses.replace(path, loss=loss)

    first, second = _PAIRS["20 + 20 Mbit/s"]
    blocks = Blocks(block_size="8KiB")
    return [
        _case(
            "reordering",
            "8 Mbit/s, 20 ms, reordered by 8 ms",
            10,
            (reordered(WIFI, "8ms"),),
            Bulk(),
        ),
        _case(
            "reordering",
            "2 Mbit/s, 150 ms, reordered by 50 ms",
            12,
            (reordered(THREE_G, "50ms"),),
            Bulk(),
        ),
        _case(
            "reordering",
            "8 + 2 Mbit/s, reordered by 50 ms",
            15,
            (WIFI, reordered(THREE_G, "50ms")),
            blocks,
            ("400kB", "400kB"),
        ),
        _case(
            "loss", "8 + 2 Mbit/s, 0.5 % lost on WiFi", 15, (lossy(WIFI, "0.5%"), THREE_G), Bulk()
        ),
        _case(
            "loss",
            "20 + 20 Mbit/s, 0.2 % lost",
            10,
            (lossy(first, "0.2%"), lossy(second, "0.2%")),
            blocks,
            _LARGE,
        ),
    ]


def cases() -> list[Case]:
    """All fixed scenarios."""
    return [
        *_steady(),
        *_paced(),
        *_windows(),
        *_transfers(),
        *_autotuned(),
        *_both_ways(),
        *_disturbed(),
    ]
