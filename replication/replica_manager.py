"""The replica manager: everything a broker does with the partitions it hosts (data_plane 1 to 11).

The face of the replica layer. Its parts, by what asks for them: ``control_requests`` (the
controller), ``produce``, ``fetch`` (clients and followers), ``offsets``; ``hosting`` is the
ground under them. Here is what runs by the clock: the ISR check, checkpoints, retention and
compaction, expiry of delayed operations; and what to do when a disk fails.

Nothing here blocks, sleeps or sends. Answers go through the ``respond`` of each request; periodic
work is scheduled at the ``Host`` given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..protocol.errors import ErrorCode
from ..protocol.host import Timer
from ..protocol.values import TopicPartition
from .control_requests import ControlRequestHandling
from .fetch import FetchHandling
from .isr import IsrUpdater
from .offsets import OffsetsHandling
from .partition import Partition
from .produce import ProduceHandling

__all__ = ["IsrUpdater", "ReplicaManager"]


class ReplicaManager(ProduceHandling, FetchHandling, OffsetsHandling, ControlRequestHandling):
    """Hosts partitions, answers for them, and keeps their logs."""

    on_log_dir_failure: Callable[[str], object] | None = None
    """Told the directory that was taken offline, once (control_plane 8.5)."""
    on_halt: Callable[[str], object] | None = None
    """0.10: the broker process has to exit, with the reason (data_plane 7.7)."""

    def __init__(self, **surroundings: Any) -> None:
        super().__init__(**surroundings)
        self._timers: dict[str, Timer] = {}
        self._checkpoints_started = False
        self.fetcher_manager.bind(self.partition)
        callbacks = self.fetcher_manager.callbacks
        callbacks.on_appended = self._on_follower_advanced
        callbacks.on_storage_failure = self.on_storage_failure
        callbacks.on_halt = self._on_fetcher_halt
        callbacks.is_unclean_election_allowed = self._is_unclean_election_allowed
