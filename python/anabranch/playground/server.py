"""A local server of the playground's files.

`make playground` builds the files into the folder `site` next to this module, and wheels contain
them. The engine runs in the browser, so the server only sends files.
"""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from anabranch.errors import InputError
from anabranch.files import reason
from anabranch.scenarios.addresses import PORT

SITE = Path(__file__).parent / "site"


class _Files(SimpleHTTPRequestHandler):
    """Sends files without logging."""

    # Some systems do not know the type of a module. Browsers insist on it.
    extensions_map = {  # noqa: RUF012
        **SimpleHTTPRequestHandler.extensions_map,
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Log nothing."""

    def end_headers(self) -> None:
        """Let the browser ask again: the next build has the same addresses."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()


class _Server(ThreadingHTTPServer):
    daemon_threads = True


def server(port: int | None, site: Path = SITE) -> _Server:
    """A server on the loopback interface; port 0 takes a free one.

    `None` is the port of the links in reports. If another program has it, a free one is taken.

    Raises:
        InputError: if the playground was not built, or the port is not free.
    """
    if not (site / "index.html").is_file():
        raise InputError(
            "play: this installation has no playground; build it: make playground install"
        )
    files = partial(_Files, directory=str(site))
    try:
        return _Server(("127.0.0.1", PORT if port is None else port), files)
    except OSError as error:
        if port is None:
            return _Server(("127.0.0.1", 0), files)
        raise InputError(f"--port {port}: {reason(error)}") from None
