"""The command that makes packet-delivery traces."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli.app import app, out_option, require, seed_option
from anabranch.errors import InputError


class TimeUnit(StrEnum):
    """The unit of the first column."""

    SECONDS = "s"
    MILLISECONDS = "ms"
    MICROSECONDS = "us"


class RateUnit(StrEnum):
    """The unit of the second column."""

    MEGABITS = "Mbit/s"
    KILOBITS = "kbit/s"
    BITS = "bit/s"
    MEGABYTES = "MB/s"
    KILOBYTES = "kB/s"


@app.command(epilog="Example: anabranch trace examples/rates.csv --out cellular.trace")
def trace(
    out: Annotated[Path, out_option("Write the trace to this file.")],
    rates: Annotated[
        Path | None,
        typer.Argument(metavar="[RATES]", help="Text file with a time and a rate on each line."),
    ] = None,
    time_unit: Annotated[
        TimeUnit | None,
        typer.Option(metavar="s|ms|us", help="Unit of the times in RATES.  [default: s]"),
    ] = None,
    rate_unit: Annotated[
        RateUnit | None,
        typer.Option(
            metavar="UNIT",
            help="Unit of the rates in RATES: Mbit/s, kbit/s, bit/s, MB/s or kB/s.  "
            "[default: Mbit/s]",
        ),
    ] = None,
    mean: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Make random rates with this mean, such as 8Mbit/s."),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Length of random rates.  [default: 60s]"),
    ] = None,
    seed: Annotated[int | None, seed_option("Seed of random rates.  [default: 1]")] = None,
) -> None:
    """Make a packet-delivery trace from rates over time.

    Writes a trace in Mahimahi's format, which `trace = ...` of a path and mm-link read. The rates
    come from a file with two columns, separated by commas, semicolons or blanks, or are random
    (--mean).
    docs/scenarios.md says how rates become delivery opportunities.
    """
    from anabranch.cli import console
    from anabranch.files import prepare_file, write_file
    from anabranch.scenarios import traces

    prepare_file(out, [] if rates is None else [rates])
    require(rates is not None or mean is not None, "name a file with rates, or give --mean RATE")
    require(rates is None or mean is None, "name either a file with rates or --mean, not both")
    if rates is not None:
        require(duration is None and seed is None, "--duration and --seed need --mean")
        made = traces.read_rates(rates, time_unit or "s", rate_unit or "Mbit/s")
    else:
        require(time_unit is None and rate_unit is None, "--time-unit and --rate-unit need a file")
        made = traces.synthetic(
            *_quantities(str(mean), duration or "60s"), 1 if seed is None else seed
        )
    times = traces.opportunities(made)
    write_file(out, traces.to_file(times).encode())
    bits = len(times) * traces.OPPORTUNITY_BYTES * 8
    noun = "opportunity" if len(times) == 1 else "opportunities"
    console.say(
        f"{out}: {times[-1] / 1000:g} s, {bits / times[-1] / 1000:.4g} Mbit/s on average, "
        f"{len(times):,} delivery {noun}"
    )


def _quantities(mean: str, duration: str) -> tuple[int, int]:
    """The mean in bit/s and the duration in microseconds."""
    from anabranch.scenarios.quantities import bits_per_second, nanoseconds
    from anabranch.scenarios.traces import LONGEST_US, STEP_US

    try:
        rate = bits_per_second(mean)
    except ValueError as error:
        raise InputError(f"--mean: {error}") from error
    try:
        length = nanoseconds(duration) // 1000
    except ValueError as error:
        raise InputError(f"--duration: {error}") from error
    require(
        0 < length <= LONGEST_US and length % STEP_US == 0,
        f'--duration: "{duration}" is not a multiple of 100 ms up to a day; write one such as 60s',
    )
    return rate, length
