"""Injections in scenarios: how they are written, and what they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...protocol.errors import UsageError
from ..api_names import error_code, injection_target
from .pieces import check_broker
from .spec import ClusterSpec
from .table import Table

if TYPE_CHECKING:
    from ..emulated_cluster import EmulatedCluster

_FILTERS = ("topic", "partition", "client_id", "nth")
"""Arguments of ``inject`` that choose the requests."""


def read_inject(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    """The arguments of an injection, from a scenario's table."""
    arguments: dict[str, Any] = {
        "api": table.text("api"),
        "times": table.integer("requests", 1, 1),
        "delay_ms": table.number("delay_ms", 0.0),
        "disconnect": table.flag("disconnect", False),
    }
    try:
        answers = table.has("error") or arguments["disconnect"]
        injection_target(arguments["api"], answers=answers)
        if table.has("error"):
            arguments["error"] = error_code(table.raw("error")).name
    except UsageError as error:
        raise table.error("error" if "API" not in str(error) else "api", str(error)) from None
    if "error" not in arguments and not arguments["delay_ms"] and not arguments["disconnect"]:
        raise table.error("", "inject needs an error, a delay_ms or disconnect = true")
    if table.has("broker"):
        reference = check_broker(table, "broker", cluster)
        arguments["broker"] = reference.text if reference.value is None else reference.value
    for name in ("topic", "client_id"):
        if table.has(name):
            arguments[name] = table.text(name)
    if table.has("partition"):
        if "topic" not in arguments:
            raise table.error("partition", "needs a topic beside it")
        arguments["partition"] = table.integer("partition", 0, 0)
    if table.has("nth"):
        arguments["nth"] = table.integer("nth", 1, 1)
    return arguments


def inject(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> int:
    """Begin an injection; gives its id."""
    names = ("error", "times", "broker", "delay_ms", "disconnect", *_FILTERS)
    given = {n: arguments[n] for n in names if n in arguments}
    return cluster.inject(arguments["api"], **given).id
