"""The files of the page and their headers; the colours are shared with the page of traces."""

from __future__ import annotations

from pathlib import Path

from starlette.responses import Response

from ...tracing import web

_FOLDER = Path(__file__).parent
_THEME = Path(web.__file__).parent / "theme.css"
_MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_HEADERS = {
    # Clients choose names of topics and clients freely, so only the page's own scripts may run.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def document(text: str) -> Response:
    """Return a generated page, with the same headers as the files."""
    return Response(text, headers=_HEADERS, media_type="text/html")


def page_responses() -> dict[str, Response]:
    """Return responses by path: the document at ``/``, its styles and scripts below ``/page/``."""
    found = {}
    for file in (_THEME, *sorted(_FOLDER.iterdir())):
        media_type = _MEDIA_TYPES.get(file.suffix)
        if media_type is not None:
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            found[path] = Response(file.read_bytes(), headers=_HEADERS, media_type=media_type)
    return found
