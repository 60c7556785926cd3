"""Running the command line: errors become one line and an exit status.

Exit status:

* 0: the command completed.
* 1: a packet script failed, a run broke a guarantee of the engine, or, with ``--strict``, a claim
  is not reproduced or a capture violates RFC 8684.
* 2: the input is bad. One line on standard error says why. If the user's own policy raised an
  exception, its traceback precedes that line.
* 130: Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from types import TracebackType

import typer

from anabranch.cli import advise, experiments, explain, runs, shell, tools, trace, twin
from anabranch.cli.app import app
from anabranch.cli.messages import complain
from anabranch.errors import AnabranchError, PolicyError
from anabranch.runs import interruption

__all__ = [
    "advise",
    "app",
    "experiments",
    "explain",
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
    with _interruptible():
        status = 0
        try:
            status = _status(arguments)
            sys.stdout.flush()
        except KeyboardInterrupt:
            interruption.request()
        except BrokenPipeError:
            return _give_up_output(0)
        except OSError as error:  # from print; other OSErrors become errors of this package
            reason = (error.strerror or str(error)).lower()
            return _give_up_output(_complain(f"standard output: {reason}", 2))
    # An interruption counts even if a destructor swallowed its exception.
    return _complain(_interrupted(arguments), 130) if interruption.requested() else status


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
        return _complain(f"{error.format_message()} (see: {command} --help)", 2)
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    return status if isinstance(status, int) else 0


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Make Ctrl-C and SIGTERM end all runs and raise `KeyboardInterrupt`.

    A job scheduler that ends the command with SIGTERM thus leaves no worker process behind. Shells
    start background commands with SIGINT ignored; it then stays ignored.
    """
    interruption.request(wanted=False)
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    handled = [each for each, handler in before.items() if handler is not signal.SIG_IGN]
    for each in handled:
        signal.signal(each, _on_interrupt)
    try:
        yield
    finally:
        for each in handled:
            signal.signal(each, before[each])


def _on_interrupt(*_: object) -> None:
    interruption.request()
    raise KeyboardInterrupt


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


def _give_up_output(status: int) -> int:
    """Discard the remaining output, because standard output cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    _complain(str(message), 0)


def _complain(message: str, status: int) -> int:
    complain(message)
    return status
