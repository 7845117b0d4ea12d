"""Operations that set faults to work and end them: links, messages kept back, injected answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol.errors import UsageError
from ..api_names import message_type
from ..handles.injection_arguments import fixed_answer
from ..handles.message_gate import MessageFilter
from ..handles.roles import machine_name
from ..scenarios.actions import ACTIONS
from .acting import act, acting
from .fields import Field
from .operation import Desk, HoldOrder, InjectionOrder, Operation

if TYPE_CHECKING:
    from ...actors.delivery import Delivery

_NETWORK, _INJECTIONS = "network", "injections"
_SHOWN_MAX = 200

LINK = (
    Field("source", "machine", False, "one end of a link; with target"),
    Field("target", "machine", False, "the other end"),
)
_FILTER = (
    Field("messages", "strings", False, "names such as FetchResponse; any without it"),
    Field("source", "machine", False, "who sends; anybody without it"),
    Field("target", "machine", False, "who gets it; anybody without it"),
)


# -- the network -------------------------------------------------------------------------------


def network(desk: Desk) -> dict[str, Any]:
    """The rules of the network that are in force."""
    rules = desk.cluster.network.rules

    def by_link(values: dict[tuple[str, str], Any], name: str) -> list[dict[str, Any]]:
        return [
            {"source": source, "target": target, name: value}
            for (source, target), value in values.items()
        ]

    return {
        "machines": desk.cluster.running.machines(),
        "cuts": [list(cut) for cut in rules.cuts],
        "loss": rules.loss,
        "link_losses": by_link(rules.link_losses, "probability"),
        "latency": rules.latency,
        "link_latencies": by_link(rules.link_latencies, "latency"),
        "bandwidth_mb_per_s": rules.bandwidth_mb_per_s,
        "link_bandwidths": by_link(rules.link_bandwidths, "mb_per_s"),
        "held": rules.held_count,
    }


def faults(desk: Desk) -> dict[str, Any]:
    """Everything that is at work: rules, holds, injections."""
    return {
        **network(desk),
        "holds": [_shown_hold(number, order) for number, order in desk.holds.items()],
        "injections": [_shown_injection(n, order) for n, order in desk.injections.items()],
    }


# -- messages kept back ------------------------------------------------------------------------


def message_filter(desk: Desk, arguments: dict[str, Any]) -> MessageFilter:
    """The messages that the fields of a body, or of a query, mean."""
    messages = tuple(map(message_type, arguments.get("messages", ())))
    ends = [arguments.get(name) for name in ("source", "target")]
    source, target = (
        None if end is None else machine_name(desk.cluster.running, end) for end in ends
    )
    return MessageFilter(messages, source, target, is_between_nodes=not messages)


def _hold(desk: Desk, arguments: dict[str, Any]) -> dict[str, int]:
    hold = desk.cluster.network.hold(message_filter(desk, arguments))
    return {"id": desk.holds.add(HoldOrder(hold, dict(arguments)))}


def _shown_hold(number: int, order: HoldOrder) -> dict[str, Any]:
    return {"id": number, **order.asked, "held": len(order.hold.messages)}


def shown_message(delivery: Delivery) -> dict[str, Any]:
    """A message in few words."""
    return {
        "message": type(delivery.message).__name__,
        "source": delivery.sender.name,
        "target": delivery.target.name,
        "is_reply": delivery.is_reply,
    }


def _hold_messages(desk: Desk, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    messages = desk.holds.get(arguments["hold"]).hold.messages
    return [shown_message(delivery) for delivery in messages[:_SHOWN_MAX]]


def _release(desk: Desk, arguments: dict[str, Any]) -> int:
    return desk.holds.get(arguments["hold"]).hold.release(arguments.get("count"))


def _end_hold(desk: Desk, arguments: dict[str, Any]) -> int:
    return desk.holds.remove(arguments["hold"]).hold.end()


def _release_all(desk: Desk, _arguments: dict[str, Any]) -> int:
    desk.holds.clear()
    return desk.cluster.network.release()


# -- injected answers --------------------------------------------------------------------------


def _inject(desk: Desk, arguments: dict[str, Any]) -> dict[str, int]:
    injection = desk.cluster.inject(**_injection_arguments(arguments))
    desk.injections.put(injection.id, InjectionOrder(injection, dict(arguments)))
    return {"id": injection.id}


def _injection_arguments(asked: dict[str, Any]) -> dict[str, Any]:
    """What was asked over HTTP, as ``Cluster.inject`` takes it."""
    given = dict(asked)
    if given.get("times") == "all":
        given["times"] = None
    errors = given.pop("errors", None)
    if errors is not None:
        if "error" in given:
            raise UsageError("give an error, or errors by partition, not both")
        given["error"] = {(topic, number): error for topic, number, error in errors}
    if "answer" in given:
        given["answer"] = fixed_answer(given["api"], given["answer"])
    return given


def _shown_injection(number: int, order: InjectionOrder) -> dict[str, Any]:
    return {
        "id": number,
        **order.asked,
        "applied": order.injection.applied,
        "remaining": order.injection.remaining,
    }


def _injection(desk: Desk, arguments: dict[str, Any]) -> dict[str, Any]:
    number = arguments["injection"]
    return _shown_injection(number, desk.injections.get(number))


def _cancel(desk: Desk, arguments: dict[str, Any]) -> None:
    desk.injections.remove(arguments["injection"]).injection.cancel()


def _partition(desk: Desk, arguments: dict[str, Any]) -> None:
    if len(arguments["groups"]) < 2:
        raise UsageError("partition needs two groups or more, such as [[1], [2, 3]]")
    act("partition")(desk, arguments)


FAULT_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET",
        "/network",
        _NETWORK,
        "cuts, losses and delays in force",
        lambda desk, _: network(desk),
        gives="the rules of the network",
    ),
    Operation(
        "POST",
        "/network/partition",
        _NETWORK,
        ACTIONS["partition"].summary,
        _partition,
        (
            Field("groups", "groups", True),
            Field("both_ways", "boolean", False, "false cuts only from earlier to later groups"),
        ),
    ),
    acting("/network/isolate", "isolate", _NETWORK, Field("machine", "machine", True)),
    acting("/network/heal", "heal", _NETWORK),
    acting(
        "/network/latency",
        "latency",
        _NETWORK,
        Field("constant_ms", "number"),
        Field("uniform_ms", "range", False, "least and most"),
        Field("lognormal_ms", "range", False, "median and sigma"),
        *LINK,
    ),
    acting(
        "/network/bandwidth",
        "bandwidth",
        _NETWORK,
        Field("mb_per_s", "number", False, "without a limit if it is left out"),
        *LINK,
    ),
    acting("/network/drop", "drop", _NETWORK, Field("probability", "number", True), *LINK),
    Operation(
        "GET",
        "/network/holds",
        _NETWORK,
        "holds in force, with how many messages each keeps back",
        lambda desk, _: [_shown_hold(n, order) for n, order in desk.holds.items()],
        gives="an array of holds",
    ),
    Operation(
        "POST",
        "/network/holds",
        _NETWORK,
        "keep messages back from now on",
        _hold,
        _FILTER,
        gives="the id of the hold",
    ),
    Operation(
        "GET",
        "/network/holds/{hold}",
        _NETWORK,
        f"the oldest messages that a hold keeps back, at most {_SHOWN_MAX}",
        _hold_messages,
        gives="an array of messages",
    ),
    Operation(
        "POST",
        "/network/holds/{hold}/release",
        _NETWORK,
        "deliver the oldest messages of a hold, which goes on",
        _release,
        (Field("count", "integer", False, "how many; all without it"),),
        gives="how many there were",
    ),
    Operation(
        "DELETE",
        "/network/holds/{hold}",
        _NETWORK,
        "end a hold and deliver what it kept",
        _end_hold,
        gives="how many there were",
    ),
    Operation(
        "POST",
        "/network/release",
        _NETWORK,
        "end every hold and deliver what they kept",
        _release_all,
        gives="how many there were",
    ),
    Operation(
        "GET",
        "/injections",
        _INJECTIONS,
        "injections that were ordered here, with how often each was applied",
        lambda desk, _: [_shown_injection(n, order) for n, order in desk.injections.items()],
        gives="an array of injections",
    ),
    Operation(
        "POST",
        "/injections",
        _INJECTIONS,
        ACTIONS["inject"].summary,
        _inject,
        (
            Field("api", "string", True, "Kafka's name, such as Produce"),
            Field("error", "string", False, "the name of one of Kafka's errors"),
            Field("errors", "partition_errors", False, "errors of single partitions"),
            Field("answer", "object", False, "the fields of the response that is given"),
            Field("times", "limit", False, '1 by default; "all" until it is cancelled'),
            Field("broker", "machine", False, "an id or a role; any without it"),
            Field("delay_ms", "number"),
            Field("disconnect", "boolean"),
            Field("topic", "string", False, "only requests about it"),
            Field("partition", "integer", False, "of the topic"),
            Field("client_id", "string", False, "only of this client; wildcards are allowed"),
            Field("nth", "integer", False, "the first request that is met, 1 by default"),
        ),
        gives="the id of the injection",
    ),
    Operation(
        "GET",
        "/injections/{injection}",
        _INJECTIONS,
        "one injection",
        _injection,
        gives="the injection",
    ),
    Operation("DELETE", "/injections/{injection}", _INJECTIONS, "cancel an injection", _cancel),
)
