"""The OpenAPI document of the control API, written from the table of operations."""

from __future__ import annotations

import re
from typing import Any

from ... import __version__
from .fields import KINDS, Field
from .operation import Operation
from .operations import OPERATIONS

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
    "security": "what clients need to come in",
}
_PATH_SCHEMAS: dict[str, dict[str, Any]] = {
    "partition": {"type": "integer", "minimum": 0},
    "server": {"type": "integer", "minimum": 1},
    "injection": {"type": "integer", "minimum": 1},
    "hold": {"type": "integer", "minimum": 1},
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {"type": "string", "description": "what was wrong and what would be right"},
        "code": {"type": "integer", "description": "Kafka's error code, with status 409"},
        "name": {"type": "string", "description": "Kafka's name of it"},
    },
}
_RESPONSES = {
    "400": "misuse; the message says what would be right",
    "403": "asked from a page of another site",
    "409": "refused by the cluster, with Kafka's error code; or not so in time",
    "413": "the body is too long",
    "503": "too many requests at once; or not ready",
}


def openapi() -> dict[str, Any]:
    """The OpenAPI 3.1 document of the control API."""
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _entry(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fakekafka control API",
            "version": __version__,
            "description": "Everything that a fakekafka cluster can be asked to do.",
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


def operation_id(operation: Operation) -> str:
    """A name for generated clients, such as ``post_brokers_broker_kill``."""
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
            "200": {
                "description": operation.gives,
                "content": {content_type: {"schema": schema}},
            },
            **{s: {"$ref": f"#/components/responses/Error{s}"} for s in _RESPONSES},
        },
    }
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _PATH_SCHEMAS.get(name, {"type": "string"}),
        }
        for name in operation.path_names
    ]
    if operation.takes_body:
        if operation.fields:
            entry["requestBody"] = _body(operation)
    else:
        parameters += [_query(field) for field in operation.fields]
    if parameters:
        entry["parameters"] = parameters
    return entry


def _schema(field: Field) -> dict[str, Any]:
    schema = dict(KINDS[field.kind].schema)
    if field.meaning:
        schema["description"] = field.meaning
    return schema


def _query(field: Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "in": "query",
        "required": field.is_required,
        "schema": _schema(field),
    }


def _body(operation: Operation) -> dict[str, Any]:
    required = [field.name for field in operation.fields if field.is_required]
    schema: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: _schema(field) for field in operation.fields},
    }
    if required:
        schema["required"] = required
    return {
        "required": bool(required),
        "content": {"application/json": {"schema": schema}},
    }
