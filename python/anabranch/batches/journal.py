"""The journal of a results folder records every run as soon as it is finished.

The journal is a file of records. Each record is appended by one write, protected by a SHA-256, and
identified by the key of its run (`Task.key`). If a sweep ends early, at most the record being
written is lost. A damaged record costs that one run. Bytes of a record::

    magic (8)  length of the body (8, little-endian)  SHA-256 of the body (32)  body

The body is compressed (zlib): a line of JSON, then the columns as raw numbers, and the frames as
Arrow IPC streams.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import os
import struct
import threading
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl

from anabranch.batches.reduction import Reduced
from anabranch.errors import InputError
from anabranch.runs.columns import Column, Columns, Words
from anabranch.scenarios.custom import CustomPolicy

FILE = "runs.journal"

_MAGIC = b"\x93ABRUN\r\n"
_HEAD = struct.Struct("<8sQ32s")


@dataclasses.dataclass(frozen=True)
class _Place:
    """The position of a record's body in the file."""

    offset: int
    length: int


class Journal:
    """The finished runs of a results folder. Only the process that writes to the folder uses it.

    See `folder.writing`.

    Raises:
        InputError: if the journal cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.damage: str | None = None
        """Damage to the file, in one line."""
        self._lock = threading.Lock()
        self._used: dict[str, None] = {}
        self._file = self._open(self.path)
        self._places, lost, self._end = _scan(self._file)
        if lost:
            self.damage = (
                f"{self.path} is damaged ({lost:,} bytes, perhaps an unfinished record): "
                f"{len(self._places)} finished runs are intact, lost runs are repeated"
            )
            self._rewrite(self.keys())

    def keys(self) -> list[str]:
        """Keys of the finished runs."""
        return list(self._places)

    def find(self, key: str) -> Reduced | None:
        """The run with this key, or `None` if it is not finished."""
        place = self._places.get(key)
        if place is None:
            return None
        self._used[key] = None
        return _decoded(_read(self._file, place))

    def add(self, key: str, run: Reduced) -> None:
        """Record a finished run. Any thread may call this.

        Raises:
            InputError: if the journal cannot be written.
        """
        body = _encoded(key, run)
        with self._lock:
            try:
                self._append(key, body)
            except OSError as error:
                raise self._unwritable(error) from error
            self._used[key] = None

    def keep_only_used(self) -> None:
        """Drop the runs that were neither looked up nor added since the journal was opened.

        Raises:
            InputError: if the journal cannot be written.
        """
        if len(self._used) < len(self._places):
            self._rewrite(list(self._used))

    def close(self) -> None:
        """Flush the journal to disk and close it."""
        with contextlib.suppress(OSError):
            os.fsync(self._file.fileno())
        self._file.close()

    def _open(self, path: Path) -> BinaryIO:
        try:
            return open(path, "a+b", buffering=0)
        except OSError as error:
            raise self._unwritable(error) from error

    def _append(self, key: str, body: bytes) -> None:
        record = _HEAD.pack(_MAGIC, len(body), hashlib.sha256(body).digest()) + body
        try:
            written = 0
            while written < len(record):  # a disk that is filling up may accept only a part
                written += _write(self._file, record[written:])
        except OSError:
            # A partial record would be reported as damage.
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)
            raise
        self._places[key] = _Place(self._end + _HEAD.size, len(body))
        self._end += len(record)

    def _rewrite(self, keys: list[str]) -> None:
        """Write the records with these keys to a new file that replaces the old one atomically."""
        old, places = self._file, self._places
        temporary = self.path.with_suffix(".new")
        temporary.unlink(missing_ok=True)
        self._file, self._places, self._end = self._open(temporary), {}, 0
        try:
            for key in keys:
                self._append(key, _read(old, places[key]))
            os.fsync(self._file.fileno())
            temporary.replace(self.path)
        except OSError as error:
            raise self._unwritable(error) from error
        old.close()

    def _unwritable(self, error: OSError) -> InputError:
        reason = (error.strerror or str(error)).lower()
        return InputError(
            f"{self.path}: {reason}; the recorded runs are kept: repeat the command when the "
            "folder can be written"
        )


def _write(file: BinaryIO, data: bytes) -> int:
    return file.write(data)


def _scan(file: BinaryIO) -> tuple[dict[str, _Place], int, int]:
    """The intact records by key, the number of bytes outside them, and the end of the file."""
    places: dict[str, _Place] = {}
    end = file.seek(0, os.SEEK_END)
    offset = lost = 0
    while offset < end:
        place = _record_at(file, offset, end)
        if place is None:
            following = _next_magic(file, offset + 1, end)
            lost += following - offset
            offset = following
        else:
            places[_about(_read(file, place))["key"]] = place
            offset = place.offset + place.length
    return places, lost, end


def _record_at(file: BinaryIO, offset: int, end: int) -> _Place | None:
    """The body of the intact record that begins at `offset`, or `None`."""
    head = _read(file, _Place(offset, _HEAD.size))
    if len(head) < _HEAD.size:
        return None
    magic, length, checksum = _HEAD.unpack(head)
    place = _Place(offset + _HEAD.size, length)
    if magic != _MAGIC or place.offset + length > end:
        return None
    return place if hashlib.sha256(_read(file, place)).digest() == checksum else None


def _next_magic(file: BinaryIO, offset: int, end: int) -> int:
    """Offset at which the next record may begin, or the end of the file."""
    chunk = 2**20
    while offset < end:
        found = _read(file, _Place(offset, chunk + len(_MAGIC))).find(_MAGIC)
        if found >= 0:
            return offset + found
        offset += chunk
    return end


def _read(file: BinaryIO, place: _Place) -> bytes:
    return os.pread(file.fileno(), place.length, place.offset)


def _encoded(key: str, run: Reduced) -> bytes:
    body = io.BytesIO()
    about = {
        "key": key,
        "digest": run.digest,
        "virtual_ns": run.virtual_ns,
        "data_segments": run.data_segments,
        "cpu_s": run.cpu_s,
        "custom_policies": [dataclasses.asdict(policy) for policy in run.custom_policies],
        "rows": run.rows,
        "tables": {name: _put_columns(table, body) for name, table in run.tables.items()},
        "frames": {name: _put_frame(frame, body) for name, frame in run.frames.items()},
    }
    head = zlib.compress(json.dumps(about).encode() + b"\n", 1)
    return struct.pack("<I", len(head)) + head + zlib.compress(body.getvalue(), 1)


def _about(body: bytes) -> dict[str, Any]:
    (length,) = struct.unpack_from("<I", body)
    about: dict[str, Any] = json.loads(zlib.decompress(body[4 : 4 + length]))
    return about


def _decoded(body: bytes) -> Reduced:
    about = _about(body)
    (length,) = struct.unpack_from("<I", body)
    stream = io.BytesIO(zlib.decompress(body[4 + length :]))
    return Reduced(
        rows=about["rows"],
        tables={name: _take_columns(table, stream) for name, table in about["tables"].items()},
        frames={
            name: pl.read_ipc_stream(io.BytesIO(stream.read(byte_count)))
            for name, byte_count in about["frames"].items()
        },
        digest=about["digest"],
        virtual_ns=about["virtual_ns"],
        data_segments=about["data_segments"],
        cpu_s=about["cpu_s"],
        custom_policies=tuple(CustomPolicy.of(policy) for policy in about["custom_policies"]),
    )


def _put_columns(table: Columns, body: BinaryIO) -> dict[str, list[Any]]:
    """Write the columns to the body, and return what is needed to read them."""
    return {name: _put_column(column, body) for name, column in table.items()}


def _put_column(column: Column, body: BinaryIO) -> list[Any]:
    numbers, words = (column.index, column.words) if isinstance(column, Words) else (column, None)
    return [numbers.dtype.str, body.write(numbers.tobytes()), words]


def _take_columns(layout: dict[str, list[Any]], body: BinaryIO) -> Columns:
    return {name: _take_column(body, *column) for name, column in layout.items()}


def _take_column(body: BinaryIO, dtype: str, byte_count: int, words: list[str] | None) -> Column:
    numbers = np.frombuffer(body.read(byte_count), dtype)
    return numbers if words is None else Words(tuple(words), numbers)


def _put_frame(frame: pl.DataFrame, body: BinaryIO) -> int:
    start = body.tell()
    frame.write_ipc_stream(body)
    return body.tell() - start
