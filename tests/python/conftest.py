import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import anabranch

WIFI = anabranch.NetworkPath(name="wifi", rate="8Mbit/s", delay="10ms", limit="54packets")
THREE_G = anabranch.NetworkPath(
    name="3g", rate="2Mbit/s", delay="75ms", limit="334packets", jitter="50ms"
)


def scenario(duration: str = "3s", **changes: object) -> anabranch.Scenario:
    """A short run over WiFi and 3G."""
    settings: dict[str, object] = {
        "name": "main",
        "send_buffer": "200KiB",
        "receive_buffer": "200KiB",
        "workload": anabranch.Blocks(block_size="8KiB"),
    }
    connection = anabranch.Connection(**(settings | changes))  # type: ignore[arg-type]
    return anabranch.Scenario(
        name="short",
        duration=duration,
        warm_up="1s",
        paths=(WIFI, THREE_G),
        connections=(connection,),
    )


def ratio_of_medians(a: Any, b: Any, axis: int) -> Any:
    return np.median(a, axis=axis) / np.median(b, axis=axis)


def interrupt(process: subprocess.Popen[str], within_s: float = 2) -> tuple[str, str]:
    """Send SIGINT to a process, check that it ends at once, and return its outputs.

    Time in which the process waits for a processor does not count towards `within_s`, because a
    busy machine can make it wait for seconds. It may use one second of processor time.
    """
    begun, before = time.monotonic(), _scheduled_s(process.pid)
    process.send_signal(signal.SIGINT)
    used = waited = 0.0
    while used < 1 and time.monotonic() - begun - waited < within_s:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=0.05)
        now = _scheduled_s(process.pid)
        used, waited = now[0] - before[0], now[1] - before[1]
    process.kill()
    pytest.fail("SIGINT does not end the process at once (0.2 s on an idle machine)")


def _scheduled_s(pid: int) -> tuple[float, float]:
    """Processor time of a process, and the time in which its main thread waited for a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    used_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    waited_ns = int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])
    return used_s, waited_ns / 1e9


@pytest.fixture(scope="session")
def short_run() -> anabranch.Run:
    return anabranch.run(scenario(), seed=1)


@pytest.fixture(scope="session", autouse=True)
def no_width() -> None:
    """Forget the width of the terminal, which pytest-xdist passes on to its workers."""
    os.environ.pop("COLUMNS", None)


@pytest.fixture(scope="module")
def plain_pictures() -> Iterator[None]:
    """Replace the pictures of figures by a constant, in tests that do not look at them.

    To compute their layout and to write them takes half of the time of a report.
    """

    def savefig(_: Figure, file: IO[bytes], **__: object) -> None:
        file.write(b"<svg><style></style></svg>")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", savefig)
        patch.setattr(Figure, "draw_without_rendering", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Let SIGINT interrupt this process, and every child that the test starts.

    A shell without job control starts background commands with SIGINT ignored, and children
    inherit that. They do not inherit a handler: a child of a process that handles SIGINT starts
    with the default handler.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
