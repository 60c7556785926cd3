"""Programs inside the emulated network, in real time."""

from __future__ import annotations

import contextlib
import platform
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from anabranch import _core
from anabranch.errors import InputError, IntegrityError
from anabranch.live.hosts import HERE
from anabranch.live.lab import reason
from anabranch.live.run import Conditions
from anabranch.runs.run import Capture, Run, tables_of
from anabranch.scenarios import custom
from anabranch.scenarios.custom import CustomPolicy


class ShellPath(NamedTuple):
    """The state of a path. Bytes are totals since the start."""

    bytes_down: int
    bytes_up: int
    up: bool
    """Whether packets pass."""
    queued: tuple[int, int]
    """Bytes in the queues towards the client and towards the server."""
    subflows: int
    srtt_ns: int | None
    """Round-trip time of the subflow with the largest congestion window."""
    cwnd: int
    """Congestion windows of all subflows in bytes."""


class ShellOutcome(NamedTuple):
    """Results of a program inside the emulated network."""

    status: int
    """Exit status of the program."""
    run: Run | None
    """The run; `None` if the program opened no connection."""
    conditions: Conditions


class Shell:
    """A running program."""

    def __init__(
        self,
        core: _core.Shell,
        scenario: _core.Scenario,
        seed: int,
        client: str,
    ) -> None:
        self._core, self._scenario, self._seed, self._client = core, scenario, seed, client
        self._started, self._cpu_before = time.perf_counter(), time.process_time()

    @property
    def is_over(self) -> bool:
        """Whether the program has ended, and all its data was delivered."""
        return self._core.is_over()

    def paths(self) -> list[ShellPath]:
        """The state of each path."""
        return [
            ShellPath(**{**state, "queued": tuple(state["queued"])}) for state in self._core.paths()
        ]

    def toggle(self, path: int) -> None:
        """Take a path down, or up again."""
        self._core.set_path(path, not self.paths()[path].up)

    def terminate(self) -> None:
        """Ask the program to end with SIGTERM. After 5 s, it is killed."""
        self._core.terminate()

    def stop(self) -> None:
        """End at once."""
        self._core.stop()

    def finish(self) -> ShellOutcome:
        """Wait for the end.

        Raises:
            IntegrityError: if a system call failed.
            PolicyError: if the user's own policy raised an exception.
        """
        try:
            result = self._core.finish()
        except RuntimeError as error:
            raise IntegrityError(f"{self._scenario.file}: {error}") from error
        p50, p99, p999, largest = (late / 1e6 for late in result["lateness_ns"])
        conditions = Conditions(
            client=self._client,
            server="engine",
            machine=HERE,
            kernel=platform.release(),
            valid=result["valid"],
            lateness_ms=(p50, p99, p999, largest),
            late_share=result["late_share"],
            foreign=0,
            notices=(),
        )
        return ShellOutcome(result["status"], self._run(result), conditions)

    def _run(self, result: dict[str, Any]) -> Run | None:
        if result["toml"] is None:
            return None
        return Run(
            scenario=_core.Scenario.parse(result["toml"], self._scenario.file),
            seed=self._seed,
            digest="",
            virtual_ns=result["virtual_ns"],
            segments=result["segments"],
            data_segments=0,
            wall_s=time.perf_counter() - self._started,
            cpu_s=time.process_time() - self._cpu_before,
            pcap_full_ns=result["pcap_full_ns"],
            custom_policies=self._policies(),
            tables=tables_of(result),
        )

    def _policies(self) -> tuple[CustomPolicy, ...]:
        """The user's own policies, which every connection has."""
        mine = custom.describe(self._scenario)
        first = self._scenario.settings["connection"][0]["name"]
        return tuple(replace(each, connection="all") for each in mine if each.connection == first)


def _mptcpize() -> list[str]:
    """The command that makes a program open Multipath TCP sockets.

    Raises:
        InputError: if it is not installed.
    """
    if shutil.which("mptcpize") is None:
        raise InputError(
            "--client kernel: mptcpize is not installed, and makes the program's sockets Multipath "
            "TCP; run: apt install mptcpize"
        )
    return ["mptcpize", "run"]


@contextlib.contextmanager
def started(
    scenario: _core.Scenario,
    seed: int,
    command: Sequence[str],
    client: str = "engine",
    terminal: int | None = None,
    capture: Capture | None = None,
) -> Iterator[Shell]:
    """Start a program inside the network of a scenario. At the end, it is stopped.

    `client` is the stack of the program's connections on the paths: ``"engine"``, or ``"kernel"``
    for its own sockets, which mptcpize makes Multipath TCP.

    `terminal` is the descriptor of a terminal for the program, which is handed over.

    Raises:
        InputError: if this host lacks what a shell needs, the kernel's sockets cannot have the
            scenario's policies, or the capture cannot be written.
        PolicyError: from `Shell.finish`, if the user's own policy raised an exception.
    """
    if client == "kernel":
        if scenario.policies:
            raise InputError(
                f"{scenario.file}: with --client kernel, Linux chooses its own policies and yours "
                "have no effect; leave out --client kernel, or name built-in ones"
            )
        command = [*_mptcpize(), *command]
    helper = [sys.executable, "-P", "-m", "anabranch.live.sandbox", *command]
    with contextlib.ExitStack() as stack:
        pcap = None if capture is None else stack.enter_context(capture.opened())
        try:
            core = _core.Shell(scenario, seed, helper, client, terminal, pcap)
        except OSError as error:
            raise InputError(f"a shell is not possible here: {reason(error)}") from error
        except RuntimeError as error:
            why = str(error).removeprefix("live run: ")
            raise InputError(f"no shell: {why}; see: anabranch doctor") from error
        shell = Shell(core, scenario, seed, client)
        try:
            yield shell
        finally:
            shell.stop()
