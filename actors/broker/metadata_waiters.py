"""Waiting for a condition on a broker's metadata: re-examined whenever metadata arrives.

Kafka's ``DelayedCreatePartitions``, ``DelayedDeleteTopics`` and ``DelayedElectLeader`` wait for
the same thing; here it is one list of predicates (docs/kafka/purgatory.md#purgatory).
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
        """True once the predicate holds; False when ``timeout_ms`` passed first.

        ``peers`` names the actors who should have brought it about, for whoever records the run.
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
            causes.waited(peers(), begun_by, timeout_ms)
        self._waiting.pop(pending, None)
        pending.set_result(False)

    def examine(self) -> None:
        """Metadata changed: wake those whose predicate holds now."""
        for pending, predicate in list(self._waiting.items()):
            if predicate():
                self._waiting.pop(pending, None)
                pending.set_result(True)
