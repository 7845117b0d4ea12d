"""The control API as an ASGI application: routes, bodies, answers, errors, streams."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from .answers import answer_to_error, json_response
from .bodies import Bodies, HttpRefusal
from .openapi import entries, openapi
from .operation import Operation, ServedCluster
from .operations import OPERATIONS
from .page.files import document, page_responses
from .page.reference import reference_page
from .streams import Streams

T = TypeVar("T")

_READS_MAX = 2
"""Maximum number of concurrent threads for GET requests: each takes time from the cluster."""


class Application:
    """The application of one server; setting ``closing`` ends its streams."""

    def __init__(self, served: ServedCluster) -> None:
        self.served = served
        self.closing: asyncio.Event = asyncio.Event()
        self.bodies: Bodies = Bodies()
        self.streams: Streams = Streams(served, self.closing, self.in_thread)
        self._reads = asyncio.Semaphore(_READS_MAX)
        by_path: dict[str, dict[str, Operation]] = {}
        for operation in OPERATIONS:
            by_path.setdefault(operation.path, {})[operation.method] = operation
        # A group id may contain any character, even a slash.
        routes = [
            Route(path.replace("{group}", "{group:path}"), _Resource(self, operations))
            for path, operations in by_path.items()
        ]
        routes.append(
            Route("/openapi.json", _ConstantResponse("/openapi.json", json_response(openapi())))
        )
        routes.append(Route("/api", _ConstantResponse("/api", document(reference_page(entries())))))
        routes += [
            Route(path, _ConstantResponse(path, file)) for path, file in page_responses().items()
        ]
        self.asgi: _TrailingSlashStripper = _TrailingSlashStripper(
            Starlette(routes=routes, exception_handlers={HTTPException: _not_found})
        )

    # -- performing ----------------------------------------------------------------------------

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Run a function that may wait for the cluster in its own thread; return its result."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, error: BaseException | None) -> None:
            if not done.done():
                if error is not None:
                    done.set_exception(error)
                else:
                    done.set_result(result)  # type: ignore[arg-type]

        def run() -> None:
            try:
                outcome = (function(), None)
            except Exception as error:
                outcome = (None, error)  # type: ignore[assignment]
            try:
                loop.call_soon_threadsafe(settle, *outcome)
            except RuntimeError:
                return  # the server was closed meanwhile

        threading.Thread(target=run, name="fakekafka-control-call", daemon=True).start()
        closing = asyncio.ensure_future(self.closing.wait())
        try:
            await asyncio.wait((done, closing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
        if not done.done():
            raise HttpRefusal(503, "the control API is being closed")
        return done.result()

    async def perform(
        self, operation: Operation, path: Mapping[str, str], given: bytes | Mapping[str, str]
    ) -> Response:
        """Perform an operation, with a body or with the parameters of a query."""

        def run() -> Response:
            try:
                body = self.bodies.read_object(given) if isinstance(given, bytes) else given
                value = operation.run(self.served, operation.read(path, body))
            except Exception as error:
                return answer_to_error(error, operation)
            if operation.method != "GET":
                self.served.feed.publish(
                    {
                        "type": "action",
                        "method": operation.method,
                        "path": _path_of(operation, path),
                    }
                )
            if operation.gives_bytes:
                return Response(value, media_type="application/octet-stream")
            return json_response(value)

        if operation.method != "GET":
            return await self.in_thread(run)
        async with self._reads:
            return await self.in_thread(run)


def _path_of(operation: Operation, path: Mapping[str, str]) -> str:
    filled = operation.path
    for name, text in path.items():
        filled = filled.replace(f"{{{name}}}", text)
    return filled


async def _not_found(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    text = f"there is no {request.method} {request.url.path}; see /openapi.json"
    return json_response({"error": text}, status)


class _Resource:
    """The operations of one path, by method."""

    def __init__(self, application: Application, operations: Mapping[str, Operation]) -> None:
        self._application = application
        self._operations = operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except HttpRefusal as error:
            headers = {**error.headers, "Connection": "close"}
            response = json_response({"error": str(error)}, error.status, headers)
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        application = self._application
        method = "GET" if request.method == "HEAD" else request.method
        operation = self._operations.get(method)
        if operation is None:
            raise _wrong_method(request, list(self._operations))
        if operation.is_stream:
            return await application.streams.open(operation, request)
        given: bytes | Mapping[str, str]
        if operation.takes_body:
            given = await application.bodies.read(request)
        elif operation.parameters:
            given = dict(request.query_params)
        else:
            given = {}
        return await application.perform(operation, request.path_params, given)


def _wrong_method(request: Request, allowed: list[str]) -> HttpRefusal:
    text = (
        f"{request.url.path} takes {' and '.join(allowed)}, not {request.method}; see /openapi.json"
    )
    return HttpRefusal(405, text, {"Allow": ", ".join(allowed)})


class _ConstantResponse:
    """A constant response, to GET and HEAD only."""

    def __init__(self, path: str, response: Response) -> None:
        self._path = path
        self._response = response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = self._response
        if scope["method"] not in ("GET", "HEAD"):
            error = _wrong_method(Request(scope, receive), ["GET"])
            response = json_response({"error": str(error)}, error.status, error.headers)
        await response(scope, receive, send)


class _TrailingSlashStripper:
    """Strips final slashes, so that ``/topics/`` is ``/topics``."""

    def __init__(self, asgi: ASGIApp) -> None:
        self._asgi = asgi

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and len(scope["path"]) > 1 and scope["path"].endswith("/"):
            scope = {**scope, "path": scope["path"].rstrip("/") or "/"}
        await self._asgi(scope, receive, send)
