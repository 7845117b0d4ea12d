"""Waiting for conditions on a broker's metadata, which are checked whenever metadata arrive.

This replaces Kafka's ``DelayedCreatePartitions``, ``DelayedDeleteTopics`` and
``DelayedElectLeader`` by one list of predicates (docs/kafka/purgatory.md#purgatory).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ...protocol.awaiting import Pending
from ..node import Node


class MetadataWaiters:
    """Coroutines parked until a predicate over the metadata cache holds."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._waiting: dict[Pending[bool], Callable[[], object]] = {}

    async def wait(
        self,
        predicate: Callable[[], object],
        timeout_ms: float,
        peers: Callable[[], Sequence[str]] = list,
    ) -> bool:
        """Wait until the predicate holds; returns False if ``timeout_ms`` passes first.

        For a recorded run, ``peers`` returns the actors that should have made the predicate hold.
        """
        if predicate():
            return True
        if timeout_ms <= 0:
            return False
        pending: Pending[bool] = Pending()
        self._waiting[pending] = predicate
        causes = self._node.causes
        begun_by = None if causes is None else causes.current()
        timer = self._node.call_later_ms(
            timeout_ms, functools.partial(self._give_up, pending, peers, begun_by, timeout_ms)
        )
        try:
            return await pending
        finally:
            timer.cancel()

    def _give_up(
        self,
        pending: Pending[bool],
        peers: Callable[[], Sequence[str]],
        begun_by: int | None,
        timeout_ms: float,
    ) -> None:
        causes = self._node.causes
        if causes is not None:
            causes.record_timeout(peers(), begun_by, timeout_ms)
        self._waiting.pop(pending, None)
        pending.set_result(False)

    def examine(self) -> None:
        """Wake the coroutines whose predicate holds, after a change of metadata."""
        for pending, predicate in list(self._waiting.items()):
            if predicate():
                self._waiting.pop(pending, None)
                pending.set_result(True)
