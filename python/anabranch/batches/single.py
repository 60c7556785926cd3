"""Results of a single run of the user's scenario."""

from __future__ import annotations

from anabranch import _core
from anabranch.batches import batch
from anabranch.batches.reduction import Task, reduce
from anabranch.live.run import Conditions
from anabranch.results.collected import Collected
from anabranch.results.folder import Results, shortened
from anabranch.results.provenance import build
from anabranch.runs.run import Run


def single(run: Run, name: str, wall_s: float, conditions: Conditions | None = None) -> Results:
    """The results of a single run of the user's scenario, with all blocks and samples.

    `conditions` belong to a live run.
    """
    task = Task(
        # The cell also names a file, and a scenario's name may contain "/", as in "2 Mbit/s".
        cell=shortened(name.replace("/", "-")),
        factors={},
        scenario=run.scenario,
        seed=run.seed,
        build=build(),
        keep_blocks=True,
        keep_samples=True,
        may_fail=True,
    )
    about = {
        "entry": None,
        "scenario": name,
        "description": run.settings["description"],
        "seeds": [run.seed],
        "duration": run.settings["duration"],
        "warm_up": run.settings["warm_up"],
        "wall_s": round(wall_s, 2),
        **({} if conditions is None else {"live": conditions.provenance()}),
    }
    found = Collected(_core.collect([run.scenario], [(0, reduce(task, run))]))
    return batch.collect(about, [task], [0], found)
