"""An artefact of emulation: netem sets the memory of delayed segments to one byte."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from anabranch.gallery import panels
from anabranch.gallery.claims import Quantity, claim, for_each
from anabranch.gallery.entry import Cell, Experiment, Factors, Overview, Tier
from anabranch.gallery.metrics import GOODPUT, MEAN, MEAN_OF_BLOCK, P95, share
from anabranch.gallery.shared.connections import flow
from anabranch.gallery.shared.wifi_3g import M12, MPTCP, MPTCP_M12, TCP_WIFI, THREE_G, WIFI
from anabranch.reports.figures import BLUE, GREEN, ORANGE, RED, Style
from anabranch.results.claims import Measure
from anabranch.results.folder import Factor, Results
from anabranch.scenarios.scenario import Blocks, Connection

CLEAN = "clean links"
KEPT = "Mininet, memory kept"
ARTEFACT = "Mininet"
LINUX = "clean links, Linux 6.12"
_ALL = (TCP_WIFI, MPTCP, MPTCP_M12)
_CURVES = {CLEAN: _ALL, KEPT: _ALL, ARTEFACT: _ALL, LINUX: (TCP_WIFI, MPTCP)}
"""The curves of each system. Today's Linux has neither mechanism."""
_STYLES = {
    CLEAN: Style(BLUE),
    KEPT: Style(GREEN, "s--"),
    ARTEFACT: Style(RED, "^-"),
    LINUX: Style(ORANGE, "D.."),
}

RATES_MBPS = (8, 16, 32, 64)
RECEIVE_KIB = (32, 64, 128, 256, 1024)
RTTS_MS = (50, 150, 300)
"""Round-trip times of 3G."""
_EMULATED = (KEPT, ARTEFACT)
_KERNEL = "mptcp.org-0.89"

at = Factors("system", "curve", wifi_mbps=8, receive_kib=32, rtt_ms=150)


def cells(tier: Tier) -> list[Cell]:
    """All systems at all rates, then Mininet's links with more buffers and round-trip times."""
    emulated = {"system": _EMULATED, "curve": _ALL}
    factors = [
        at(system, curve, wifi_mbps=rate)
        for rate in RATES_MBPS
        for system, curves in _CURVES.items()
        for curve in curves
    ]
    factors += at.every(receive_kib=RECEIVE_KIB[1:], **emulated)
    factors += at.every(rtt_ms=[rtt for rtt in RTTS_MS if rtt != 150], **emulated)
    return [_cell(tier, **each) for each in factors]


def _cell(tier: Tier, **levels: Any) -> Cell:
    system, curve, wifi_mbps, receive_kib, rtt_ms = levels.values()
    shaper: Literal["mininet"] | None = "mininet" if system in _EMULATED else None
    delay = f"{rtt_ms / 2:g}ms"
    paths = (
        replace(WIFI, rate=f"{wifi_mbps}Mbit/s", shaper=shaper),
        replace(THREE_G, delay=delay, jitter="50ms", shaper=shaper),
    )
    return tier.cell(levels, paths, _connection(system, curve, receive_kib))


def _connection(system: str, curve: str, receive_kib: int) -> Connection:
    single = curve == TCP_WIFI
    artefact, offload = system == ARTEFACT, system in _EMULATED
    host = {"kind": _KERNEL, "charges_delayed_segments": not artefact, "offload": offload}
    return flow(
        ("wifi",) if single else None,
        congestion_control=None,
        stack="linux-6.12" if system == LINUX else _KERNEL,
        host=None if system == LINUX else host,
        remedies=None if single else M12 if curve == MPTCP_M12 else {},
        send_buffer="200KiB",
        receive_buffer=f"{receive_kib}KiB",
        workload=Blocks(block_size="8KiB"),
    )


def _over_wifi(system: str, rate: int) -> Measure:
    """The mean delay with both mechanisms over that of TCP over WiFi."""
    return MEAN.ratio(at(system, MPTCP_M12, wifi_mbps=rate), at(system, TCP_WIFI, wifi_mbps=rate))


