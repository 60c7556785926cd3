"""Running the command line: errors become one line and an exit status.

Exit status:

* 0: the command completed.
* 1: a packet script failed, a run broke a guarantee of the engine, or, with ``--strict``, a claim
  is not reproduced or a capture violates RFC 8684.
* 2: the input is bad. One line on standard error says why. If the user's own policy raised an
  exception, its traceback precedes that line.
* 130: Ctrl-C. 143: SIGTERM.

If the reader of a pipe stops reading, as ``head -1`` does, the command discards the remaining
output and completes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, TextIO

import typer

from anabranch.cli import (
    advise,
    exchange,
    experiments,
    explain,
    play,
    proxy,
    runs,
    shell,
    tools,
    trace,
    twin,
)
from anabranch.cli.app import app
from anabranch.cli.messages import complain
from anabranch.errors import AnabranchError, PolicyError
from anabranch.files import reason
from anabranch.runs import interruption

__all__ = [
    "advise",
    "app",
    "exchange",
    "experiments",
    "explain",
    "play",
    "proxy",
    "run_command",
    "runs",
    "shell",
    "tools",
    "trace",
    "twin",
]


def run_command(arguments: Sequence[str]) -> int:
    """Run the command line with these arguments and return the exit status."""
    warnings.showwarning = _warn
    for each in arguments:
        if (shown := _without_bytes(each)) != each:
            return _complain(f"{shown}: not UTF-8 text; rename the file, or write another value", 2)
    with _interruptible() as received, _read_or_not("stdout"), _read_or_not("stderr"):
        status = 0
        try:
            status = _status(arguments)
            sys.stdout.flush()
        except KeyboardInterrupt:
            interruption.request()
        except _OutputError as error:
            _discard(sys.stdout)
            return _complain(str(error), 2)
        except OSError as error:  # of the system, such as no space for temporary files
            name = error.filename
            place = f"{os.fsdecode(name)}: " if isinstance(name, str | bytes) else ""
            return _complain(f"{place}{reason(error)}", 2)
    # An interruption counts even if a destructor swallowed its exception.
    if interruption.requested():
        return _complain(_interrupted(arguments), 128 + (received or [signal.SIGINT])[0])
    return status


def _without_bytes(argument: str) -> str:
    """The argument with an escape for each byte that is not UTF-8, and that no result can name."""
    return argument.encode(errors="surrogateescape").decode(errors="backslashreplace")


_RESUMED = ("sweep", "reproduce", "calibrate", "gallery")
"""Commands that keep finished runs in the folder of their results."""


def _interrupted(arguments: Sequence[str]) -> str:
    resumed = bool(arguments) and arguments[0] in _RESUMED
    return f"interrupted{'; the same command makes only the missing runs' if resumed else ''}"


def _status(arguments: Sequence[str]) -> int:
    try:
        status = app(list(arguments) or ["--help"], prog_name="anabranch", standalone_mode=False)
    except PolicyError as error:
        _print_traceback(error.__cause__)
        return _complain(str(error), error.exit_status)
    except AnabranchError as error:
        return _complain(str(error), error.exit_status)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = "anabranch" if context is None else context.command_path
        hint = shell.hint(arguments) if type(error).__name__ == "NoSuchOption" else ""
        return _complain(f"{error.format_message()}{hint} (see: {command} --help)", 2)
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    return status if isinstance(status, int) else 0


@contextlib.contextmanager
def _interruptible() -> Iterator[list[int]]:
    """Make Ctrl-C and SIGTERM end all runs and raise `KeyboardInterrupt`. Yields those received.

    A job scheduler that ends the command with SIGTERM thus leaves no worker process behind. Shells
    start background commands with SIGINT ignored; it then stays ignored.
    """
    received: list[int] = []

    def on_signal(number: int, _: object) -> None:
        received.append(number)
        interruption.request()
        raise KeyboardInterrupt

    interruption.request(wanted=False)
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    handled = [each for each, handler in before.items() if handler is not signal.SIG_IGN]
    for each in handled:
        signal.signal(each, on_signal)
    try:
        yield received
    finally:
        for each in handled:
            signal.signal(each, before[each])


class _OutputError(Exception):
    """Standard output cannot be written."""


class _ReadOrNot:
    """A standard stream whose reader may stop reading, or whose terminal may hang up.

    It discards what cannot be written then. Any other error of a `needed` stream, standard output,
    ends the command.

    Otherwise the error would reach Rich or Typer, which exit at once, and results would be lost.
    """

    def __init__(self, stream: TextIO, *, needed: bool) -> None:
        self._stream, self._needed = stream, needed
        self._ends = (errno.EPIPE, errno.EIO) if stream.isatty() else (errno.EPIPE,)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._discard_after(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._discard_after(error)

    def _discard_after(self, error: OSError) -> None:
        if self._needed and error.errno not in self._ends:
            raise _OutputError(f"standard output: {reason(error)}") from error
        _discard(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _read_or_not(name: str) -> Iterator[None]:
    stream = getattr(sys, name)
    setattr(sys, name, _ReadOrNot(stream, needed=name == "stdout"))
    try:
        yield
    finally:
        setattr(sys, name, stream)


def _print_traceback(error: BaseException | None) -> None:
    """Print the traceback of an error in the user's own code, from the user's first frame on."""
    if error is None:
        return
    frames = error.__traceback__
    while frames is not None and not _is_users(frames):
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames, file=sys.stderr)


def _is_users(frame: TracebackType) -> bool:
    file = frame.tb_frame.f_code.co_filename
    return not file.startswith(("<frozen", os.path.dirname(os.path.dirname(__file__)) + os.sep))


def _discard(stream: TextIO) -> None:
    """Discard the remaining output of a standard stream, because it cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    _complain(str(message), 0)


def _complain(message: str, status: int) -> int:
    complain(message)
    return status
