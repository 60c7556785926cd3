"""The command that opens the playground."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli.app import app, count_option, seed_option
from anabranch.errors import InputError

_MAX_PORT = 65_535


@app.command(epilog="Example: anabranch play examples/wifi_3g.toml")
def play(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Scenario (TOML) to open.")
    ] = None,
    seed: Annotated[int, seed_option("Random seed.")] = 1,
    port: Annotated[
        int | None,
        count_option("Port of the local server.  [default: 8684, or a free one]", 0, _MAX_PORT),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
) -> None:
    """Watch a scenario run in the browser.

    Opens the playground: a web page that runs the engine itself, draws every packet, and explains
    what holds the connection back. Change rates, delays and losses while it runs, or follow its
    lessons. A local server sends the page. Nothing leaves this machine. Ctrl-C ends it.

    While it runs, the links in reports open their scenarios.
    """
    from anabranch.playground.server import server
    from anabranch.scenarios.addresses import fragment

    place = "" if file is None else fragment([_session(file, seed)])
    with server(port) as running:
        address = f"http://127.0.0.1:{running.server_address[1]}/"
        typer.echo(f"playground: {address} (Ctrl-C ends it)")
        if browser:
            webbrowser.open(address + place)
        elif place:
            typer.echo(f"scenario:   {address}{place}")
        running.serve_forever(poll_interval=0.1)


def _session(file: Path, seed: int) -> tuple[str, str, int]:
    from anabranch.scenarios import loading

    scenario = loading.of_file(file)
    if scenario.policies:
        raise InputError(f"{file}: the playground has no Python: choose built-in policies")
    return scenario.to_toml(), file.name, seed
