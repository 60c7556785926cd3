"""Shared by the entries in real time: the stacks of the hosts, and lateness."""

import dataclasses

import numpy as np

from anabranch.gallery.entry import Cell
from anabranch.live.hosts import Hosts
from anabranch.results.folder import Results
from anabranch.scenarios.scenario import Connection, Scenario

VIRTUAL = "engine, virtual time"
ENGINE = "engine, real time"
KERNEL = "Linux, real time"
HOSTS = (VIRTUAL, ENGINE, KERNEL)

_RUN_BY = {VIRTUAL: None, ENGINE: Hosts("engine", "engine"), KERNEL: Hosts("kernel", "kernel")}


def on(hosts: str, cell: Cell) -> Cell:
    """The cell on these hosts, which are its first factor."""
    scenario = cell.scenario
    if hosts == KERNEL:
        assert isinstance(scenario, Scenario)
        known = [_known_to_linux(each) for each in scenario.connections]
        scenario = dataclasses.replace(scenario, connections=tuple(known))
    factors = {"hosts": hosts, **cell.factors}
    return dataclasses.replace(cell, scenario=scenario, factors=factors, hosts=_RUN_BY[hosts])


def _known_to_linux(connection: Connection) -> Connection:
    """The connection with NewReno or CUBIC, because Linux has no coupled congestion control."""
    if connection.protocol == "tcp" and connection.congestion_control == "new_reno":
        return connection
    return dataclasses.replace(connection, congestion_control="cubic")


def lateness(results: Results) -> str:
    """State in words how late the emulator was in the runs in real time."""
    runs = results.runs.drop_nulls("late_p999_ms")
    late, latest, share = (
        runs[name].to_numpy() for name in ("late_p999_ms", "late_max_ms", "late_share")
    )
    worst = int(late.argmax())
    return (
        f"The 99.9th percentile of the emulator's lateness was at most {late[worst]:.2f} ms "
        f"({runs['cell'][worst]}, seed {runs['seed'][worst]}), and {np.median(late):.2f} ms in the "
        f"median of {runs.height} runs. The latest packet of all was {latest.max():.1f} ms late. "
        f"At most {share.max():.2%} of a run's packets were later than 1 ms."
    )
