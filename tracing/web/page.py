"""Writes the page: template, styles and scripts of this folder, and traces as gzip in base64.

The file is self-contained and opens from disk. Its scripts are modules that import each other; the
file joins them into one, so their top-level names must be unique. The content security policy lets
only this script run, whatever a trace contains.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import re
from array import array
from base64 import b64encode
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ..alignment import stretches
from ..diff import first_difference
from ..trace import StoredTrace, no_cyclic_collection
from .overview import index_of, overview, title_of

_FOLDER = Path(__file__).parent
_SCRIPTS = (
    "msgpack", "text", "store", "refusals", "waits", "causes", "filter", "dom", "rows", "diagram",
    "minimap", "event_list", "panels", "partitions", "live", "keys", "scanner", "finder", "main",
)  # fmt: skip
_STYLE_SHEETS = ("theme", "page", "panels")
_GZIP_LEVEL = 5
_STRETCHES_MAX = 100_000
"""Maximum number in a comparison; later events stand side by side without being matched."""


def script() -> str:
    """Return all modules joined into one script."""
    parts = []
    for name in _SCRIPTS:
        text = (_FOLDER / f"{name}.js").read_text(encoding="utf-8")
        text = re.sub(r"^import [^;]*? from '\./\w+\.js'\n", "", text, flags=re.MULTILINE)
        parts.append(re.sub(r"^export ", "", text, flags=re.MULTILINE))
    return "\n".join(parts)


def styles() -> str:
    """Return all style sheets joined into one."""
    return "".join((_FOLDER / f"{name}.css").read_text(encoding="utf-8") for name in _STYLE_SHEETS)


def _source(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def policy(connect: str = "'none'") -> str:
    """Return the content security policy of the page."""
    return (
        f"default-src 'none'; script-src {_source(script())}; style-src {_source(styles())}; "
        f"img-src data:; worker-src blob:; connect-src {connect}; "
        "base-uri 'none'; form-action 'none'"
    )


def document(title: str, settings: dict[str, Any], connect: str = "'none'") -> tuple[str, str]:
    """Return the page before and after the place for the parts of traces."""
    text = (_FOLDER / "page.html").read_text(encoding="utf-8")
    data = json.dumps(settings, ensure_ascii=False).replace("<", "\\u003c")
    values = {
        "TITLE": html.escape(title),
        "POLICY": policy(connect),
        "STYLES": styles(),
        "SETTINGS": data,
        "SCRIPT": script(),
    }
    text = re.sub(r"\{\{(TITLE|POLICY|STYLES|SETTINGS|SCRIPT)\}\}", lambda m: values[m[1]], text)
    before, after = text.split("<!-- parts -->")
    return before, after


def packed(data: bytes) -> bytes:
    return gzip.compress(data, _GZIP_LEVEL, mtime=0)


def packed_json(value: Any) -> bytes:
    return packed(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def parts_of(trace: StoredTrace) -> Iterator[tuple[str, bytes]]:
    """Yield the name and packed content of every part of a trace that the page may ask for."""
    with no_cyclic_collection():
        yield "index", packed_json(index_of(trace))
        yield "overview", packed_json(overview(trace))
        for index in range(len(trace.chunks)):
            yield f"chunk-{index}", packed(trace.page_chunk(index))
        for index in range(len(trace.snapshot_seqs)):
            yield f"snapshot-{index}", packed(trace.packed_snapshot(index))


def write_page(trace: StoredTrace, out: Path, other: StoredTrace | None = None) -> int:
    """Write a trace, or two to be compared, as a page; return its size in bytes."""
    settings: dict[str, Any] = {"traces": ["a"], "live": None, "comparison": None}
    title = title_of(trace.header)
    runs = [("a", trace)]
    if other is not None:
        runs.append(("b", other))
        settings |= {"traces": ["a", "b"], "comparison": comparison(trace, other)}
        title += " and " + title_of(other.header)
    before, after = document(title, settings)
    with out.open("wb") as stream:
        stream.write(before.encode())
        for name, run in runs:
            for part, data in parts_of(run):
                stream.write(f'<script type="text/plain" id="{name}-{part}">'.encode())
                stream.write(b64encode(data))
                stream.write(b"</script>\n")
        stream.write(after.encode())
        return stream.tell()


def comparison(left: StoredTrace, right: StoredTrace) -> dict[str, Any]:
    """Return where two runs diverge, and which of their events match from there on.

    Events match if they have the same kind, actor, peer and type, and come in the same order.
    """
    difference = first_difference(left, right)
    if difference is None:
        return {"first": None, "text": "The same events.", "stretches": []}
    found = stretches(_shapes(left, difference.seq), _shapes(right, difference.seq))
    return {
        "first": difference.seq,
        "text": difference.describe(),
        "stretches": [
            [one.left_count, one.right_count, int(one.is_shared)]
            for one in islice(found, _STRETCHES_MAX)
        ],
    }


def _shapes(trace: StoredTrace, start: int) -> array[int]:
    """Return a number for each event from ``start`` on, equal for the same kind, actor, peer and
    type in both runs."""
    words = dict(enumerate(trace.strings))
    shapes = array("q")
    for index in range(max(trace.chunk_of(start), 0), len(trace.chunks)):
        for seq, _, kind, actor, peer, type_, *_ in trace.raw_events(index):
            if seq >= start:
                shapes.append(hash((kind, *map(words.get, (actor, peer, type_)))))
    return shapes
