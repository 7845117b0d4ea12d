"""The files of the page, of which the colours are those of traces, and their headers."""

from __future__ import annotations

from pathlib import Path

from starlette.responses import Response

from ...tracing import web

_FOLDER = Path(__file__).parent
_THEME = Path(web.__file__).parent / "theme.css"
_MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_HEADERS = {
    # Names of topics and clients are whatever a client chose: no script but the page's own runs.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def document(text: str) -> Response:
    """A page that is made here, with the headers of the others."""
    return Response(text, headers=_HEADERS, media_type="text/html")


def page_responses() -> dict[str, Response]:
    """Path to response: the document at ``/``, its styles and scripts below ``/page/``."""
    found = {}
    for file in (_THEME, *sorted(_FOLDER.iterdir())):
        media_type = _MEDIA_TYPES.get(file.suffix)
        if media_type is not None:
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            found[path] = Response(file.read_bytes(), headers=_HEADERS, media_type=media_type)
    return found
