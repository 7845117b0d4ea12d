"""Events with two causes: waits in vain, and partitions that a new controller sets up.

A wait in vain is caused by the event that began it, and by the one that silenced the peer waited
for. Its recorded cause is the latter, if there was one. A partition that a new controller sets up
is due to that controller, and to the earlier creation of the topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..events import WAITED, Event
from ..trace import StoredTrace
from .state_history import last_change

_ASKS_ZOOKEEPER = "ClientPacket"
_TOPICS = "/znodes/brokers/topics/"
_SENT_MAX = 64
"""Number of events after a handled event that are searched for a request it caused."""
_CAME_MAX = 4000
"""Number of events searched for the arrival of a request, or for the end of the peer's wait."""
_WAITS_MAX = 8
"""Maximum length of a chain of actors waiting for each other that is followed."""


def is_asked(event: Event) -> bool:
    """Return whether a message is a request, and so no answer."""
    return event.type == _ASKS_ZOOKEEPER or (event.type or "").endswith("Request")


def requests_that_waited(trace: StoredTrace, events: Iterable[Event]) -> Iterator[Event]:
    """Yield, for each wait in vain among events, the request that waited, or the event that began
    the wait."""
    for event in events:
        begun = _begun(trace, event)
        if begun is not None:
            yield _sent_then(trace, event, begun) or trace.event(begun)


def waited_in_turn(trace: StoredTrace, event: Event) -> Event | None:
    """Return the last wait in a chain of waits that one request caused.

    An actor that waits in vain for a healthy peer does so because the peer waits in vain for a
    third. Returns None if the event is no such wait, or the peer's wait is not found.
    """
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
    """Yield the events that created the topics whose partitions are set up in a chain of causes,
    unless they are in the chain themselves."""
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
    """Return the seq of the event at which a wait in vain began; None if the event is no such wait,
    or its beginning is not in the trace."""
    if event.kind != "expire" or event.type != WAITED:
        return None
    begun = event.fields.get("request")
    return begun if isinstance(begun, int) and trace.first_seq <= begun < event.seq else None


def _sent_then(trace: StoredTrace, wait: Event, begun: int) -> Event | None:
    """Return the request that an actor sent to the peer it waited for, caused by an event."""
    for event in trace.events(begun + 1, min(begun + _SENT_MAX, wait.seq)):
        if (
            (event.kind, event.actor, event.peer) == ("send", wait.actor, wait.peer)
            and event.cause == begun
            and is_asked(event)
        ):
            return event
    return None


def _wait_of_peer(trace: StoredTrace, wait: Event, begun: int) -> Event | None:
    """Return the peer's own wait in vain because of the request that an actor waited for.

    The peer's wait may end a little later than the actor's.
    """
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
