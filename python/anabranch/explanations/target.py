"""The run that the user wants explained: of a scenario, or of a results folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch.analyze.given import Given
from anabranch.errors import InputError
from anabranch.results.folder import load
from anabranch.runs.run import Run, run_scenario
from anabranch.scenarios import custom, loading
from anabranch.scenarios.overrides import Overrides
from anabranch.scenarios.scenario import Scenario


class Kind(Enum):
    """Kind of the files that the user wants explained."""

    CAPTURES = auto()
    TEXTS = auto()
    """Output of ss and nstat: files with the suffix ``.txt``."""
    RUN = auto()
    """One scenario or one folder with results."""


def kind_of(targets: Sequence[Given]) -> Kind:
    """The kind of the targets.

    Raises:
        InputError: if they are of several kinds, or if there are several scenarios or folders.
    """
    kinds = [_kind(each) for each in targets]
    if len(targets) > 1:
        for each, kind in zip(targets, kinds, strict=True):
            if kind == Kind.RUN or kind != kinds[0]:
                raise InputError(
                    f"{each.name}: name one scenario, one results folder, captures only, or text "
                    "of ss and nstat"
                )
    return kinds[0]


def _kind(target: Given) -> Kind:
    if target.is_capture:
        return Kind.CAPTURES
    return Kind.TEXTS if Path(target.name).suffix.lower() == ".txt" else Kind.RUN


@dataclass(frozen=True)
class RunToExplain:
    """A run to make again with a ledger.

    Attributes:
        digest: The digest of the run in the results folder, if it comes from one.
    """

    scenario: _core.Scenario
    seed: int
    digest: str | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The normalised scenario as plain values, which must not be changed."""
        return self.scenario.settings

    def run(self, on_tick: Callable[[int], None] | None = None) -> Run:
        """Make the run.

        Raises:
            InputError: if this build makes another run than the one in the results folder.
        """
        run = run_scenario(self.scenario, self.seed, on_tick=on_tick, ledger=True)
        if self.digest is not None and run.digest != self.digest:
            raise InputError(
                f"{self.scenario.file}: this version makes another run than the one in the folder "
                f"(digest {run.digest} instead of {self.digest}); make the results again"
            )
        return run


def of(
    given: Path | Given,
    seed: int | None,
    cell: str | None = None,
    overrides: Overrides | None = None,
    settings: Mapping[str, Any] | None = None,
) -> RunToExplain:
    """The run that a target names: a scenario file, or a folder with results.

    `seed` is the first one by default. `cell` names a cell of a folder that has several. `settings`
    changes keys of the scenario, as `overrides` does on the command line.

    Raises:
        InputError: if there is no such run, or if it cannot be made again.
        ScenarioError: if the scenario is wrong.
    """
    target = given if isinstance(given, Path) else given.path
    name = str(given) if isinstance(given, Path) else given.name
    if os.path.isdir(target):
        if overrides or settings:
            raise InputError(
                f"{target}: --set and policies change a scenario; name one of the files in "
                f"{target / 'scenarios'}"
            )
        return _of_folder(target, seed, cell)
    if cell is not None:
        raise InputError(f"--cell names a cell of a results folder; {name} is not a folder")
    scenario = loading.of_file(target, overrides or Overrides(), settings, name)
    return RunToExplain(scenario, 1 if seed is None else seed)


def of_object(scenario: Scenario, seed: int, settings: Mapping[str, Any] | None) -> RunToExplain:
    """The run of a scenario that was made in Python, with changes.

    Raises:
        InputError: if a change is wrong.
        ScenarioError: if the scenario is wrong.
    """
    return RunToExplain(loading.of(scenario, settings), seed)


def _of_folder(folder: Path, seed: int | None, cell: str | None) -> RunToExplain:
    results = load(folder)
    about = results.provenance
    if results.is_live:
        raise InputError(
            f"{folder}: these runs were live, and only virtual time can be made again; name the "
            f"scenario in {folder / 'scenarios'}"
        )
    cells = [*results.scenarios]
    if cell is None and len(cells) > 1:
        shown = ", ".join(cells[:6]) + (", …" if len(cells) > 6 else "")
        raise InputError(f"{folder}: {len(cells)} cells; name one with --cell: {shown}")
    chosen = cells[0] if cell is None and cells else cell
    if chosen not in results.scenarios:
        raise InputError(f"{folder}: no cell {chosen!r}; it has {', '.join(cells) or 'none'}")
    runs = {run["seed"]: run for run in about["runs"] if run["cell"] == chosen}
    wanted = min(runs, default=None) if seed is None else seed
    if wanted is None or wanted not in runs:
        seeds = ", ".join(map(str, sorted(runs)[:8]))
        raise InputError(f"{folder}: no run of {chosen} with seed {seed}; it has {seeds}")
    file = str(folder / "scenarios" / f"{chosen}.toml")
    # A cell's file has the starts of its first seed.
    starts = runs[wanted].get("starts") or []
    new = {f"connection[{index}].start": start for index, start in enumerate(starts)}
    scenario = loading.of_text(results.scenarios[str(chosen)], file, settings=new)
    _require_same_policies(scenario, about)
    return RunToExplain(scenario, wanted, digest=runs[wanted]["digest"])


def _require_same_policies(scenario: _core.Scenario, about: Mapping[str, Any]) -> None:
    """Check that the files of the user's own policies are those of the runs in a folder."""
    now = {policy.file: policy for policy in custom.describe(scenario)}
    for each in about.get("custom_policies", ()):
        policy = now.get(each["file"])
        if policy is not None and policy.sha256 != each["sha256"]:
            raise InputError(
                f"{scenario.file}: {policy.file} has changed since these runs; make the results "
                "again"
            )
