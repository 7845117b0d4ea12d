"""The project's documents and their headings."""

from __future__ import annotations

import re

FENCE = re.compile(r"^\s*(```|~~~)")


def anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as GitHub and MkDocs make them."""
    found: set[str] = set()
    inside = False
    for line in text.splitlines():
        if FENCE.match(line):
            inside = not inside
        elif not inside and line.startswith("#"):
            heading = re.sub(r"[^\w\s-]", "", line.lstrip("#").strip().lower())
            found.add(re.sub(r"\s+", "-", heading.strip()))
    return found
