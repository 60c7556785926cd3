"""Multipath TCP that you can run, measure, explain and trust.

The compiled engine runs scenarios in virtual time. This package describes scenarios, runs them
in parallel, keeps results in a folder, and checks published claims against them. The command
line `anabranch` does the same without writing Python.
"""

from anabranch._core import ScenarioError, __version__
from anabranch.errors import AnabranchError, InputError, IntegrityError, PolicyError
from anabranch.runs.executors import Progress
from anabranch.runs.run import Job, Run, run, run_many
from anabranch.scenarios.scenario import (
    Blocks,
    Bulk,
    BurstLoss,
    Cbr,
    Change,
    Connection,
    CrossTraffic,
    Distribution,
    Middlebox,
    OnOff,
    Path,
    Queue,
    RequestResponse,
    Reverse,
    Scenario,
    SharedBottleneckDetection,
    Trace,
)
from anabranch.sweeps.sweep import sweep

__all__ = [
    "AnabranchError",
    "Blocks",
    "Bulk",
    "BurstLoss",
    "Cbr",
    "Change",
    "Connection",
    "CrossTraffic",
    "Distribution",
    "InputError",
    "IntegrityError",
    "Job",
    "Middlebox",
    "OnOff",
    "Path",
    "PolicyError",
    "Progress",
    "Queue",
    "RequestResponse",
    "Reverse",
    "Run",
    "Scenario",
    "ScenarioError",
    "SharedBottleneckDetection",
    "Trace",
    "__version__",
    "run",
    "run_many",
    "sweep",
]
