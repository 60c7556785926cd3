"""Runs in real time: hosts of this kernel's, of the engine's, or one of each, on emulated links.

Such a run is not a pure function of its seed: two runs give similar numbers, not the same. It takes
as long as its scenario lasts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from anabranch import _core
from anabranch.errors import IntegrityError, TooLateError
from anabranch.live.lab import at_priority
from anabranch.runs.run import Capture, Run, counters, frame

STACKS = ("engine", "kernel")

ATTEMPTS = 3
"""How often a run is made before the machine is called too busy."""


@dataclass(frozen=True)
class Conditions:
    """Under which conditions a live run was made."""

    client: str
    server: str
    """Whose stack the hosts ran: engine or kernel."""
    valid: bool
    """Was the emulator in time? A run of which it was not must not be believed."""
    lateness_ms: tuple[float, float, float, float]
    """By how much packets left the emulated network too late: p50, p99, p99.9 and maximum."""
    late_share: float
    """Share of the packets that were later than 1 ms."""
    foreign: int
    """Packets that were dropped because they were neither TCP nor UDP."""
    notices: tuple[str, ...]
    """What was not as the scenario has it."""

    def lateness(self) -> str:
        """In a few words."""
        p50, p99, p999, largest = self.lateness_ms
        return (
            f"emulator late by {p50:.2f} / {p99:.2f} / {p999:.2f} / {largest:.2f} ms "
            f"(p50 / p99 / p99.9 / max), {self.late_share:.2%} of packets by more than 1 ms"
        )

    def columns(self) -> dict[str, float]:
        """The lateness, for a table of runs."""
        _, p99, p999, largest = self.lateness_ms
        return {
            "late_p99_ms": p99,
            "late_p999_ms": p999,
            "late_max_ms": largest,
            "late_share": self.late_share,
        }

    def provenance(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def _measured_run(*arguments: Any) -> tuple[dict[str, Any], float]:
    """What the run returns, and the CPU time in s that it took."""
    before = time.thread_time()
    return _core.live_run(*arguments), time.thread_time() - before


def run_toml(
    toml: str, file: str, seed: int, stacks: tuple[str, str], capture: Capture | None = None
) -> tuple[Run, Conditions]:
    """Run the scenario with the text `toml` in real time, with these stacks at client and server.

    Raises:
        ScenarioError: if the scenario is wrong, or the kernel does not have what it asks for.
        InputError: if the capture cannot be written.
        IntegrityError: if the system refused something.
    """
    normalised = _core.validate(toml, file)
    started = time.perf_counter()
    arguments = (normalised, file, seed, *stacks)
    try:
        if capture is None:
            result, cpu_s = at_priority(_measured_run, *arguments)
        else:
            with capture.opened() as pcap:
                result, cpu_s = at_priority(_measured_run, *arguments, pcap, capture.limit)
    except RuntimeError as error:
        raise IntegrityError(f"{file}: {error}") from error
    tables: Mapping[str, Mapping[str, tuple[str, bytes]]] = result["tables"]
    run = Run(
        toml=normalised,
        seed=seed,
        digest="",
        virtual_ns=result["virtual_ns"],
        segments=result["segments"],
        wall_s=time.perf_counter() - started,
        cpu_s=cpu_s,
        own_policies=(),
        pcap_full_ns=result["pcap_full_ns"],
        counters=counters(result["counters"]),
        **{name: frame(columns) for name, columns in tables.items()},
    )
    p50, p99, p999, largest = (late / 1e6 for late in result["lateness_ns"])
    conditions = Conditions(
        *stacks,
        valid=result["valid"],
        lateness_ms=(p50, p99, p999, largest),
        late_share=result["late_share"],
        foreign=result["foreign"],
        notices=tuple(result["notices"]),
    )
    return run, conditions


def run_in_time(toml: str, file: str, seed: int, stacks: tuple[str, str]) -> tuple[Run, Conditions]:
    """The same, made again if the emulator was late too often.

    Raises:
        TooLateError: if it was so each time.
    """
    for _ in range(ATTEMPTS):
        run, conditions = run_toml(toml, file, seed, stacks)
        if conditions.valid:
            return run, conditions
    raise TooLateError(
        f"{file}, seed {seed}: the emulator was late too often in {ATTEMPTS} attempts, at last "
        f"{conditions.lateness()}; repeat on a quieter machine: finished runs are kept"
    )
