"""Operations that start and end faults: of links, held messages, and injected responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..scenarios.actions import ACTIONS
from ..testing.handles.message_gate import MessageFilter
from ..testing.handles.roles import machine_name
from ..testing.parameters.cluster_kinds import MACHINE, MESSAGES
from ..testing.parameters.kinds import INDEX
from ..testing.parameters.parameter import optional
from .faults import active_faults
from .operation import Arguments, Operation, RequestedFault, ServedCluster
from .section import Section

if TYPE_CHECKING:
    from ..actors.delivery import Delivery
    from ..testing.handles.injection import Injection
    from ..testing.handles.network import Hold

_NETWORK, _INJECTIONS = Section("network"), Section("injections")
_SHOWN_MAX = 200

_FILTER = (
    optional("messages", MESSAGES, "names such as FetchResponse; any without it"),
    optional("source", MACHINE, "who sends; any machine without it"),
    optional("target", MACHINE, "who gets it; any machine without it"),
)


# -- the network -------------------------------------------------------------------------------


def network(served: ServedCluster) -> dict[str, Any]:
    """Return the rules of the network that are in force."""
    rules = served.cluster.network.rules

    def by_link(values: dict[tuple[str, str], Any], name: str) -> list[dict[str, Any]]:
        return [
            {"source": source, "target": target, name: value}
            for (source, target), value in values.items()
        ]

    return {
        "machines": served.cluster.running.machines(),
        "cuts": [list(cut) for cut in rules.cuts],
        "loss": rules.loss,
        "link_losses": by_link(rules.link_losses, "probability"),
        "latency": rules.latency,
        "link_latencies": by_link(rules.link_latencies, "latency"),
        "bandwidth_mb_per_s": rules.bandwidth_mb_per_s,
        "link_bandwidths": by_link(rules.link_bandwidths, "mb_per_s"),
        "held": rules.held_count,
    }


def faults(served: ServedCluster) -> dict[str, Any]:
    """Return all active faults in words, with the network's rules, the holds and injections."""
    return {
        "at_work": [
            {**fault._asdict(), "endings": [ending._asdict() for ending in fault.endings]}
            for fault in active_faults(served)
        ],
        **network(served),
        "holds": [_shown_hold(number, fault) for number, fault in served.holds.items()],
        "injections": [_shown_injection(n, fault) for n, fault in served.injections.items()],
    }


# -- held messages -----------------------------------------------------------------------------


def message_filter(served: ServedCluster, arguments: dict[str, Any]) -> MessageFilter:
    """Return the filter of messages that the fields of a body or query specify."""
    messages = tuple(arguments.get("messages", ()))
    ends = [arguments.get(name) for name in ("source", "target")]
    source, target = (
        None if end is None else machine_name(served.cluster.running, end) for end in ends
    )
    return MessageFilter(messages, source, target, is_between_nodes=not messages)


def _hold(served: ServedCluster, arguments: Arguments) -> dict[str, int]:
    hold = served.cluster.network.hold(message_filter(served, arguments))
    return {"id": served.holds.add(RequestedFault(hold, arguments.given))}


def _shown_hold(number: int, fault: RequestedFault[Hold]) -> dict[str, Any]:
    return {"id": number, **fault.request, "held": len(fault.handle.messages)}


def shown_message(delivery: Delivery) -> dict[str, Any]:
    """Return a short description of a message."""
    return {
        "message": type(delivery.message).__name__,
        "source": delivery.sender.name,
        "target": delivery.target.name,
        "is_reply": delivery.is_reply,
    }


def _hold_messages(served: ServedCluster, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    messages = served.holds.get(arguments["hold"]).handle.messages
    return [shown_message(delivery) for delivery in messages[:_SHOWN_MAX]]


def _release(served: ServedCluster, arguments: dict[str, Any]) -> int:
    return served.holds.get(arguments["hold"]).handle.release(arguments.get("count"))


def _end_hold(served: ServedCluster, arguments: dict[str, Any]) -> int:
    return served.holds.remove(arguments["hold"]).handle.end()


def _release_all(served: ServedCluster, _arguments: dict[str, Any]) -> int:
    served.holds.clear()
    return served.cluster.network.release()


# -- injected responses ------------------------------------------------------------------------


def _inject(served: ServedCluster, arguments: Arguments) -> dict[str, int]:
    injection = ACTIONS["inject"].perform(served.cluster, arguments)
    served.injections.put(injection.id, RequestedFault(injection, arguments.given))
    return {"id": injection.id}


def _shown_injection(number: int, fault: RequestedFault[Injection]) -> dict[str, Any]:
    return {
        "id": number,
        **fault.request,
        "applied": fault.handle.applied,
        "remaining": fault.handle.remaining,
    }


def _injection(served: ServedCluster, arguments: dict[str, Any]) -> dict[str, Any]:
    number = arguments["injection"]
    return _shown_injection(number, served.injections.get(number))


def _cancel(served: ServedCluster, arguments: dict[str, Any]) -> None:
    served.injections.remove(arguments["injection"]).handle.cancel()


FAULT_OPERATIONS: tuple[Operation, ...] = (
    _NETWORK.get(
        "/network",
        "cuts, losses and delays in force",
        lambda served, _: network(served),
        gives="the rules of the network",
    ),
    *(
        _NETWORK.act(f"/network/{name}", name)
        for name in ("partition", "isolate", "heal", "restore", "latency", "bandwidth", "drop")
    ),
    _NETWORK.get(
        "/network/holds",
        "holds in force, with how many messages each keeps back",
        lambda served, _: [_shown_hold(n, fault) for n, fault in served.holds.items()],
        gives="an array of holds",
    ),
    _NETWORK.post(
        "/network/holds",
        "keep messages back from now on",
        _hold,
        *_FILTER,
        gives="the id of the hold",
    ),
    _NETWORK.get(
        "/network/holds/{hold}",
        f"the oldest messages that a hold keeps back, at most {_SHOWN_MAX}",
        _hold_messages,
        gives="an array of messages",
    ),
    _NETWORK.post(
        "/network/holds/{hold}/release",
        "deliver the oldest messages of a hold, which goes on",
        _release,
        optional("count", INDEX, "how many; all without it"),
        gives="how many there were",
    ),
    _NETWORK.delete(
        "/network/holds/{hold}",
        "end a hold and deliver what it kept",
        _end_hold,
        gives="how many there were",
    ),
    _NETWORK.post(
        "/network/release",
        "end every hold and deliver what they kept",
        _release_all,
        gives="how many there were",
    ),
    _INJECTIONS.get(
        "/injections",
        "injections that were ordered here, with how often each was applied",
        lambda served, _: [_shown_injection(n, fault) for n, fault in served.injections.items()],
        gives="an array of injections",
    ),
    _INJECTIONS.act("/injections", "inject", run=_inject),
    _INJECTIONS.get("/injections/{injection}", "one injection", _injection, gives="the injection"),
    _INJECTIONS.delete("/injections/{injection}", "cancel an injection", _cancel),
)
