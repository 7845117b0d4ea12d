"""The page of the API: every operation with its parameters, from the table of operations."""

from __future__ import annotations

import json
from html import escape
from itertools import groupby

from ...testing.parameters.parameter import NO_DEFAULT, Parameter
from ..operation import Operation

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>fakekafka control API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page/style.css">
</head>
<body>
<header><div class="names"><h1>fakekafka control API</h1></div>
<nav class="links"><a href="/">The cluster</a><a href="/openapi.json">OpenAPI</a></nav></header>
<main class="reference">
"""


def reference_page(operations: tuple[Operation, ...]) -> str:
    """The document at ``/api``."""
    by_tag = sorted(operations, key=lambda operation: operation.tag)
    parts = [_section(tag, list(found)) for tag, found in groupby(by_tag, lambda one: one.tag)]
    return f"{_HEAD}{''.join(parts)}</main>\n</body>\n</html>\n"


def _section(tag: str, operations: list[Operation]) -> str:
    rows = "".join(map(_row, operations))
    return f'<section aria-label="{escape(tag)}"><h2>{escape(tag)}</h2><ul>{rows}</ul></section>\n'


def _row(operation: Operation) -> str:
    parameters = "".join(map(_parameter, operation.parameters))
    gives = "" if operation.gives == "null" else f"; gives {escape(operation.gives)}"
    return (
        f'<li class="operation"><code><b>{operation.method}</b> {escape(operation.path)}</code>'
        f"<p>{escape(operation.summary)}{gives}</p>"
        f"{f'<ul>{parameters}</ul>' if parameters else ''}</li>"
    )


def _parameter(parameter: Parameter) -> str:
    meaning = f": {escape(parameter.meaning)}" if parameter.meaning else ""
    default = (
        ""
        if parameter.default in (None, NO_DEFAULT)
        else f", {json.dumps(parameter.default)} by default"
    )
    need = "" if parameter.is_required else " (optional)"
    return f"<li><code>{escape(parameter.name)}</code>{need}{meaning}{escape(default)}</li>"
