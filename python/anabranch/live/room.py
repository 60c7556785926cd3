"""The first process of a shell's namespaces: sets up the network and becomes the program.

It imports nothing that is slow.
"""

from __future__ import annotations

import re
import sys

from anabranch import _core

NOT_STARTED = 127
"""Exit status if the program cannot be started, as in shells."""


if __name__ == "__main__":
    try:
        _core.shell_become(sys.argv[1:])
    except OSError as error:
        reason = re.sub(r" \(os error \d+\)$", "", str(error)).lower()
        print(f"anabranch: {sys.argv[1]}: {reason}", file=sys.stderr)
        sys.exit(NOT_STARTED)
