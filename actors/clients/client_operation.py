"""An operation in a coroutine of a modelled client: all that it sends carries its number."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from ...protocol.awaiting import Cancelled
from ...protocol.errors import ErrorCode, FakeKafkaError

if TYPE_CHECKING:
    from .client import SimulatedClient


class AnsweredWithError(FakeKafkaError):
    """Raised if an operation ends because of an error in an answer."""

    def __init__(self, text: str, error: ErrorCode) -> None:
        super().__init__(text)
        self.error = error


class ClientOperation:
    """A ``with`` block whose events belong together in a recorded run.

    It begins with ``client_invoke`` and ends with ``client_ok``, or with ``client_fail`` if the
    block raises or ``fail`` was called. The block has to start with sending or waiting. Without a
    recorder it has no effect.
    """

    __slots__ = ("_client", "_failure", "_number", "_text", "_what")

    def __init__(self, client: SimulatedClient, what: str, text: str | None = None) -> None:
        self._client = client
        self._what = what
        self._text = text
        self._number: int | None = None
        self._failure: str | None = None

    def fail(self, text: str) -> None:
        """Mark the operation as failed, with a reason."""
        self._failure = text

    def retry(self, text: str) -> None:
        """Record another attempt."""
        if self._number is not None:
            client = self._client
            client.runtime.cause = client.record("client_retry", self._what, text, self._number)

    def __enter__(self) -> Self:
        client = self._client
        if client.state_listener is not None:
            before = client.runtime.begin_step()
            self._number = client.record("client_invoke", self._what, self._text)
            client.runtime.cause = self._number
            client.note_operation(before)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._number is None or isinstance(error, Cancelled):
            return  # the outcome at a client that died is unknown
        failure = self._failure
        if isinstance(error, AnsweredWithError):
            failure = error.error.name
        elif error is not None:
            failure = str(error)
        outcome = "client_ok" if failure is None else "client_fail"
        self._client.record(outcome, self._what, failure, self._number)
