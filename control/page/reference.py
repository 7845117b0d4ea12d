"""The page of the API: every operation with its parameters, from the table of operations."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>fakekafka control API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page/theme.css">
<link rel="stylesheet" href="/page/style.css">
</head>
<body>
<header><div class="names"><h1>fakekafka control API</h1></div>
<nav class="links"><a href="/">The cluster</a><a href="/openapi.json">OpenAPI</a></nav></header>
<main class="reference">
"""


class Entry(NamedTuple):
    """The description of an operation."""

    tag: str
    method: str
    path: str
    meaning: str
    parameters: tuple[tuple[str, str], ...]
    """Names of the parameters, with their meanings."""


def reference_page(entries: Iterable[Entry]) -> str:
    """Return the document at ``/api``."""
    by_tag = sorted(entries, key=attrgetter("tag"))
    sections = (_section(tag, found) for tag, found in groupby(by_tag, attrgetter("tag")))
    return f"{_HEAD}{''.join(sections)}</main>\n</body>\n</html>\n"


def _section(tag: str, entries: Iterable[Entry]) -> str:
    rows = "".join(map(_row, entries))
    return f'<section aria-label="{escape(tag)}"><h2>{escape(tag)}</h2><ul>{rows}</ul></section>\n'


def _row(entry: Entry) -> str:
    parameters = "".join(
        f"<li><code>{escape(name)}</code> {escape(meaning)}</li>"
        for name, meaning in entry.parameters
    )
    return (
        f'<li class="operation"><code><b>{entry.method}</b> {escape(entry.path)}</code>'
        f"<p>{escape(entry.meaning)}</p>"
        f"{f'<ul>{parameters}</ul>' if parameters else ''}</li>"
    )
