"""The interface of the cluster to its listeners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ...protocol.data import RequestContext
from ...protocol.declaring.native import mypyc_attr
from ...protocol.values import message

Respond = Callable[[Any], None]


@message
class Throttled:
    """A response to a client that used more than its quota."""

    response: Any
    throttle_ms: int
    """Time in milliseconds for which the connection takes no further request."""
    is_held_back: bool = False
    """True if the response is sent only at the end of this time, as before KIP-219."""


class Backend(Protocol):
    """Handles the requests of all connections; called on the event loop's thread only."""

    @property
    def kafka_version(self) -> str:
        """The emulated release, which determines the API versions offered."""
        ...

    def submit(
        self,
        broker_id: int,
        connection_name: str,
        request: Any,
        context: RequestContext,
        respond: Callable[[Any], None],
    ) -> None:
        """Submit a request to a broker.

        ``respond`` is called once, now or later, on the event loop's thread, with the response
        message or with an exception. An exception closes the connection, without an answer unless
        it is a ``ClosingAnswer`` (``KafkaError`` and ``Disconnected`` silently, others are logged
        as errors of the backend). Calls after the first, or after the connection has ended, are
        ignored.
        """
        ...

    def topic_id(self, broker_id: int, topic: str) -> bytes | None:
        """Return the 16 bytes of a topic's id; None if the broker does not know the topic."""
        ...

    def topic_name(self, broker_id: int, topic_id: bytes) -> str | None:
        """Return the topic with an id of 16 bytes; None if the broker does not know the id."""
        ...


@mypyc_attr(allow_interpreted_subclasses=True)
class InterceptingBackend:
    """A ``Backend`` that inspects requests before it passes them to another backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def kafka_version(self) -> str:
        return self._backend.kafka_version

    def topic_id(self, broker_id: int, topic: str) -> bytes | None:
        return self._backend.topic_id(broker_id, topic)

    def topic_name(self, broker_id: int, topic_id: bytes) -> str | None:
        return self._backend.topic_name(broker_id, topic_id)

    def submit(
        self,
        broker_id: int,
        connection_name: str,
        request: Any,
        context: RequestContext,
        respond: Respond,
    ) -> None:
        forwarded = self._intercept(broker_id, request, context, respond)
        if forwarded is not None:
            request, respond = forwarded
            self._backend.submit(broker_id, connection_name, request, context, respond)

    def _intercept(
        self, broker_id: int, request: Any, context: RequestContext, respond: Respond
    ) -> tuple[Any, Respond] | None:
        """Return the request to pass on and the function that takes its response; None if the
        request was answered here."""
        raise NotImplementedError


class BrokerTopicNames:
    """Topic ids and names as one broker of a backend knows them."""

    def __init__(self, backend: Backend, broker_id: int) -> None:
        self._backend = backend
        self._broker_id = broker_id

    def topic_id(self, topic: str) -> bytes | None:
        return self._backend.topic_id(self._broker_id, topic)

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._backend.topic_name(self._broker_id, topic_id)
