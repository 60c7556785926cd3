"""Runners of the hosts of a live run."""

from __future__ import annotations

from typing import NamedTuple

HERE = "here"
"""The machine of a live run: this one, in real time."""
LINUX_VM = "linux-vm"
"""The machine of a live run: the virtual machine of `anabranch.live.vm`, in its own time."""


class Hosts(NamedTuple):
    """The TCP stacks of client and server, ``"engine"`` or ``"kernel"``, and their machine."""

    client: str = "kernel"
    server: str = "kernel"
    machine: str = HERE

    @property
    def need_real_time(self) -> bool:
        """Whether the run needs this machine's clock, and its namespaces."""
        return self.machine == HERE
