"""Entry point of the command `anabranch` and of `python -m anabranch`."""

import os
import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit.

    Exit status: see `anabranch.cli.main`.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # During the imports, Ctrl-C can exit at once: there is nothing to clean up.
        signal.signal(signal.SIGINT, _leave)
    from anabranch.cli import main as command_line

    sys.exit(command_line.run_command(sys.argv[1:]))


def _leave(*_: object) -> NoReturn:
    os.write(2, b"anabranch: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
