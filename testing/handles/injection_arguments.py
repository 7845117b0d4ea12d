"""The arguments of ``inject``: checks, and conversion to a filter and an effect."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...protocol.errors import ErrorCode, UsageError
from ...protocol.values import TopicPartition
from ...wire.kafka.error_responses import has_error_response
from .. import arguments
from ..api_names import error_code, injection_target, request_type
from ..parameters.cluster_kinds import API, PARTITION_ERRORS
from .injection import Answer, InjectionEffect, RequestFilter
from .message_values import read_message
from .roles import broker_process

if TYPE_CHECKING:
    from ..running import RunningCluster


def read_filter(
    running: RunningCluster,
    api: str,
    effect: InjectionEffect,
    *,
    broker: int | str | None,
    topic: str | None,
    partition: int | None,
    client_id: str | None,
    nth: int,
) -> RequestFilter:
    """Return the filter of the affected requests; ``UsageError`` for a wrong argument."""
    wanted = _affected_request(api, effect, topic, partition)
    if topic is not None:
        arguments.text("topic", topic)
    if partition is not None:
        arguments.integer("partition", partition, 0)
    if client_id is not None:
        arguments.text("client_id", client_id)
    arguments.integer("nth", nth, 1)
    machine = None if broker is None else broker_process(running, broker).name
    return RequestFilter(wanted, machine, topic, partition, client_id, nth)


def _affected_request(
    api: str, effect: InjectionEffect, topic: str | None = None, partition: int | None = None
) -> type:
    """Return the affected message; ``UsageError`` if it does not support the effect."""
    API.check("api", api)
    wanted = injection_target(api, answers=not effect.only_delays)
    can_fail = effect.error is not None or bool(effect.errors)
    if can_fail and not has_error_response(wanted):
        raise UsageError(
            f"{api} has no answer with an error; inject a delay_ms, disconnect=True or an answer"
        )
    if partition is not None and topic is None:
        raise UsageError(f"partition={partition} needs a topic")
    return wanted


def injection_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of ``inject`` from the arguments that a file or an HTTP request has.

    There, errors of single partitions are called ``errors``, and an ``answer`` is an object.
    """
    written = dict(given)
    errors = written.pop("errors", None)
    if errors is not None:
        if "error" in written:
            raise UsageError("give an error, or errors by partition, not both")
        written["error"] = errors
    if "answer" in written:
        written["answer"] = fixed_answer(written["api"], written["answer"])
    return written


def check_injection(given: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` if written arguments of ``inject`` exclude each other."""
    written = injection_arguments(given)
    effect = read_effect(
        written.get("error"),
        written.get("answer"),
        written.get("delay_ms", 0),
        written.get("disconnect", False),
        written.get("topic"),
    )
    _affected_request(written["api"], effect, written.get("topic"), written.get("partition"))


def fixed_answer(api: str, fields: Mapping[str, Any]) -> Answer:
    """Return a function that always answers with the response of an API with these fields."""
    wanted = request_type(api)
    name = wanted.__name__.removesuffix("Request") + "Response"
    response = read_message(vars(sys.modules[wanted.__module__])[name], fields, "answer")
    return lambda _request: response


def read_effect(
    error: Any, answer: Answer | None, delay_ms: float, disconnect: bool, topic: str | None
) -> InjectionEffect:
    """Return the effect: an error, errors by partition, an answer, a delay or a disconnect."""
    arguments.number("delay_ms", delay_ms, "milliseconds")
    effects = {"error": error is not None, "answer": answer is not None, "disconnect": disconnect}
    given = [name for name, is_given in effects.items() if is_given]
    if not given and not delay_ms:
        raise UsageError("inject needs an error, a delay_ms or disconnect=True, or an answer")
    if len(given) > 1:
        raise UsageError(f"inject takes one of {' and '.join(given)}: each ends the request")
    if answer is not None:
        arguments.function("answer", answer, "lambda request: 'NOT_CONTROLLER'")
    delay_us = int(delay_ms * 1000)
    if not isinstance(error, Mapping):
        code = None if error is None else error_code(error)
        return InjectionEffect(code, {}, answer, delay_us, bool(disconnect))
    if topic is not None:
        raise UsageError("errors by partition name their topics; leave out topic and partition")
    errors: dict[TopicPartition, ErrorCode] = {
        TopicPartition(*key): error_code(value)
        for key, value in PARTITION_ERRORS.check("error", error).items()
    }
    return InjectionEffect(None, errors, None, delay_us)
