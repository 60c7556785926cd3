"""The first process of the virtual machine of `anabranch.live.vm`: makes one live run.

It imports nothing that is slow: a system call takes ten times as long in there.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
import time
from pathlib import Path

from anabranch import _core

_POWER_OFF = 0x4321FEDC
"""`LINUX_REBOOT_CMD_POWER_OFF` of reboot(2)."""

_TUNED = {"tcp_rmem": "4096 131072 6291456", "tcp_wmem": "4096 16384 4194304"}
"""Least, first and largest size of tuned buffers in bytes, as on a host with 1 GB of memory."""

_TICK_S = 0.004
"""Period of the kernel's timer (HZ = 250)."""


def main(folder: Path) -> None:
    """Execute the run that the folder requests, and write the outcome to the folder."""
    largest_buffer, *arguments = pickle.loads((folder / "request").read_bytes())
    for key, sizes in _TUNED.items():
        Path("/proc/sys/net/ipv4", key).write_text(sizes, encoding="ascii")
    for key in ("rmem_max", "wmem_max"):
        limit = Path("/proc/sys/net/core", key)
        # A higher limit than necessary would make the units of receive windows larger.
        limit.write_text(str(max(largest_buffer, int(limit.read_text()))), encoding="ascii")
    time.sleep(phase(arguments[1]) * _TICK_S)
    try:
        result: object = _core.live_run(*arguments) | {"kernel": os.uname().release}
    except BaseException as error:
        result = error
    (folder / "reply.part").write_bytes(pickle.dumps(result))
    (folder / "reply.part").rename(folder / "reply")


def phase(seed: int) -> float:
    """Start of a run within a tick of the timer, from 0 to 1, evenly spread over seeds.

    Elsewhere it is random, and decides which of two simultaneous events comes first.
    """
    return seed * 0.618033988749895 % 1


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    finally:
        os.sync()
        ctypes.CDLL(None).reboot(_POWER_OFF)
