"""The journal of a results folder records every run as soon as it is finished.

The compiled core writes the file, and the module `journal` of the crate ``anabranch-batch``
describes it. If a sweep ends early, at most the record being written is lost. A damaged record
costs that one run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from anabranch import _core
from anabranch.errors import InputError
from anabranch.files import reason
from anabranch.results.collected import Collected

FILE = "runs.journal"


class Journal:
    """The finished runs of a results folder. Only the process that writes to the folder uses it.

    Runs have keys (`Task.key`). See `folder.writing`.

    Raises:
        InputError: if the journal cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.damage: str | None = None
        """Damage to the file, in one line."""
        with self.writable():
            self.core = _core.Journal(self.path)
        if damage := self.core.damage:
            lost, intact = damage
            self.damage = (
                f"{self.path} is damaged ({lost:,} bytes, perhaps an unfinished record): "
                f"{intact} finished runs are intact, lost runs are repeated"
            )

    def keys(self) -> list[bytes]:
        """Keys of the finished runs."""
        return self.core.keys()

    def find(self, key: bytes) -> _core.Record | None:
        """The run with this key, or `None` if it is not finished."""
        return self.core.find(key)

    def add(self, key: bytes, record: _core.Record) -> None:
        """Record a finished run. Any thread may call this.

        Raises:
            InputError: if the journal cannot be written.
        """
        with self.writable():
            self.core.add(key, record)

    def collect(
        self, scenarios: Sequence[_core.Scenario], runs: Sequence[tuple[int, bytes]]
    ) -> Collected:
        """The tables of finished runs: pairs of the number of a scenario and a key."""
        return Collected(self.core.collect(scenarios, runs))

    def keep_only_used(self) -> None:
        """Drop the runs that were neither looked up nor added since the journal was opened.

        Raises:
            InputError: if the journal cannot be written.
        """
        with self.writable():
            self.core.keep_only_used()

    def close(self) -> None:
        """Flush the journal to disk."""
        with contextlib.suppress(OSError):
            self.core.sync()

    @contextlib.contextmanager
    def writable(self) -> Iterator[None]:
        """Explain an error of writing the file.

        Raises:
            InputError: if the file cannot be written.
        """
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{self.path}: {reason(error)}; the recorded runs are kept: repeat the command "
                "when the folder can be written"
            ) from error
