"""The names that types of events may have: those of all messages of the emulation."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from .. import protocol
from ..protocol.awaiting import Disconnected, RequestTimeout
from .schema import is_message_type

_ROOT = protocol.__name__.rpartition(".")[0]
_OTHERS = (
    "zkfake.messages",
    "zkfake.server.quorum_messages",
    "statemachines.controller.events",
    "actors.broker.broker_requests",
)


@functools.cache
def message_type_names() -> tuple[str, ...]:
    """Every message that the vocabulary has, sent in a run or not."""
    modules = [f"protocol.{found.name}" for found in pkgutil.iter_modules(protocol.__path__)]
    names = {Disconnected.__name__: None, RequestTimeout.__name__: None}
    for module in (*sorted(modules), *_OTHERS):
        namespace = vars(importlib.import_module(f"{_ROOT}.{module}"))
        for name, value in namespace.items():
            if isinstance(value, type) and is_message_type(value):
                names[name] = None
    return tuple(names)