def _at_all_rates(system: str) -> tuple[Quantity, ...]:
    return for_each(
        "mean(M1,2) / mean(TCP WiFi) at {} Mbit/s",
        RATES_MBPS,
        lambda rate: _over_wifi(system, rate),
        "mean(M1,2) / mean(TCP WiFi) at every rate",
    )


def _effect(curve: str, **levels: Any) -> Measure:
    """The mean delay with the artefact over that without it."""
    return MEAN.ratio(at(ARTEFACT, curve, **levels), at(KEPT, curve, **levels))


_LARGEST = RECEIVE_KIB[-1]

CLAIMS = {
    "MT.1-artefact-like-wifi": claim(_at_all_rates(ARTEFACT)),
    "MT.2-kept-slower": claim(_at_all_rates(KEPT)),
    "MT.3-clean-slower": claim(_at_all_rates(CLEAN)),
    "MT.4-large-buffer": claim(
        for_each(
            "mean with / without the artefact, {}",
            (MPTCP, MPTCP_M12),
            lambda curve: _effect(curve, receive_kib=_LARGEST),
        )
    ),
}


def _systems(factor: str, words: str, *systems: str, **look: Any) -> panels.Draw:
    """The mean delay of Multipath TCP with both mechanisms over a factor, on each system."""
    others = {name: level for name, level in at("", "").items() if name != factor}
    drawn: dict[str, tuple[dict[str, Factor], Style]] = {}
    for system in systems:
        curve = MPTCP if system == LINUX else MPTCP_M12
        label = system if curve == MPTCP_M12 else f"{system}, without M1,2"
        drawn[label] = (others | {"system": system, "curve": curve}, _STYLES[system])
    return panels.over(factor, MEAN_OF_BLOCK, drawn, words, **look)


def _measured_words(results: Results) -> dict[str, object]:
    def ratios(system: str) -> str:
        return ", ".join(f"{_over_wifi(system, rate)(results).value:.2f}" for rate in RATES_MBPS)

    def effects(curve: str, name: str, levels: Sequence[int], unit: str) -> str:
        values = ((_effect(curve, **{name: level})(results).value, level) for level in levels)
        return ", ".join(f"{value:.2f} at {level} {unit}" for value, level in values)

    return {
        "with_artefact": ratios(ARTEFACT),
        "without_artefact": ratios(KEPT),
        "clean": ratios(CLEAN),
        "m12_by_buffer": effects(MPTCP_M12, "receive_kib", RECEIVE_KIB, "KiB"),
        "m12_by_rtt": effects(MPTCP_M12, "rtt_ms", RTTS_MS, "ms"),
        "mptcp_by_buffer": effects(MPTCP, "receive_kib", RECEIVE_KIB, "KiB"),
        "mptcp_by_rtt": effects(MPTCP, "rtt_ms", RTTS_MS, "ms"),
        "slowed": MEAN.ratio(at(LINUX, MPTCP), at(LINUX, TCP_WIFI))(results).value,
    }


PANELS = {
    "Mean delay over the rate of WiFi": _systems(
        "wifi_mbps", "rate of WiFi (Mbit/s)", *_STYLES, log=True, ticks=RATES_MBPS
    ),
    "Mean delay over the receive buffer": _systems(
        "receive_kib", "receive buffer (KiB)", *_EMULATED, log=True, ticks=RECEIVE_KIB
    ),
    "Mean delay over the round-trip time of 3G": _systems(
        "rtt_ms", "round-trip time of 3G (ms)", *_EMULATED, ticks=RTTS_MS
    ),
}

EXPERIMENT = Experiment(
    words={"kernel": _KERNEL, "largest": _LARGEST},
    design=cells,
    named_claims=CLAIMS,
    drawings=PANELS,
    overview=Overview(
        "system; curve; wifi_mbps: WiFi (Mbit/s); receive_kib: receive (KiB); rtt_ms: 3G (ms)",
        "3g",
        (GOODPUT, MEAN, P95, share("3g")),
    ),
    measured_words=_measured_words,
)
