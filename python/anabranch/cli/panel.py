"""The terminal of a program inside the emulated network: its output above, the paths below.

The program gets a terminal of its own that is a few lines shorter. What it writes goes to the real
terminal, whose last lines do not scroll and show the paths. Keys go to the program, except after
Ctrl-].
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
import tty
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from anabranch.live.shell import Shell, ShellPath

_ESCAPE = b"\x1d"
"""Ctrl-], as in telnet."""
_INTERVAL_S = 0.5
_FEWEST_LINES = 12
"""The program's lines that must remain."""
_CHUNK = 1 << 16


class PathPanel:
    """The lines that show the paths."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._before: tuple[float, list[ShellPath]] | None = None

    @property
    def height(self) -> int:
        """Number of lines."""
        return len(self._names) + 2

    def lines(self, now: float, paths: list[ShellPath], width: int) -> list[str]:
        """The lines for a terminal of this width."""
        table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, width=width)
        for heading in ("path", "down", "up", "share", "RTT", "window", "queue", "subflows"):
            table.add_column(heading, justify="left" if heading == "path" else "right")
        rates = self._rates(now, paths)
        total = sum(sum(rate) for rate in rates)
        for number, (name, path, (down, up)) in enumerate(
            zip(self._names, paths, rates, strict=True), 1
        ):
            share = f"{(down + up) / total * 100:.0f} %" if total else "–"
            table.add_row(
                Text(f"{number} {name}", style="" if path.up else "red"),
                *((f"{down:.2f} Mbit/s", f"{up:.2f} Mbit/s") if path.up else ("down", "down")),
                share,
                "–" if path.srtt_ns is None else f"{path.srtt_ns / 1e6:.0f} ms",
                f"{path.cwnd / 1000:.0f} kB",
                f"{sum(path.queued) / 1000:.0f} kB",
                str(path.subflows),
            )
        last = min(len(self._names), 9)  # a key is one digit
        keys = Text(f"Ctrl-] 1–{last}: take a path down or up", style="dim")
        console = Console(width=width, force_terminal=True, highlight=False)
        with console.capture() as captured:
            console.print(table)
            console.print(keys, no_wrap=True, overflow="crop")
        return captured.get().splitlines()[: self.height]

    def _rates(self, now: float, paths: list[ShellPath]) -> list[tuple[float, float]]:
        """Rates down and up in Mbit/s since the last call."""
        before, self._before = self._before, (now, paths)
        if before is None or now <= before[0]:
            return [(0.0, 0.0) for _ in paths]
        scale = 8e-6 / (now - before[0])
        return [
            (
                (path.bytes_down - old.bytes_down) * scale,
                (path.bytes_up - old.bytes_up) * scale,
            )
            for path, old in zip(paths, before[1], strict=True)
        ]


class Screen:
    """A terminal that is shared by a program and a panel."""

    def __init__(self, panel: PathPanel, screen: int) -> None:
        self._panel, self._screen = panel, screen
        self._master, self._slave = pty.openpty()
        self._keyboard = os.isatty(0)
        self._escaped = False
        self._resized = True
        self._drawn = 0.0
        self._size = os.terminal_size((80, 24))

    @staticmethod
    def fits(panel: PathPanel, screen: int) -> bool:
        """Whether the terminal has enough lines."""
        return os.get_terminal_size(screen).lines >= _FEWEST_LINES + panel.height

    def slave(self) -> int:
        """The program's terminal, which the caller owns."""
        self._resize()
        return self._slave

    def follow(self, shell: Shell) -> None:
        """Pass input and output on until the program is over."""
        modes = termios.tcgetattr(0) if self._keyboard else None
        before: Any = signal.signal(signal.SIGWINCH, self._on_resize)
        try:
            if modes is not None:
                tty.setraw(0)
            self._reserve()
            while not shell.is_over:
                self._pass_on(shell)
                if self._resized:
                    self._resize()
                    self._reserve()
                if time.monotonic() - self._drawn >= _INTERVAL_S:
                    self._draw(shell)
            while self._output():
                pass
        finally:
            self._release()
            signal.signal(signal.SIGWINCH, before)
            if modes is not None:
                with contextlib.suppress(termios.error):  # of a terminal that has hung up
                    termios.tcsetattr(0, termios.TCSADRAIN, modes)
            os.close(self._master)

    def _on_resize(self, *_: object) -> None:
        self._resized = True

    def _resize(self) -> None:
        """Give the program's terminal the size that remains."""
        self._resized = False
        self._size = os.get_terminal_size(self._screen)
        lines = max(self._size.lines - self._panel.height, 1)
        size = struct.pack("HHHH", lines, self._size.columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def _reserve(self) -> None:
        """Keep the last lines from scrolling."""
        height = self._panel.height
        self._write("\n" * height + f"\x1b[{height}A\x1b7\x1b[1;{self._size.lines - height}r\x1b8")

    def _release(self) -> None:
        """Clear the last lines, and let the whole terminal scroll."""
        first = self._size.lines - self._panel.height + 1
        self._write(f"\x1b7\x1b[r\x1b[{first};1H\x1b[J\x1b8")

    def _draw(self, shell: Shell) -> None:
        self._drawn = time.monotonic()
        lines = self._panel.lines(self._drawn, shell.paths(), self._size.columns)
        first = self._size.lines - self._panel.height + 1
        drawn = "".join(f"\x1b[{first + n};1H\x1b[2K{line}" for n, line in enumerate(lines))
        self._write(f"\x1b7{drawn}\x1b[0m\x1b8")

    def _write(self, text: str) -> None:
        self._show(text.encode())

    def _show(self, data: bytes) -> None:
        """Write to the terminal, unless it has hung up."""
        view = memoryview(data)
        with contextlib.suppress(OSError):
            while view:
                view = view[os.write(self._screen, view) :]

    def _pass_on(self, shell: Shell) -> None:
        inputs = [self._master, *([0] if self._keyboard else [])]
        ready, _, _ = select.select(inputs, [], [], 0.05)
        if self._master in ready and not self._output():
            time.sleep(0.02)  # the program has closed its terminal, and has not ended yet
        if 0 in ready:
            keys = self._typed()
            self._keyboard = bool(keys)
            self._keys(keys, shell)

    @staticmethod
    def _typed() -> bytes:
        """Bytes from the keyboard; none if the terminal has hung up."""
        try:
            return os.read(0, _CHUNK)
        except OSError:
            return b""

    def _output(self) -> bool:
        """Show output of the program. Returns whether there was any."""
        if not select.select([self._master], [], [], 0)[0]:
            return False
        try:
            data = os.read(self._master, _CHUNK)
        except OSError:  # the program has closed its terminal
            return False
        self._show(data)
        return bool(data)

    def _keys(self, keys: bytes, shell: Shell) -> None:
        for key in (keys[at : at + 1] for at in range(len(keys))):
            if self._escaped:
                self._escaped = False
                if key.isdigit() and 1 <= int(key) <= self._panel.height - 2:
                    shell.toggle(int(key) - 1)
                    self._drawn = 0.0
                elif key == _ESCAPE:
                    os.write(self._master, key)
            elif key == _ESCAPE:
                self._escaped = True
            else:
                os.write(self._master, key)


def screen_for(names: Sequence[str]) -> Screen | None:
    """A screen for these paths, if standard error or output is a terminal with enough lines."""
    panel = PathPanel(names)
    for stream in (sys.stderr, sys.stdout):
        if stream.isatty() and Screen.fits(panel, stream.fileno()):
            return Screen(panel, stream.fileno())
    return None
