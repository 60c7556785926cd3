"""The first process of the virtual machine of `anabranch.live.vm`: makes one live run.

It imports nothing that is slow: a system call takes ten times as long in there.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
from pathlib import Path

from anabranch import _core

_POWER_OFF = 0x4321FEDC
"""`LINUX_REBOOT_CMD_POWER_OFF` of reboot(2)."""

_LARGEST_BUFFER = 1 << 28
"""Bytes that a program may ask for, so that every size of a scenario is granted."""


def main(folder: Path) -> None:
    """Make the run that the folder asks for, and leave there what came of it."""
    for limit in ("rmem_max", "wmem_max"):
        Path("/proc/sys/net/core", limit).write_text(str(_LARGEST_BUFFER), encoding="ascii")
    arguments = pickle.loads((folder / "request").read_bytes())
    try:
        result: object = _core.live_run(*arguments) | {"kernel": os.uname().release}
    except BaseException as error:
        result = error
    (folder / "reply.part").write_bytes(pickle.dumps(result))
    (folder / "reply.part").rename(folder / "reply")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    finally:
        os.sync()
        ctypes.CDLL(None).reboot(_POWER_OFF)
