"""Descriptions of events in words, for the page and for the log of a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Event = Mapping[str, Any]

DEBUG, INFO, WARNING, ERROR = "debug", "info", "warning", "error"
_UP = ("running", "starting")
_STARTS_SHOWN_MAX = 3


def _name_of(broker: int | None) -> str:
    return "no broker" if broker is None else f"broker {broker}"


def _election(event: Event) -> str:
    reason = f" ({event['reason']})" if event.get("reason") else ""
    return (
        f"{event['topic']}-{event['partition']}: {_name_of(event['leader'])} leads in epoch "
        f"{event['leader_epoch']}, after {_name_of(event['was'])}{reason}"
    )


def _isr(event: Event) -> str:
    now, was = (", ".join(map(str, event[name])) for name in ("isr", "was"))
    return f"{event['topic']}-{event['partition']}: ISR [{now}], was [{was}]"


def _controller(event: Event) -> str:
    if event["broker"] is None:
        return "no controller"
    return f"broker {event['broker']} is the controller, epoch {event['epoch']}"


def _topic(event: Event) -> str:
    if event["change"] == "deleted":
        return f"topic {event['topic']} is deleted"
    client = event.get("client_id")
    request = "" if client is None else f", requested by {event['api']} of client {client!r}"
    how = ", automatically" if event.get("is_automatic") else ""
    return f"new partitions of {event['topic']}: {event['partitions']}{how}{request}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _group(event: Event) -> str:
    state, members = event["state"], _counted(event["members"], "member")
    group = f"group {event['group']}"
    if state == "Dead":
        return f"{group} is deleted"
    if state in ("Stable", "Empty"):
        return f"{group} is {state.lower()}: generation {event['generation']}, {members}"
    return f"{group} rebalances ({state}): generation {event['generation']}, {members}"


def _refused(event: Event) -> str:
    count = event["count"]
    times = "" if count == 1 else f", {count} times in {event['seconds']:.0f} s"
    return (
        f"broker {event['broker']} refuses {event['api']} of client {event['client_id']!r} "
        f"({event['address']}): {event['reason']}{times}"
    )


def _megabytes(count: int) -> str:
    return f"{count / (1 << 20):,.1f} MB"


def _memory(event: Event) -> str:
    starts = list(event["log_starts"].items())
    shown = [f"{name} {start}" for name, start in starts[:_STARTS_SHOWN_MAX]]
    if len(starts) > _STARTS_SHOWN_MAX:
        shown.append(f"and {len(starts) - _STARTS_SHOWN_MAX} more")
    kept, limit = _megabytes(event["kept_bytes"]), _megabytes(event["bytes_max"])
    return (
        f"memory: the oldest {_megabytes(event['bytes'])} of records were deleted, {kept} of "
        f"{limit} are in use; log start offsets: {', '.join(shown)}"
    )


def _connection(event: Event) -> str:
    what = "to" if event["change"] == "opened" else "closed, to"
    return f"connection {event['connection']} {what} broker {event['broker']}"


_WORDS: dict[str, Callable[[Event], str]] = {
    "election": _election,
    "isr": _isr,
    "broker": lambda event: f"broker {event['broker']}: {event['state'].replace('_', ' ')}",
    "zookeeper": lambda event: f"ZooKeeper {event['server']}: {event['state'].replace('_', ' ')}",
    "controller": _controller,
    "topic": _topic,
    "group": _group,
    "refused": _refused,
    "fault": lambda event: f"fault {event['change']}: {event['fault']}",
    "connection": _connection,
    "memory": _memory,
    "action": lambda event: f"{event['method']} {event['path']}",
    "lost": lambda event: (
        f"{event['count']} events were lost: they arrived faster than they were read"
    ),
}


def words(event: Event) -> str:
    """Describe an event in one line; values that clients chose are included unescaped."""
    describe = _WORDS.get(event["type"])
    return str(event["type"]) if describe is None else describe(event)


def level(event: Event) -> str:
    """Return the level of an event: ``debug``, ``info``, ``warning`` or ``error``."""
    kind = event["type"]
    if kind == "election" and event["leader"] is None:
        return ERROR
    if kind in ("broker", "zookeeper"):
        return INFO if event["state"] in _UP else WARNING
    if kind == "controller":
        return INFO if event["broker"] is not None else WARNING
    if kind == "isr":
        return WARNING if len(event["isr"]) < len(event["was"]) else INFO
    if kind == "fault":
        return WARNING if event["change"] == "begins" else INFO
    if kind == "refused":
        return DEBUG if event["is_usual"] else WARNING
    if kind == "connection":
        return DEBUG
    return WARNING if kind in ("lost", "memory") else INFO
