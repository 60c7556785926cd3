"""Entry point of the command `anabranch` and of `python -m anabranch`."""

import os
import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit.

    Exit status: see `anabranch.cli.main`.
    """
    _open_standard_files()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # During the imports, Ctrl-C can exit at once: there is nothing to clean up.
        signal.signal(signal.SIGINT, _leave)
    from anabranch.cli import main as command_line

    sys.exit(command_line.run_command(sys.argv[1:]))


def _open_standard_files() -> None:
    """Open the null device in place of standard files that the caller has closed.

    Without it, the first file that the command opens would take the place of standard output.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor, which is this one
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, encoding="utf-8"))  # noqa: SIM115


def _leave(*_: object) -> NoReturn:
    os.write(2, b"anabranch: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
