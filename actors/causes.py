"""Reports the causes of what a node's cores do while a run is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..protocol.host import Timer
from .interfaces import AbstractNode, AbstractRuntime


class NodeCauses:
    """The ``protocol.host.Causes`` of one node."""

    __slots__ = ("_node", "_runtime")

    def __init__(self, runtime: AbstractRuntime, node: AbstractNode) -> None:
        self._runtime = runtime
        self._node = node

    def current(self) -> int | None:
        """Return the event that is being handled."""
        return self._runtime.cause

    def set_shared_timer_ms(self, delay_ms: float, callback: Callable[[], object]) -> Timer:
        """Set a timer that serves many entries; each entry that is due is recorded as an event."""
        delay_us = self._node.process.clock.to_runtime_us(int(delay_ms * 1000))
        return self._runtime.set_shared_timer(self._node, delay_us, callback)

    def record_due_entry(self, name: str, cause: int | None) -> None:
        """Record that an entry of a timer is due."""
        self._runtime.record_due_entry(self._node.name, name, cause)

    def record_timeout(self, peers: Sequence[str], cause: int | None, waited_ms: float) -> None:
        """Record a wait in vain for peers; clients may be given by the ids known in ``owners``."""
        owners = self._runtime.owners
        named = [owners.get(peer, peer) for peer in peers]
        self._runtime.record_timeout(self._node.name, named, cause, waited_ms)
