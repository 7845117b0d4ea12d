"""The type names that events may have: those of all messages of the emulation."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from .. import protocol
from ..protocol.awaiting import Disconnected, RequestTimeout
from .schema import field_shapes, is_message_type

_ROOT = protocol.__name__.rpartition(".")[0]
_OTHERS = (
    "zkfake.messages",
    "zkfake.server.quorum_messages",
    "statemachines.controller.events",
)


@functools.cache
def _message_types() -> dict[str, type | None]:
    modules = [f"protocol.{found.name}" for found in pkgutil.iter_modules(protocol.__path__)]
    types: dict[str, type | None] = {Disconnected.__name__: None, RequestTimeout.__name__: None}
    for module in (*sorted(modules), *_OTHERS):
        namespace = vars(importlib.import_module(f"{_ROOT}.{module}"))
        for name, value in namespace.items():
            if isinstance(value, type) and is_message_type(value):
                types[name] = value
    return types


def message_type_names() -> tuple[str, ...]:
    """Return the names of all message types, whether sent in a run or not."""
    return tuple(_message_types())


@functools.cache
def message_fields() -> tuple[str, ...]:
    """Return the names of the fields of all messages."""
    shapes = (field_shapes(cls)[0] for cls in _message_types().values() if cls is not None)
    return tuple({name: None for fields in shapes for name, _ in fields})
