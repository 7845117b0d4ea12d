"""Unpacks archives as every Python does that this package runs on."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Put the files of an archive below a folder, and none elsewhere.

    Python 3.11.0 to 3.11.3 cannot see to the latter (PEP 706).
    """
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
    else:
        archive.extractall(folder)
