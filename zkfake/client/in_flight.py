"""Requests in flight of a client, in the order in which they will be answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ...protocol.awaiting import Pending
from ..messages import Request, SessionRequest, ZkCode, ZkResponse


class Batch:
    """The requests of one call; ``done`` completes when each has an answer."""

    __slots__ = ("answered", "done", "next_index", "requests", "responses")

    def __init__(self, requests: Sequence[SessionRequest]) -> None:
        self.requests: Sequence[SessionRequest] = requests
        self.responses: list[ZkResponse | None] = [None] * len(requests)
        self.answered: int = 0
        self.next_index: int = 0
        """Index of the next request to send."""
        self.done: Pending[list[ZkResponse]] = Pending()

    def answer(self, index: int, response: ZkResponse) -> None:
        self.responses[index] = response
        self.answered += 1
        if self.answered == len(self.requests):
            self.done.set_result(self.responses)  # type: ignore[arg-type]

    def answer_unanswered(self, code: ZkCode) -> None:
        """Answer every request that has no answer yet with this code."""
        for index in range(len(self.requests)):
            if self.responses[index] is None:
                self.answer(index, failed_response(self.requests[index], code))


class InFlight:
    """Requests sent but not answered, and batches waiting to be sent; answers come in order."""

    def __init__(self, max_in_flight: int) -> None:
        self.max_in_flight: int = max_in_flight
        self.next_xid: int = 1
        self.sent: deque[tuple[int, Batch | None, int, SessionRequest]] = deque()
        """xid, batch (None for the client's own requests), index in the batch, request."""
        self.waiting: deque[Batch] = deque()

    def take_next(self) -> tuple[int, SessionRequest] | None:
        """Return the next request to send with its xid; None if none waits or there is no room."""
        waiting = self.waiting
        if not waiting or len(self.sent) >= self.max_in_flight:
            return None
        batch = waiting[0]
        index = batch.next_index
        request = batch.requests[index]
        batch.next_index = index + 1
        if batch.next_index == len(batch.requests):
            waiting.popleft()
        return self.add(batch, index, request), request

    def add(self, batch: Batch | None, index: int, request: SessionRequest) -> int:
        """Record a request as sent and return its xid."""
        xid = self.next_xid
        self.next_xid = xid + 1
        self.sent.append((xid, batch, index, request))
        return xid

    def fail_all(self, code: ZkCode) -> None:
        """Answer all requests, in flight or waiting, with a code."""
        batches: dict[int, Batch] = {}
        for _, batch, _, _ in self.sent:
            if batch is not None:
                batches[id(batch)] = batch
        for batch in self.waiting:
            batches[id(batch)] = batch
        self.sent.clear()
        self.waiting.clear()
        for batch in batches.values():
            batch.answer_unanswered(code)


def failed_response(request: SessionRequest | Request, code: ZkCode) -> ZkResponse:
    """Return the answer, with this code, to a request that the server did not answer."""
    return ZkResponse(code, getattr(request, "path", None))
