"""The commands that turn scenarios into scripts for real kernels, and scripts into scenarios."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli.app import app, out_option
from anabranch.cli.messages import complain


class ScriptKind(StrEnum):
    """A kind of script."""

    TC = "tc"
    MININET = "mininet"


@app.command(
    "export", epilog="Example: anabranch export examples/two_clean_paths.toml --to tc --out run.sh"
)
def export_script(
    file: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario (TOML).")],
    to: Annotated[
        ScriptKind,
        typer.Option(metavar="tc|mininet", help="Kind of script: a shell script, or Python."),
    ],
    out: Annotated[Path | None, out_option("Write the script to this file.")] = None,
) -> None:
    """Write a script that repeats a scenario on a real kernel.

    The script sets up the same links between network namespaces, with tc or with Mininet. It
    configures Linux's Multipath TCP as the scenario says, makes the traffic, prints the goodput,
    and removes everything. It needs root.

    Lists on standard error, and at the head of the script, where the script differs from the
    scenario. docs/export.md describes the links.
    """
    from anabranch.exchange.export import export
    from anabranch.scenarios import loading

    made = export(loading.of_file(file), to.value)
    _write(made.text, out, file)
    for line in made.differences:
        complain(f"difference: {line}")


def _write(text: str, out: Path | None, made_of: Path) -> None:
    from anabranch.files import prepare_file, write_file

    if out is None:
        typer.echo(text, nl=False)
        return
    prepare_file(out, [made_of])
    write_file(out, text.encode())


@app.command("import", epilog="Example: anabranch import topology.py --out scenario.toml")
def import_script(
    file: Annotated[
        Path, typer.Argument(metavar="SCRIPT.py", help="Script that sets up a Mininet topology.")
    ],
    out: Annotated[Path | None, out_option("Write the scenario to this file (TOML).")] = None,
) -> None:
    """Turn a Mininet script into a scenario.

    Reads the script without running it: hosts, switches, links with their rates, delays, losses and
    queues, iperf, and sysctls. Each route from client to server becomes a path. The client is the
    host that runs iperf's client, or the first host.

    Lists on standard error each line that it does not understand. docs/export.md describes what it
    reads.
    """
    from anabranch.exchange import importing

    made = importing.read(file)
    made.scenario()
    _write(made.toml, out, file)
    for line in made.differences:
        complain(line)
