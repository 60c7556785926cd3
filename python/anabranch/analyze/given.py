"""The files that a command is given: captures, compressed or from pipes, and others.

One place decides whether a file is a capture, and reads pipes, which can be read only once.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from anabranch import _core
from anabranch.errors import InputError
from anabranch.files import reading

STANDARD_INPUT = "standard input"
"""The name of the file ``-`` in messages."""
_CAPTURES, _COMPRESSED = (".pcap", ".pcapng", ".cap"), (".gz", ".zst", ".xz", ".bz2", ".lz4")


@dataclass(frozen=True)
class Given:
    """A file that can be read several times.

    Attributes:
        name: Its name in messages.
        path: Where it is: a copy of a pipe is elsewhere.
    """

    name: str
    path: Path

    @property
    def stem(self) -> str:
        """The last part of its name, without the suffixes of captures."""
        return _plain(self.name)[0]

    @property
    def is_capture(self) -> bool:
        """Whether its content begins like a capture, or its name ends like that of one."""
        begin = b""
        if os.path.isfile(self.path):
            # The command that reads the file reports errors.
            with suppress(OSError), self.path.open("rb") as file:
                begin = file.read(4)
        if _plain(self.name)[1]:
            return True
        return _core.analyse_begins_capture(begin) if begin else self.name == STANDARD_INPUT


def _plain(name: str) -> tuple[str, str]:
    """The last part of a name without the suffixes of captures, and its suffix of a capture."""
    path = Path(name)
    if path.suffix.lower() in _COMPRESSED:
        path = path.with_suffix("")
    suffix = path.suffix.lower()
    return (path.stem, suffix) if suffix in _CAPTURES else (path.name, "")


File = str | os.PathLike[str] | Given


@contextmanager
def readable(files: Sequence[File]) -> Iterator[list[Given]]:
    """Files that can be read several times while the context lasts.

    The file ``-`` is standard input. It and pipes are copied to temporary files.

    Raises:
        InputError: if there is no file, if one cannot be read, or if standard input is named twice.
    """
    if not files:
        raise InputError("no file; name at least one capture")
    if [isinstance(each, Given) or os.fspath(each) for each in files].count("-") > 1:
        raise InputError("-: standard input can be read only once; name it once")
    with ExitStack() as stack:
        yield [each if isinstance(each, Given) else _given(each, stack) for each in files]


def title(files: Sequence[Given]) -> str:
    """The name of the files in messages."""
    return Path(files[0].name).name if len(files) == 1 else f"{len(files)} files"


def _given(file: str | os.PathLike[str], stack: ExitStack) -> Given:
    name = os.fspath(file)
    path = Path(name)
    with reading(name, "name a readable file"):
        if name != "-" and (path.is_file() or path.is_dir() or not path.exists()):
            return Given(name, path)
        copy = stack.enter_context(tempfile.NamedTemporaryFile(prefix="anabranch-"))  # noqa: SIM115
        if name == "-":
            shutil.copyfileobj(sys.stdin.buffer, copy)
        else:
            with path.open("rb") as pipe:
                shutil.copyfileobj(pipe, copy)
        copy.flush()
    return Given(STANDARD_INPUT if name == "-" else name, Path(copy.name))
