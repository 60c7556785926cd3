"""The command that carries programs' connections over real uplinks."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from anabranch.cli.app import app
from anabranch.errors import InputError


@app.command(
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True},
    epilog="Example: anabranch proxy client --uplink eth0 --uplink wwan0 "
    "--relay relay.example.org:5124 --secret-file secret",
)
def proxy(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="client|relay|measure [OPTIONS]",
            help="Which end to run, or a measurement of the uplinks; each has its own --help.",
        ),
    ] = None,
) -> None:
    """Carry unmodified programs over several uplinks (Linux only).

    The client offers a SOCKS5 and HTTP CONNECT port on a host with several uplinks. The relay, on a
    host with one address, continues the connections to their destinations. Between the two,
    Multipath TCP uses all uplinks. A measurement probes the uplinks, and writes a scenario for
    anabranch advise. docs/proxy.md explains all of them. The program anabranch-proxy is the
    same command without Python.
    """
    from anabranch import _core

    # The proxy handles these itself: it takes down what it has set up.
    for each in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, signal.SIG_DFL)
    try:
        status = _core.proxy(
            ["anabranch proxy", *(arguments or ["--help"])],
            [sys.executable, "-m", "anabranch", "proxy"],
            [sys.executable, "-m", "anabranch.analyze.qlog"],
        )
    except OSError as error:
        raise InputError(str(error)) from None
    raise typer.Exit(status)
