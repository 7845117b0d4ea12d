"""``ask``: which response each request of Kafka has, for type checkers and for people."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ...protocol.values import Request
    from ..running import RunningCluster
    from .admin import AdminClient

R = TypeVar("R")


class Asking(abc.ABC):
    """A cluster that can be asked as one broker asks another."""

    @property
    @abc.abstractmethod
    def running(self) -> RunningCluster:
        """The running cluster; ``UsageError`` before the start, and after the stop of a
        ``Cluster``."""

    def ask(self, broker: int | str, request: Request[R], timeout_s: float = 30) -> R:
        """Send a broker any request of Kafka, as another broker would; return its response.

        A ``FetchRequest`` of ``fakekafka.protocol.data`` gives a ``FetchResponse``, and so on for
        those of ``admin``, ``control``, ``groups``, ``transactions`` and ``security`` beside it.
        The result is None for a ``ProduceRequest`` with ``acks=0``, which has no response. Raises
        ``Disconnected`` or ``RequestTimeout`` of ``fakekafka.protocol.awaiting``.
        """
        return self._admin.ask(broker, request, timeout_s)

    @property
    def _admin(self) -> AdminClient:
        from .admin import AdminClient  # a cluster starts without it

        return AdminClient(self.running)
