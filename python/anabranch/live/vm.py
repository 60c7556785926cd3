"""Live runs in a virtual machine whose clock stands still while anything computes.

The machine is User-Mode Linux in time-travel mode: a Linux kernel that runs as a process, and whose
time advances only when all its processes wait. The emulator is in time by construction, and equal
seeds give equal captures. `make linux-vm` builds the kernel.
"""

from __future__ import annotations

import os
import pickle
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.errors import InputError, IntegrityError
from anabranch.live.hosts import LINUX_VM, Hosts
from anabranch.runs import interruption
from anabranch.runs.run import Pcap
from anabranch.scenarios.quantities import size

KERNEL = "ANABRANCH_LINUX_VM"
"""Environment variable with the path of the machine's kernel."""

_BUILT = Path("target/linux-vm/linux")
_MEMORY = "384M"
_BOOT_TIME_S = 1_700_000_000
"""Time of day at which every machine starts."""
_MOST_CONSOLE_LINES = 3

_INIT = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs /run &&
mkdir /run/anabranch && mount -t hostfs none /run/anabranch -o '{folder}' &&
exec env HOME=/run TMPDIR=/run PYTHONHASHSEED=0 PYTHONPATH='{path}' ANABRANCH_LAB=1 \\
    '{python}' -P -m anabranch.live.guest /run/anabranch
"""


def kernel() -> Path:
    """The kernel of the machine.

    Raises:
        InputError: if it was not built.
    """
    named = os.environ.get(KERNEL)
    file = Path(named) if named else _BUILT
    if not os.path.isfile(file):
        hint = (
            f"set by {KERNEL}"
            if named
            else f"run `make linux-vm` (about ten minutes), or set {KERNEL}"
        )
        raise InputError(f"{LINUX_VM}: no kernel at {file}: {hint}")
    return file.resolve()


def live_run(
    scenario: _core.Scenario, seed: int, hosts: Hosts, pcap: Pcap | None
) -> tuple[Mapping[str, Any], float]:
    """Make a live run in a new machine; returns what `_core.live_run` does, and the CPU time in s.

    The kernel draws its random numbers from the run's seed.

    Raises:
        InputError: if no kernel was built.
        IntegrityError: if the machine failed.
    """
    before = _cpu_of_children()
    image = kernel()
    with tempfile.TemporaryDirectory(prefix="anabranch-vm-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        capture = None if pcap is None else ("/run/anabranch/capture", *pcap[1:])
        largest = largest_buffer(scenario.settings)
        request = (largest, scenario, seed, hosts.client, hosts.server, capture)
        (folder / "request").write_bytes(pickle.dumps(request))
        path = os.pathsep.join(each for each in sys.path if each)
        init = _INIT.format(folder=folder, path=path, python=sys.executable)
        console = boot(image, folder, seed, init)
        try:
            result = pickle.loads((folder / "reply").read_bytes())
        except OSError as error:
            raise IntegrityError(f"{LINUX_VM}: {image}: {_last_words(console)}") from error
        if isinstance(result, BaseException):
            raise result
        if pcap is not None:
            Path(pcap[0]).write_bytes((folder / "capture").read_bytes())
        return result, _cpu_of_children() - before


def largest_buffer(settings: Mapping[str, Any]) -> int:
    """The largest buffer of a normalised scenario, in bytes, so that it can be granted."""
    keys = ("send_buffer", "receive_buffer")
    sizes = (each[key] for each in settings["connection"] for key in keys if key in each)
    return max((size(each, "buffer") for each in sizes), default=0)


def _cpu_of_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def boot(image: Path, folder: Path, seed: int, init: str) -> str:
    """Start the machine, and wait until it has ended; returns what its console said.

    `init` is the text of its first program, a shell script. `folder` is for the machine's files.
    """
    program = folder / "init"
    program.write_text(init)
    program.chmod(0o755)
    # The kernel's random numbers follow from its arguments, so these must not name the folder, and
    # from addresses in its memory.
    command = [
        *("setarch", platform.machine(), "--addr-no-randomize", str(image)),
        *(f"mem={_MEMORY}", "rootfstype=hostfs", "rootflags=/", "ro", "init=/proc/self/cwd/init"),
        *("time-travel=inf-cpu", f"time-travel-start={_BOOT_TIME_S}", "norandmaps"),
        *("con=null", "con0=null,fd:1", "quiet", "panic=-1", "uml_dir=.", "umid=vm"),
        f"anabranch.seed={seed}",
    ]
    with (folder / "console").open("w+b") as console:
        with subprocess.Popen(
            command,
            cwd=folder,
            env={"PATH": os.defpath, "TMPDIR": _memory_folder(folder)},
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            start_new_session=True,
        ) as machine:
            try:
                _wait(machine)
            finally:
                if machine.returncode is None:
                    os.killpg(machine.pid, signal.SIGKILL)
        console.seek(0)
        return console.read().decode(errors="replace")


def _wait(machine: subprocess.Popen[bytes]) -> None:
    while True:
        try:
            machine.wait(0.05)
        except subprocess.TimeoutExpired:
            interruption.check()
        else:
            return


def _memory_folder(folder: Path) -> str:
    """Place of the machine's memory: in memory if that is allowed."""
    shared = Path("/dev/shm")
    return str(shared if os.access(shared, os.W_OK) else folder)


def _last_words(console: str) -> str:
    """The last lines of the console, without the stack trace of a panic."""
    told = console.partition("\nCPU: ")[0]
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    return "; ".join(lines[-_MOST_CONSOLE_LINES:]) or "it ended without a word"
