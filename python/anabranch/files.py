"""Reading and writing files: one line for every error, and files that are written whole or not.

Functions that write name the file or folder in their errors. The command line adds the option.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from anabranch.errors import InputError, UnwritableError


def reason(error: BaseException) -> str:
    """The system's reason for an error, such as ``no space left on device``."""
    words = getattr(error, "strerror", None) or str(error)
    return re.sub(r" \(os error \d+\)$", "", words).lower()  # as the compiled core writes it


@contextlib.contextmanager
def reading(name: object, hint: str) -> Iterator[None]:
    """Explain errors of reading a file, which messages call `name`. `hint` says what to do.

    Raises:
        InputError: if the file cannot be read, or is not UTF-8 text.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: not UTF-8 text; {hint}") from error
    except (OSError, ValueError) as error:  # ValueError: no file has such a name
        raise InputError(f"{name}: {reason(error)}; {hint}") from error


@contextlib.contextmanager
def writing_to(path: Path, kind: str, also: type[Exception] = OSError) -> Iterator[None]:
    """Explain errors of writing a file or a folder; `kind` is the word for it.

    `also` is a type of errors that are explained like `OSError`.

    Raises:
        UnwritableError: if it cannot be written.
    """
    try:
        yield
    except (OSError, also) as error:
        raise UnwritableError(path, f"{reason(error)}; name a writable {kind}") from error


def prepare_folder(folder: Path) -> None:
    """Create the folder, and check that files can be created in it.

    Raises:
        UnwritableError: if the folder cannot be written.
    """
    with writing_to(folder, "folder", ValueError):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


def prepare_file(file: Path, inputs: Iterable[Path] = ()) -> None:
    """Create the folder of a file, and check the file as `require_writable` does.

    Raises:
        UnwritableError: if the file cannot be created or replaced, or is one of the inputs.
    """
    _require_replaceable(file)
    with writing_to(file, "file"):
        file.parent.mkdir(parents=True, exist_ok=True)
    require_writable(file, inputs)


def require_writable(file: Path, inputs: Iterable[Path] = ()) -> None:
    """Check that a file can be created or replaced, and is none of the inputs.

    Raises:
        UnwritableError: if it cannot, or if it is one of them.
    """
    _require_replaceable(file)
    require_other(file, inputs)
    part = _part(file)
    with writing_to(file, "file"):
        part.touch()
        part.unlink(missing_ok=True)


def require_other(file: Path, inputs: Iterable[Path]) -> None:
    """Check that a file to write is none of the files that the command reads.

    Raises:
        UnwritableError: if it is one of them.
    """
    for each in inputs:
        if _is_same(file, each):
            raise UnwritableError(file, "a file that this command reads; name another one")


def _is_same(a: Path, b: Path) -> bool:
    """Whether both are names of one file, which need not exist."""
    try:
        return os.path.realpath(a) == os.path.realpath(b) or a.samefile(b)
    except (OSError, ValueError):  # the code that reads the file reports it
        return False


def _require_replaceable(file: Path) -> None:
    """Refuse devices, folders and links, whose place a new file would take."""
    with writing_to(file, "file", ValueError):
        try:
            mode = file.lstat().st_mode
        except FileNotFoundError:
            return
    if not stat.S_ISREG(mode):
        raise UnwritableError(file, "not a regular file; name another one")


def _part(file: Path) -> Path:
    """The name of a file while it is incomplete."""
    return file.with_name(f"{file.name}.part")


@contextlib.contextmanager
def whole(file: Path) -> Iterator[Path]:
    """A temporary file, which gets its final name at the end. An error removes it.

    Raises:
        UnwritableError: if it cannot be written.
    """
    with _parts([file]) as (part,), writing_to(file, "file"):
        yield part
        part.replace(file)


@contextlib.contextmanager
def parts(
    folder: Path, names: Iterable[str], also: type[Exception] = OSError
) -> Iterator[dict[str, Path]]:
    """Temporary files, by their final names, which they get at the end. An error removes them all.

    `also` is a type of errors that are explained like `OSError`.

    Raises:
        UnwritableError: if they cannot be written.
    """
    files = {name: folder / name for name in names}
    with _parts([*files.values()]) as temporary, writing_to(folder, "folder", also):
        for part in temporary:
            part.parent.mkdir(parents=True, exist_ok=True)
        yield dict(zip(files, temporary, strict=True))
        for part, file in zip(temporary, files.values(), strict=True):
            part.replace(file)


@contextlib.contextmanager
def _parts(files: Sequence[Path]) -> Iterator[list[Path]]:
    """Names of the temporary files of these files, which are removed at the end."""
    for file in files:
        _require_replaceable(file)
    temporary = [_part(file) for file in files]
    try:
        yield temporary
    finally:
        for part in temporary:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


def write_whole(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files into the folder: all of them or, for example if the disk is full, none.

    Raises:
        UnwritableError: if the files cannot be written.
    """
    with parts(folder, contents) as temporary:
        for name, data in contents.items():
            temporary[name].write_bytes(data)


def write_file(file: Path, data: bytes) -> None:
    """Write a file: the whole file or none.

    Raises:
        UnwritableError: if the file cannot be written.
    """
    with whole(file) as part:
        part.write_bytes(data)
