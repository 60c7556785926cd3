"""The command `anabranch`, also as `python -m anabranch`."""

import os
import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit.

    Exit status: see `anabranch.cli.main`.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Until everything is imported, Ctrl-C has nothing to tidy up.
        signal.signal(signal.SIGINT, _leave)
    from anabranch.cli import main as command_line

    sys.exit(command_line.run_command(sys.argv[1:]))


def _leave(*_: object) -> NoReturn:
    os.write(2, b"anabranch: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
