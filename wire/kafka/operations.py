"""Records every request that arrives over TCP as an operation of its client."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from .response_errors import errors_text

if TYPE_CHECKING:
    from ...actors.runtime.runtime import Runtime

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@functools.cache
def operation_name(request_name: str) -> str:
    """Return the name of a request's operation: ``offset_commit`` for ``OffsetCommitRequest``."""
    return _WORD.sub("_", request_name.removesuffix("Request")).lower()


class TcpOperation:
    """A request of a connection, from its arrival to its answer."""

    __slots__ = ("_client", "_name", "_respond", "_runtime", "number")

    def __init__(
        self,
        runtime: Runtime,
        client: str,
        client_id: str,
        request: object,
        respond: Callable[[object], None],
    ) -> None:
        recorder = runtime.recorder
        assert recorder is not None
        self._runtime = runtime
        self._client = client
        self._name = operation_name(type(request).__name__)
        self._respond = respond
        self.number: int = recorder.event(
            runtime.now_us(), "client_invoke", client, None, self._name, None, None, client_id
        )

    def end(self, response: object) -> None:
        """Record how the operation ended, and pass the response on."""
        runtime = self._runtime
        recorder = runtime.recorder
        if recorder is not None:
            if isinstance(response, BaseException):
                error: str | None = f"{type(response).__name__}: {response}"
            else:
                error = errors_text(response)
            kind = "client_ok" if error is None else "client_fail"
            cause = runtime.begin_step()
            recorder.event(
                runtime.now_us(), kind, self._client, None, self._name, None, cause, error,
                self.number,
            )  # fmt: skip
        self._respond(response)
