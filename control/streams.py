"""Streams of server-sent events: the cluster's events, and the messages in its network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ..protocol.errors import FakeKafkaError, UsageError
from .answers import answer_to_error
from .bodies import HttpRefusal
from .fault_operations import message_filter, shown_message
from .operation import Operation, ServedCluster
from .watching.events import EventQueue

STREAMS_MAX = 20
_HEARTBEAT_S = 10.0
"""Interval in seconds of heartbeats on a stream without events."""


class Streams:
    """The open streams; ``closing`` ends them, and ``in_thread`` runs calls that may block."""

    def __init__(
        self,
        served: ServedCluster,
        closing: asyncio.Event,
        in_thread: Callable[[Callable[[], Any]], Awaitable[Any]],
    ) -> None:
        self._served = served
        self._closing = closing
        self._in_thread = in_thread
        self._count = 0

    async def open(self, operation: Operation, request: Request) -> Response:
        """Return a stream of events, which ends when the client or the server closes it."""
        if self._count >= STREAMS_MAX:
            raise HttpRefusal(503, f"there are {STREAMS_MAX} streams already; try again later")
        try:
            query = operation.read({}, dict(request.query_params))
            if "since" not in query and request.headers.get("last-event-id", "").isdigit():
                query["since"] = int(request.headers["last-event-id"])
            begin = self._begin_events if operation.path == "/events" else self._begin_messages
            arrived = asyncio.Event()
            loop = asyncio.get_running_loop()
            is_woken = [False]

            def wake() -> None:
                if not is_woken[0]:
                    is_woken[0] = True
                    loop.call_soon_threadsafe(arrived.set)

            subscription, end = await self._in_thread(lambda: begin(query, wake))
        except FakeKafkaError as error:
            return answer_to_error(error, operation)
        self._count += 1

        async def parts() -> AsyncIterator[bytes]:
            try:
                yield b": fakekafka\n\n"
                while not self._closing.is_set():
                    is_woken[0] = False
                    arrived.clear()
                    data = b"".join(map(_event_text, subscription.take()))
                    if data:
                        yield data
                        continue
                    try:
                        async with asyncio.timeout(_HEARTBEAT_S):
                            await self._wait_for_event_or_closing(arrived)
                    except TimeoutError:
                        yield b": still here\n\n"
            finally:
                self._count -= 1
                await asyncio.shield(self._in_thread(end))

        return StreamingResponse(
            parts(), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    async def _wait_for_event_or_closing(self, arrived: asyncio.Event) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (arrived, self._closing)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _begin_events(
        self, query: Mapping[str, Any], wake: Callable[[], object]
    ) -> tuple[EventQueue, Callable[[], object]]:
        feed = self._served.feed
        subscription = feed.subscribe(wake, query.get("since"))
        return subscription, lambda: feed.unsubscribe(subscription)

    def _begin_messages(
        self, query: Mapping[str, Any], wake: Callable[[], object]
    ) -> tuple[EventQueue, Callable[[], object]]:
        messages = [query["message"]] if "message" in query else []
        matches = message_filter(self._served, {**query, "messages": messages})
        subscription = EventQueue(wake)

        def observe(delivery: Any) -> None:
            if matches(delivery):
                subscription.put({"type": "message", **shown_message(delivery)})

        stop = self._served.cluster.observe(observe)

        def end() -> None:
            try:
                stop()
            except UsageError:
                return  # the cluster was stopped

        return subscription, end


def _event_text(event: Mapping[str, Any]) -> bytes:
    number = f"id: {event['id']}\n" if "id" in event and "at_ms" in event else ""
    return f"{number}event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
