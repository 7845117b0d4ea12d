"""Operations that are actions of the one table which scenarios and stories share."""

from __future__ import annotations

from typing import Any

from ..scenarios.actions import ACTIONS
from .fields import Field
from .operation import Desk, Operation, Run


def act(name: str) -> Run:
    """What an action of the table does to the cluster."""
    action = ACTIONS[name]

    def run(desk: Desk, arguments: dict[str, Any]) -> Any:
        return action.perform(desk.cluster, arguments)

    return run


def acting(
    path: str,
    name: str,
    tag: str,
    *fields: Field,
    gives: str = "null",
    method: str = "POST",
) -> Operation:
    """An operation that is an action of the table and has its summary."""
    return Operation(method, path, tag, ACTIONS[name].summary, act(name), fields, gives)
