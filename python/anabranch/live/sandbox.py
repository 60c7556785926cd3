"""The first process of a shell's namespaces: sets up the network and becomes the program.

It imports nothing that is slow.
"""

from __future__ import annotations

import os
import re
import sys

from anabranch import _core
from anabranch.errors import visible

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit status if there is no such program, or if it cannot be started, as in shells."""


def _start(command: list[str]) -> int:
    """Become the program. Returns the exit status if that fails."""
    try:
        _core.shell_become(command)
    except OSError as error:
        reason = re.sub(r" \(os error \d+\)$", "", str(error)).lower()
        if os.path.isdir(command[0]):
            reason = "this is a folder; name a program"
        print(f"anabranch: {visible(command[0])}: {reason}", file=sys.stderr)
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    return 0


if __name__ == "__main__":
    sys.exit(_start(sys.argv[1:]))
