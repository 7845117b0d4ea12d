"""Unpacks archives in a way that works on every Python that this package supports."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Extract an archive into a folder, rejecting files that would land outside of it.

    Python 3.11.0 to 3.11.3 cannot reject them (PEP 706).
    """
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
    else:
        archive.extractall(folder)
