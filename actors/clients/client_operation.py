"""An operation of a modelled client that is a coroutine: what is sent in it carries its number."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from ...protocol.awaiting import Cancelled
from ...protocol.errors import ErrorCode, FakeKafkaError

if TYPE_CHECKING:
    from .client import SimulatedClient


class AnsweredWithError(FakeKafkaError):
    """An operation ended because of an error in an answer."""

    def __init__(self, text: str, error: ErrorCode) -> None:
        super().__init__(text)
        self.error = error


class ClientOperation:
    """A ``with`` block whose events belong together in a recorded run.

    It begins with ``client_invoke`` and ends with ``client_ok``, or with ``client_fail`` when the
    block raises or ``fail`` was called. The block has to send something or to wait at once. Without
    a recorder nothing is done.
    """

    __slots__ = ("_client", "_failure", "_number", "_text", "_what")

    def __init__(self, client: SimulatedClient, what: str, text: str | None = None) -> None:
        self._client = client
        self._what = what
        self._text = text
        self._number: int | None = None
        self._failure: str | None = None

    def fail(self, text: str) -> None:
        """The operation ends without what it was for."""
        self._failure = text

    def retry(self, text: str) -> None:
        """Begin another attempt."""
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
            return  # a client that died has no answer
        failure = self._failure
        if isinstance(error, AnsweredWithError):
            failure = error.error.name
        elif error is not None:
            failure = str(error)
        outcome = "client_ok" if failure is None else "client_fail"
        self._client.record(outcome, self._what, failure, self._number)
