"""File access on the real disk: appends through a bounded set of handles, atomic replacement."""

from __future__ import annotations

import os
from collections import OrderedDict

from ...protocol.records.format import Readable

_BINARY: int = getattr(os, "O_BINARY", 0)
"""Flag for ``os.open`` without which Windows writes each newline byte as two bytes."""


def open_binary(path: str, flags: int) -> int:
    """Open a file in binary mode and return its descriptor; ``flags`` are those of ``os.open``."""
    return os.open(path, flags | _BINARY, 0o644)


def write_all(descriptor: int, data: Readable) -> None:
    """Write every byte, even if a signal or a nearly full disk cuts a write short."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


class FileHandles:
    """Files open for appending, at most ``limit``: the least recently used one is closed."""

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._descriptors: OrderedDict[str, int] = OrderedDict()

    def append(self, path: str, data: Readable) -> None:
        write_all(self._get(path), data)

    def sync(self, path: str) -> None:
        os.fsync(self._get(path))

    def _get(self, path: str) -> int:
        descriptor = self._descriptors.get(path)
        if descriptor is None:
            descriptor = open_binary(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._descriptors[path] = descriptor
            if len(self._descriptors) > self._limit:
                os.close(self._descriptors.popitem(last=False)[1])
        else:
            self._descriptors.move_to_end(path)
        return descriptor

    def close(self, path: str) -> None:
        descriptor = self._descriptors.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def close_all(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])


def write_atomically(path: str, data: bytes, sync: bool = True) -> None:
    """Replace a file: write a temporary file next to it, sync and rename."""
    temporary = path + ".tmp"
    descriptor = open_binary(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_all(descriptor, data)
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(temporary, path)


def read_file(path: str) -> bytes | None:
    """Return the content of a file; None if the file does not exist."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
