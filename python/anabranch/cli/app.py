"""The command-line application, and the options and helpers that several commands share."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from anabranch import _core
from anabranch.errors import InputError, UnwritableError
from anabranch.runs import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from anabranch.results.claims import Judgement
    from anabranch.results.folder import Results
    from anabranch.runs.run import Capture, CaptureAt
    from anabranch.scenarios.overrides import Overrides

# Commands import their modules when they run, so that help and errors appear at once.


class _Command(TyperCommand):
    """A command whose help names its arguments as the command line takes them.

    An error of writing names the option that named the file or folder.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except UnwritableError as error:
            places = [
                (len(place.parts), each.opts[0])
                for each in self.get_params(ctx)
                if not _is_argument(each)
                and isinstance(place := ctx.params.get(each.name), Path)
                and error.path.is_relative_to(place)
            ]
            # A file in the folder of another option belongs to its own option.
            option = max(places, default=(0, ""))[1]
            raise UnwritableError(error.path, error.problem, option) from error

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [each for each in self.get_params(ctx) if _is_argument(each)]
        return ["[OPTIONS]", *(_name(each) for each in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments, options = [], []
        for each in self.get_params(ctx):
            name, text = each.get_help_record(ctx) or ("", "")
            if _is_argument(each):
                arguments.append((_name(each), text))
            elif name:
                options.append((name, text))
        for title, records in (("Arguments", arguments), ("Options", options)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name)


_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Application(typer.Typer):
    def command(self, name: str | None = None, **settings: Any) -> Callable[[_Function], _Function]:
        return super().command(name, cls=_Command, **settings)


app = _Application(
    name="anabranch",
    help="Multipath TCP that you can run, measure, explain and trust.",
    epilog="Example: anabranch reproduce nsdi12-fig7 --out results/nsdi12-fig7",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"anabranch {_core.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Handle the options that precede a command."""


class Machine(StrEnum):
    """Place of a live run."""

    HERE = "here"
    LINUX_VM = "linux-vm"


def out_option(text: str) -> Any:
    """The option `--out`, which names a folder or file to write."""
    return place_option("--out", "PATH", text)


def place_option(name: str, metavar: str, text: str) -> Any:
    """An option that names a folder or file to write. Errors of writing it name the option."""
    return typer.Option(name, parser=_place, metavar=metavar, help=text)


def _place(text: str) -> Path:
    if not text:
        raise typer.BadParameter("the name is empty; name a file or folder")
    return Path(text)


def count_option(text: str, low: int, high: int) -> Any:
    """An option that takes a whole number from `low` to `high`."""

    def number(written: str | int) -> int:
        if not str(written).isdecimal() or not low <= int(written) <= high:
            most = "2**64 - 1" if high == limits.MAX_SEED else f"{high:,}"
            raise typer.BadParameter(f"{written} is not a whole number from {low} to {most}")
        return int(written)

    return typer.Option(parser=number, metavar="N", help=text)


def seed_option(text: str) -> Any:
    """An option that takes a seed."""
    return count_option(text, 0, limits.MAX_SEED)


MOST_SEEDS = 10_000

ON: Any = typer.Option(
    "--on", metavar="dask://HOST:PORT", help="Run on a Dask cluster instead of all local cores."
)
JSON: Any = typer.Option("--json", help="Print the results as JSON.")
MACHINE: Any = typer.Option(
    "--in",
    metavar="here|linux-vm",
    help="Machine of live runs: this one, or the virtual one that `make linux-vm` builds.  "
    "[default: here]",
)
QLOG: Any = place_option("--qlog", "FILE", "Write each subflow as qlog, for qvis, to this file.")
PCAP: Any = place_option("--pcap", "FILE", "Write a capture (pcapng) to this file.")
PCAP_LIMIT: Any = typer.Option(
    metavar="SIZE",
    help=f"Stop the capture at this size.  [default: {limits.PCAP_LIMIT // 10**9}GB]",
)


def _policy_option(noun: str) -> Any:
    return typer.Option(metavar="NAME|FILE.py:CLASS", help=f"{noun}: built-in or your own.")


SCHEDULER: Any = _policy_option("Scheduler")
CONGESTION_CONTROL: Any = _policy_option("Congestion control")
PATH_MANAGER: Any = _policy_option("Path manager")
STRICT: Any = typer.Option("--strict", help="Exit with 1 if a claim is not reproduced.")


def enter_lab() -> None:
    """Restart the command where live runs are possible, unless it already runs there."""
    from anabranch.live import lab

    if not lab.is_inside():
        raise typer.Exit(lab.enter(sys.argv[1:]))
    lab.settle_in()


def overrides_of(
    settings: Sequence[str] | None,
    scheduler: str | None = None,
    congestion_control: str | None = None,
    path_manager: str | None = None,
) -> Overrides:
    """The changes of ``--set`` and of the options that name policies."""
    from anabranch.scenarios import custom
    from anabranch.scenarios.overrides import Overrides

    named = dict(zip(custom.KINDS, (scheduler, congestion_control, path_manager), strict=True))
    policies = {kind: text for kind, text in named.items() if text is not None}
    return Overrides(settings or (), policies)


def require(condition: bool, message: str) -> None:
    """Reject options that cannot be combined.

    Raises:
        InputError: with the message, if the condition is false.
    """
    if not condition:
        raise InputError(message)


def capture_of(
    pcap: Path | None, limit: str | None, at: CaptureAt | None, snap: int | None = None
) -> Capture | None:
    """The capture that options describe, or `None` without ``--pcap``."""
    from anabranch.runs.run import Capture
    from anabranch.scenarios import quantities

    require(pcap is not None or limit is None, "--pcap-limit needs --pcap")
    if pcap is None:
        return None
    size = limits.PCAP_LIMIT if limit is None else quantities.size(limit, "--pcap-limit")
    return Capture(pcap, size, at, snap)


def import_drawing_early() -> None:
    """Begin to import the code that draws reports, which takes about a second.

    Runs leave Python's interpreter lock free, so this takes no time from them on an idle core.
    """
    threading.Thread(target=importlib.import_module, args=("anabranch.gallery.reproduce",)).start()


def write_report(results: Results, folder: Path) -> list[Judgement]:
    """Write the report of results. Judge their claims first, if they belong to a gallery entry."""
    from anabranch.cli import console
    from anabranch.gallery import catalogue
    from anabranch.gallery.reproduce import save_entry
    from anabranch.reports import single_run
    from anabranch.sweeps import report as sweep_report

    with console.working("drawing the report"):
        if "sweep" in results.provenance:
            sweep_report.save(results, folder)
            return []
        if results.provenance["entry"] is None:
            single_run.save(results, folder)
            return []
        return save_entry(catalogue.entry(results.provenance["entry"]), results, folder)


def figure_of(results: Results) -> Figure:
    """The figure of the report of results."""
    from anabranch.gallery import catalogue
    from anabranch.reports import pictures, single_run
    from anabranch.sweeps import panels as sweep_panels

    about = results.provenance
    if "sweep" in about:
        panels, title = sweep_panels.panels(results), str(about["sweep"])
    elif about["entry"] is None:
        panels, title = single_run.panels(results), str(about["scenario"])
    else:
        entry = catalogue.entry(about["entry"])
        panels, title = entry.panels, entry.row.title
    return pictures.compose(panels, results, title, pictures.COLUMNS)


def print_judgements(results: Results, judgements: Sequence[Judgement], folder: Path) -> None:
    """Print the claims with their verdicts, the cost of the runs, and the report's file name."""
    from anabranch.cli import console, tables
    from anabranch.gallery import comparison
    from anabranch.results.provenance import effort

    screen = console.stdout()
    if judgements:
        screen.print(tables.claims(judgements))
        if (compared := comparison.table(judgements)) is not None:
            console.show(tables.of_report(compared, "The same claims on all systems"))
        console.say(effort(results.provenance))
        if system := results.provenance.get("system"):
            console.say(f"judged on a model of the source's system: {system}")
    print_report(folder)


def print_report(folder: Path) -> None:
    """Print the report's file name."""
    print_file("report", folder / "report.html")


def print_file(what: str, file: Path) -> None:
    """Print the name of a file that was written."""
    from anabranch.cli import console

    console.stdout().print(f"{what}: {file}", soft_wrap=True, highlight=False, markup=False)
