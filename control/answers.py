"""Answers of the control API: values as JSON, and errors as status codes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from ..protocol.errors import FakeKafkaError, KafkaError
from ..testing.running import WaitTimeout
from .bodies import NotAnObject
from .operation import NotReady, Operation


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response with a value as JSON."""
    data = json.dumps(value, default=str).encode()
    return Response(data, status, headers, media_type="application/json")


def answer_to_error(error: Exception, operation: Operation) -> Response:
    """Return the response to an error; its status tells misuse from a refusal by the cluster."""
    status, value = _status_and_body(error, operation)
    return json_response(value, status)


def _status_and_body(error: Exception, operation: Operation) -> tuple[int, dict[str, Any]]:
    where = f"{operation.method} {operation.path}"
    match error:
        case NotReady():
            return 503, {"error": str(error), **error.state}
        case KafkaError():
            return 409, {"error": str(error), "code": int(error.code), "name": error.code.name}
        case WaitTimeout():
            return 409, {"error": f"{where}: {error}", "name": "WAIT_TIMEOUT"}
        case NotAnObject():
            return 400, {"error": str(error)}
        case FakeKafkaError() | ValueError() | TypeError() | KeyError() | IndexError():
            return 400, {"error": f"{where}: {error}"}
    return 500, {"error": f"{type(error).__name__}: {error}"}
