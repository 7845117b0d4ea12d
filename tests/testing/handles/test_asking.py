"""``ask`` is typed for every request: each has one overload, which gives its response."""

from __future__ import annotations

import ast
from pathlib import Path

from fakekafka.testing.api_names import REQUESTS
from fakekafka.testing.handles import asking


def test_every_request_has_one_overload_that_gives_its_response() -> None:
    """Only a produce request may have no answer."""
    given: dict[str, str] = {}
    for node in ast.walk(ast.parse(Path(asking.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name == "ask" and node.decorator_list:
            request, response = node.args.args[2].annotation, node.returns
            assert request is not None
            assert response is not None
            assert ast.unparse(request) not in given
            given[ast.unparse(request)] = ast.unparse(response)
    wanted = {}
    for api, kind in REQUESTS.items():
        module = kind.__module__.rpartition(".")[2]
        none = " | None" if api == "Produce" else ""
        wanted[f"{module}.{api}Request"] = f"{module}.{api}Response{none}"
    assert given == wanted
