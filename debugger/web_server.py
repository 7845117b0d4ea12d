"""The web server of a debugger's page, reachable from this machine only.

Every request must have the token that is in the page's address, and must not come from a page of
another site.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import threading
from typing import TYPE_CHECKING

from ..protocol.errors import AddressUnavailable, FakeKafkaError, UsageError
from ..testing.foreign_pages import refusal
from ..tracing.web.overview import title_of
from ..tracing.web.page import document, policy
from .debugger import Debugger
from .web_session import WebSession

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_HOST = "127.0.0.1"
_BODY_BYTES_MAX = 64 * 1024
_STOP_S = 5


class WebServer:
    """Serves a debugger's page: ``run`` until Ctrl-C, ``start`` in a thread until ``close``.

    Raises ``UsageError`` without the extra ``control``, and ``AddressUnavailable`` for a port in
    use.
    """

    def __init__(self, debugger: Debugger, port: int = 0) -> None:
        try:
            import uvicorn
            from starlette.applications import Starlette
            from starlette.routing import Route
        except ImportError as error:
            raise UsageError(
                f"the page of the debugger needs {error.name}: pip install 'fakekafka[control]'"
            ) from None
        self.token: str = secrets.token_urlsafe(16)
        self._debugger = debugger
        self._session = WebSession(debugger)
        self._socket = _listen(port)
        self.port: int = self._socket.getsockname()[1]
        routes = [
            Route("/", self._page),
            Route("/part/{name}", self._part),
            Route("/{verb}", self._verb, methods=["POST"]),
        ]
        self._server = uvicorn.Server(
            uvicorn.Config(
                Starlette(routes=routes),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=_STOP_S,
            )
        )
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Address of the page, including the token."""
        return f"http://{_HOST}:{self.port}/?token={self.token}"

    def run(self) -> None:
        """Serve until the process is interrupted or ``close`` is called."""
        self._server.run(sockets=[self._socket])

    def start(self) -> None:
        """Serve in a thread."""
        self._thread = threading.Thread(target=self.run, name="fakekafka-debug", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End every connection and release the port."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(2 * _STOP_S)
        self._socket.close()

    # -- answering -----------------------------------------------------------------------------

    def _refusal(self, request: Request, token: str, *, is_visit: bool = False) -> Response | None:
        """Return the answer to a request that is refused; None if it is permitted."""
        text = refusal(request.headers, frozenset(), "the debugger", is_visit=is_visit)
        if text is not None:
            return _error(text, 403)
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return _error("the address lacks the token that the command has printed", 403)
        return None

    def _page(self, request: Request) -> Response:
        from starlette.responses import HTMLResponse

        refused = self._refusal(request, request.query_params.get("token", ""), is_visit=True)
        if refused is not None:
            return refused
        settings = {"traces": ["a"], "live": True, "comparison": None}
        before, after = document(title_of(self._debugger.header), settings, "'self'")
        headers = {
            "Content-Security-Policy": policy("'self'") + "; frame-ancestors 'none'",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
        return HTMLResponse(before + after, headers=headers)

    def _part(self, request: Request) -> Response:
        from starlette.responses import Response

        refused = self._refusal(request, _bearer(request))
        if refused is not None:
            return refused
        try:
            data = self._session.part(request.path_params["name"])
        except FakeKafkaError as error:
            return _error(str(error), 404)
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        return Response(data, media_type="application/octet-stream", headers=headers)

    async def _verb(self, request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse

        refused = self._refusal(request, _bearer(request))
        if refused is not None:
            return refused
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > _BODY_BYTES_MAX:
                return _error("the question is too long", 413)
        try:
            asked = json.loads(body or b"{}")
            if not isinstance(asked, dict):
                raise UsageError("a question is a JSON object")
            verb = request.path_params["verb"]
            return JSONResponse(await run_in_threadpool(self._session.answer, verb, asked))
        except (ValueError, RecursionError):
            return _error("the question is no JSON", 400)
        except FakeKafkaError as error:
            return _error(str(error), 400)


def _bearer(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token if scheme == "Bearer" else ""


def _error(text: str, status: int) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": text}, status)


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, port))
        listener.listen(64)
    except (OSError, OverflowError) as error:
        listener.close()
        raise AddressUnavailable(
            f"the page cannot be served at {_HOST}:{port}: {error}; give a free port, or 0",
            getattr(error, "errno", None),
        ) from None
    return listener
