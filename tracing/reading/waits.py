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

_ZOOKEEPER_REQUEST = "ClientPacket"
_TOPICS = "/znodes/brokers/topics/"
_REQUEST_SEARCH_MAX = 64
"""Number of events after a handled event that are searched for a request it caused."""
_ARRIVAL_SEARCH_MAX = 4000
"""Number of events searched for the arrival of a request, or for the end of the peer's wait."""
_WAITS_MAX = 8
"""Maximum length of a chain of actors waiting for each other that is followed."""


def is_request(event: Event) -> bool:
    """Return whether a message is a request, and so no answer."""
    return event.type == _ZOOKEEPER_REQUEST or (event.type or "").endswith("Request")


def unanswered_requests(trace: StoredTrace, events: Iterable[Event]) -> Iterator[Event]:
    """Yield, for each wait in vain among events, the request that waited, or the event that began
    the wait."""
    for event in events:
        begun = _start_of_wait(trace, event)
        if begun is not None:
            yield _request_of_wait(trace, event, begun) or trace.event(begun)


def innermost_wait(trace: StoredTrace, event: Event) -> Event | None:
    """Return the last wait in a chain of waits that one request caused.

    An actor that waits in vain for a healthy peer does so because the peer waits in vain for a
    third. Returns None if the event is no such wait, or the peer's wait is not found.
    """
    inner = event
    for _ in range(_WAITS_MAX):
        begun = _start_of_wait(trace, inner)
        if begun is None or inner.cause != begun:
            break
        found = _wait_of_peer(trace, inner, begun)
        if found is None or found.cause is None or found.cause >= event.seq:
            break
        inner = found
    return None if inner is event else inner


def topic_creations(trace: StoredTrace, chain: list[Event]) -> Iterator[Event]:
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


def _start_of_wait(trace: StoredTrace, event: Event) -> int | None:
    """Return the seq of the event at which a wait in vain began; None if the event is no such wait,
    or its beginning is not in the trace."""
    if event.kind != "expire" or event.type != WAITED:
        return None
    begun = event.fields.get("request")
    return begun if isinstance(begun, int) and trace.first_seq <= begun < event.seq else None


def _request_of_wait(trace: StoredTrace, wait: Event, begun: int) -> Event | None:
    """Return the request that an actor sent to the peer it waited for, caused by an event."""
    for event in trace.events(begun + 1, min(begun + _REQUEST_SEARCH_MAX, wait.seq)):
        if (
            (event.kind, event.actor, event.peer) == ("send", wait.actor, wait.peer)
            and event.cause == begun
            and is_request(event)
        ):
            return event
    return None


def _wait_of_peer(trace: StoredTrace, wait: Event, begun: int) -> Event | None:
    """Return the peer's own wait in vain because of the request that an actor waited for.

    The peer's wait may end a little later than the actor's.
    """
    sent = _request_of_wait(trace, wait, begun)
    if sent is None:
        return None
    stop = min(sent.seq + _ARRIVAL_SEARCH_MAX, wait.seq)
    arrival = next((e for e in trace.events(sent.seq + 1, stop) if e.cause == sent.seq), None)
    if arrival is None or arrival.kind != "deliver":
        return None
    may_hold = trace.chunk_filter({"kind": "expire"})
    for event in trace.events(arrival.seq + 1, wait.seq + _ARRIVAL_SEARCH_MAX, may_hold):
        if event.actor == wait.peer and _start_of_wait(trace, event) == arrival.seq:
            return event
    return None
