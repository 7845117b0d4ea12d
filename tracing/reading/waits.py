"""Causes that come in twos: requests that waited in vain, topics that were found.

A wait in vain has two causes, what began it and what silenced the one it was for. Its event goes on
to the latter. A partition that a new controller sets up is due to that controller, and to whoever
made the topic before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..events import WAITED, Event
from ..trace import StoredTrace
from .state_history import last_change

_ASKS_ZOOKEEPER = "ClientPacket"
_TOPICS = "/znodes/brokers/topics/"
_SENT_MAX = 64
"""Events between what an actor handled and what it sent because of that."""
_CAME_MAX = 4000
"""Events within which a request arrives, or the wait of who was waited for ends, too."""
_WAITS_MAX = 8
"""Waits for each other that are followed."""


def is_asked(event: Event) -> bool:
    """Return whether a message asks, so that it answers nothing."""
    return event.type == _ASKS_ZOOKEEPER or (event.type or "").endswith("Request")


def requests_that_waited(trace: StoredTrace, events: Iterable[Event]) -> Iterator[Event]:
    """For each wait in vain among events: the request that waited, or what began it."""
    for event in events:
        begun = _begun(trace, event)
        if begun is not None:
            yield _sent_then(trace, event, begun) or trace.event(begun)


def waited_in_turn(trace: StoredTrace, event: Event) -> Event | None:
    """For a wait for somebody who was well: his own wait in vain for somebody else, because of the
    same request. None if it was none, or is not known."""
    inner = event
    for _ in range(_WAITS_MAX):
        begun = _begun(trace, inner)
        if begun is None or inner.cause != begun:
            break
        found = _wait_of_peer(trace, inner, begun)
        if found is None or found.cause is None or found.cause >= event.seq:
            break
        inner = found
    return None if inner is event else inner


def topics_found(trace: StoredTrace, chain: list[Event]) -> Iterator[Event]:
    """Return who made the topics that a controller found at its start, for partitions that it set
    up."""
    seqs = {event.seq for event in chain}
    topics: dict[str, int] = {}
    for event in chain:
        for path, old, _ in event.delta:
            znode, _, partition = path.partition("/partitions/")
            if old is None and partition.endswith("/state") and _TOPICS in znode:
                topics.setdefault(znode, event.seq)
    for znode, seq in topics.items():
        change = last_change(trace, znode, seq)
        while change is not None and change.old is not None:
            change = last_change(trace, znode, change.event.seq - 1)
        if change is not None and change.event.seq not in seqs:
            yield change.event


def _begun(trace: StoredTrace, event: Event) -> int | None:
    """Seq of the event at which a wait in vain began; None if it is none, or not in this slice."""
    if event.kind != "expire" or event.type != WAITED:
        return None
    begun = event.fields.get("request")
    return begun if isinstance(begun, int) and trace.first_seq <= begun < event.seq else None


def _sent_then(trace: StoredTrace, wait: Event, begun: int) -> Event | None:
    """The request that an actor sent to the one it waited for, when it was handling an event."""
    for event in trace.events(begun + 1, min(begun + _SENT_MAX, wait.seq)):
        if (
            (event.kind, event.actor, event.peer) == ("send", wait.actor, wait.peer)
            and event.cause == begun
            and is_asked(event)
        ):
            return event
    return None


def _wait_of_peer(trace: StoredTrace, wait: Event, begun: int) -> Event | None:
    """For whom the one waited that somebody waited for. His patience may end a little later."""
    sent = _sent_then(trace, wait, begun)
    if sent is None:
        return None
    stop = min(sent.seq + _CAME_MAX, wait.seq)
    came = next((e for e in trace.events(sent.seq + 1, stop) if e.cause == sent.seq), None)
    if came is None or came.kind != "deliver":
        return None
    may_hold = trace.chunk_filter({"kind": "expire"})
    for event in trace.events(came.seq + 1, wait.seq + _CAME_MAX, may_hold):
        if event.actor == wait.peer and _begun(trace, event) == came.seq:
            return event
    return None
