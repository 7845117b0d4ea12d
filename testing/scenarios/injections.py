"""Injections in scenarios: how they are written, and what they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...protocol.errors import UsageError
from ..api_names import error_code, injection_target
from ..handles.injection_arguments import fixed_answer
from .pieces import PARTITION_NAME, check_broker, check_partition
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
        "times": _read_times(table),
        "delay_ms": table.number("delay_ms", 0.0),
        "disconnect": table.flag("disconnect", False),
    }
    answers = [name for name in ("error", "errors", "answer") if table.has(name)]
    ends = answers + (["disconnect"] if arguments["disconnect"] else [])
    if len(ends) > 1:
        raise table.error(ends[1], f"does not go with {ends[0]}: each ends the request")
    if not ends and not arguments["delay_ms"]:
        right = "an error, a delay_ms, disconnect = true, errors or an answer"
        raise table.error("", f"inject needs {right}")
    try:
        injection_target(arguments["api"], answers=bool(ends))
    except UsageError as error:
        raise table.error("api", str(error)) from None
    for name in answers:
        try:
            arguments[name] = _ANSWERS[name](table, arguments["api"], cluster)
        except UsageError as error:
            raise table.error(name, str(error)) from None
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


def _read_times(table: Table) -> int | None:
    """How many requests are met; None: all."""
    return None if table.raw("requests") == "all" else table.integer("requests", 1, 1)


def _read_error(table: Table, _api: str, _cluster: ClusterSpec) -> str:
    return error_code(table.raw("error")).name


def _read_errors(table: Table, _api: str, cluster: ClusterSpec) -> dict[tuple[str, int], str]:
    """Errors by partition, such as ``{orders-0 = "NOT_LEADER_OR_FOLLOWER"}``."""
    if table.has("topic"):
        raise UsageError("name their topics; leave out topic and partition")
    errors = {}
    inner = table.table("errors")
    for text, error in inner.rest().items():
        match = PARTITION_NAME.fullmatch(text)
        if match is None:
            raise UsageError(f"{text!r} is no partition; write it like 'orders-0'")
        check_partition(table, "errors", match[1], int(match[2]), cluster)
        errors[match[1], int(match[2])] = error_code(error).name
    if not errors:
        raise UsageError('are missing; write {orders-0 = "NOT_LEADER_OR_FOLLOWER"}')
    return errors


def _read_answer(table: Table, api: str, _cluster: ClusterSpec) -> dict[str, Any]:
    """The fields of a response, which are tried out here."""
    fields = table.table("answer").rest()
    fixed_answer(api, fields)
    return fields


_ANSWERS: dict[str, Callable[[Table, str, ClusterSpec], Any]] = {
    "error": _read_error,
    "errors": _read_errors,
    "answer": _read_answer,
}


def inject(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> int:
    """Begin an injection; gives its id."""
    names = ("error", "times", "broker", "delay_ms", "disconnect", *_FILTERS)
    given = {n: arguments[n] for n in names if n in arguments}
    if "errors" in arguments:
        given["error"] = arguments["errors"]
    if "answer" in arguments:
        given["answer"] = fixed_answer(arguments["api"], arguments["answer"])
    return cluster.inject(arguments["api"], **given).id
