"""A broker's disk that is memory."""

from __future__ import annotations

from .disk import Disk


class MemoryDisk(Disk):
    """A disk in memory; replicas of a cluster that live in one process share their bytes."""
