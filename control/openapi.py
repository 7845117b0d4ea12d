"""The OpenAPI document of the control API, generated from the table of operations."""

from __future__ import annotations

import json
import re
from typing import Any

from ..testing.parameters.parameter import NO_DEFAULT, Parameter
from ..version import __version__
from .operation import Operation
from .operations import OPERATIONS
from .page.reference import Entry

_TAGS = {
    "cluster": "the cluster as a whole",
    "brokers": "brokers: stop, start, freeze them",
    "controller": "the controller, elections and moves",
    "topics": "topics and partitions",
    "records": "records, without a Kafka client",
    "groups": "consumer groups",
    "transactions": "transactions",
    "network": "links between machines, and messages kept back",
    "injections": "answers that requests get instead of the broker's",
    "zookeeper": "ZooKeeper's tree and servers",
    "security": "client certificates and ACLs",
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {"type": "string", "description": "what was wrong and what would be right"},
        "code": {"type": "integer", "description": "Kafka's error code, with status 409"},
        "name": {"type": "string", "description": "Kafka's name of the error"},
    },
}
_RESPONSES = {
    "400": "misuse; the message says what would be right",
    "403": "requested by a page of another site",
    "409": "refused by the cluster, with Kafka's error code; or a wait has timed out",
    "413": "the body is too long",
    "503": "too many requests at once; or not ready",
}


def openapi() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the control API."""
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _entry(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fakekafka control API",
            "version": __version__,
            "description": "All operations on a fakekafka cluster.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "responses": {
                f"Error{status}": {
                    "description": text,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}
                    },
                }
                for status, text in _RESPONSES.items()
            },
        },
    }


def entries() -> list[Entry]:
    """Return descriptions of the operations, for the page of the API."""
    return [
        Entry(
            operation.tag,
            operation.method,
            operation.path,
            operation.summary + ("" if operation.gives == "null" else f"; gives {operation.gives}"),
            tuple((one.name, _description(one)) for one in operation.parameters),
        )
        for operation in OPERATIONS
    ]


def _description(parameter: Parameter) -> str:
    parts = [] if parameter.is_required else ["optional"]
    if parameter.meaning:
        parts.append(parameter.meaning)
    if parameter.default not in (None, NO_DEFAULT):
        parts.append(f"{json.dumps(parameter.default)} by default")
    return "; ".join(parts)


def operation_id(operation: Operation) -> str:
    """Return a name for generated clients, such as ``post_brokers_broker_kill``."""
    words = re.findall(r"[a-z_]+", operation.path)
    return "_".join([operation.method.lower(), *words])


def _entry(operation: Operation) -> dict[str, Any]:
    content_type = "text/event-stream" if operation.is_stream else "application/json"
    schema: dict[str, Any] = {"type": "string"} if operation.is_stream else {}
    if operation.gives_bytes:
        content_type, schema = "application/octet-stream", {}
    entry: dict[str, Any] = {
        "operationId": operation_id(operation),
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": {
            "200": {"description": operation.gives, "content": {content_type: {"schema": schema}}},
            **{s: {"$ref": f"#/components/responses/Error{s}"} for s in _RESPONSES},
        },
    }
    parameters = [_parameter_entry(parameter, "path") for parameter in operation.in_path]
    if operation.takes_body:
        if operation.parameters:
            entry["requestBody"] = _body(operation)
    else:
        parameters += [_parameter_entry(parameter, "query") for parameter in operation.parameters]
    if parameters:
        entry["parameters"] = parameters
    return entry


def _schema(parameter: Parameter) -> dict[str, Any]:
    kind = parameter.kind
    schema = dict(kind.schema)
    if parameter.meaning:
        schema["description"] = parameter.meaning
    if parameter.default not in (NO_DEFAULT, None) and not parameter.is_required:
        schema["default"] = parameter.default
    if kind.example is not None:
        schema["examples"] = [json.loads(json.dumps(kind.example))]
    return schema


def _parameter_entry(parameter: Parameter, place: str) -> dict[str, Any]:
    """Return the entry of a parameter in the path or the query."""
    return {
        "name": parameter.name,
        "in": place,
        "required": parameter.is_required,
        "schema": _schema(parameter),
    }


def _body(operation: Operation) -> dict[str, Any]:
    required = [one.name for one in operation.parameters if one.is_required]
    schema: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {one.name: _schema(one) for one in operation.parameters},
    }
    if required:
        schema["required"] = required
    return {"required": bool(required), "content": {"application/json": {"schema": schema}}}
