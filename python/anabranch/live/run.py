"""Runs in real time over emulated links, with kernel hosts, engine hosts, or one of each.

A live run is not a pure function of its seed: two runs give similar numbers, not identical ones. A
run takes as long as its scenario.
"""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from anabranch import _core
from anabranch.errors import IntegrityError, TooLateError
from anabranch.live import vm
from anabranch.live.hosts import LINUX_VM, Hosts
from anabranch.live.lab import at_priority
from anabranch.runs.run import Capture, Pcap, Run, tables_of

ATTEMPTS = 3
"""Number of attempts at a run before the machine is considered too busy."""


CONDITION_COLUMNS = ("late_p99_ms", "late_p999_ms", "late_max_ms", "late_share")
"""Columns of a table of runs that only live runs have."""


@dataclass(frozen=True)
class Conditions:
    """The conditions of a live run."""

    client: str
    server: str
    """TCP stack of each host: engine or kernel."""
    machine: str
    """Place of the run: here, or in linux-vm."""
    kernel: str
    """Release of that machine's Linux."""
    valid: bool
    """Whether the emulator was in time. If not, the run is invalid."""
    lateness_ms: tuple[float, float, float, float]
    """Lateness of packets that left the emulated network: p50, p99, p99.9 and maximum."""
    late_share: float
    """Share of the packets that were more than 1 ms late."""
    foreign: int
    """Packets that were dropped because they were neither TCP nor UDP."""
    notices: tuple[str, ...]
    """Differences between the run and its scenario."""

    def lateness(self) -> str:
        """The lateness as text."""
        p50, p99, p999, largest = self.lateness_ms
        return (
            f"emulator late by {p50:.2f} / {p99:.2f} / {p999:.2f} / {largest:.2f} ms "
            f"(p50 / p99 / p99.9 / max), {self.late_share * 100:.2f} % of packets by more than 1 ms"
        )

    def columns(self) -> dict[str, float]:
        """The lateness as columns of a table of runs."""
        _, *quantiles = self.lateness_ms
        return dict(zip(CONDITION_COLUMNS, (*quantiles, self.late_share), strict=True))

    def provenance(self) -> dict[str, Any]:
        """The conditions as plain values."""
        return asdict(self)


def _measured_run(
    scenario: _core.Scenario, seed: int, hosts: Hosts, pcap: Pcap | None
) -> tuple[Mapping[str, Any], float]:
    """The result of the run, and its CPU time in s."""
    before = time.thread_time()
    result = _core.live_run(scenario, seed, hosts.client, hosts.server, pcap)
    return result | {"kernel": platform.release()}, time.thread_time() - before


def identity(hosts: Hosts) -> list[str]:
    """Inputs of a live run other than its scenario and its seed."""
    if hosts.need_real_time:
        return [*hosts, platform.release(), platform.node()]
    return [*hosts, hashlib.sha256(vm.kernel().read_bytes()).hexdigest()]


def run_once(
    scenario: _core.Scenario, seed: int, hosts: Hosts, capture: Capture | None = None
) -> tuple[Run, Conditions]:
    """Run a scenario live, with the given hosts.

    Raises:
        ScenarioError: if the kernel does not support the scenario.
        InputError: if the capture cannot be written.
        IntegrityError: if a system call failed.
    """
    started = time.perf_counter()
    make: Any = vm.live_run if hosts.machine == LINUX_VM else partial(at_priority, _measured_run)
    try:
        if capture is None:
            result, cpu_s = make(scenario, seed, hosts, None)
        else:
            with capture.opened() as pcap:
                result, cpu_s = make(scenario, seed, hosts, pcap)
    except RuntimeError as error:
        raise IntegrityError(f"{scenario.file}: {error}") from error
    run = Run(
        scenario=scenario,
        seed=seed,
        digest="",
        virtual_ns=result["virtual_ns"],
        segments=result["segments"],
        data_segments=0,
        wall_s=time.perf_counter() - started,
        cpu_s=cpu_s,
        custom_policies=(),
        pcap_full_ns=result["pcap_full_ns"],
        tables=tables_of(result),
    )
    p50, p99, p999, largest = (late / 1e6 for late in result["lateness_ns"])
    conditions = Conditions(
        *hosts,
        kernel=result["kernel"],
        valid=result["valid"],
        lateness_ms=(p50, p99, p999, largest),
        late_share=result["late_share"],
        foreign=result["foreign"],
        notices=tuple(result["notices"]),
    )
    return run, conditions


def run_repeatedly(
    scenario: _core.Scenario, seed: int, hosts: Hosts, capture: Capture | None = None
) -> tuple[Run, Conditions]:
    """Run as `run_once` does, and repeat a run whose emulator was late too often.

    The result is invalid if every attempt was late too often.
    """
    for attempt in range(1, ATTEMPTS + 1):
        run, conditions = run_once(scenario, seed, hosts, capture)
        if conditions.valid or attempt == ATTEMPTS:
            break
    return run, conditions


def run_in_time(scenario: _core.Scenario, seed: int, hosts: Hosts) -> tuple[Run, Conditions]:
    """Run as `run_repeatedly` does.

    Raises:
        TooLateError: if every attempt was late too often.
    """
    run, conditions = run_repeatedly(scenario, seed, hosts)
    if not conditions.valid:
        raise TooLateError(
            f"{scenario.file}, seed {seed}: the emulator was late too often in {ATTEMPTS} attempts "
            f"(the last: {conditions.lateness()}); finished runs are kept: repeat on a less busy "
            "machine"
        )
    return run, conditions
