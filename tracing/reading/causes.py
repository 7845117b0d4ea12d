"""Cause and effect in a recorded run.

Every event names its cause, so a chain of causes can be followed event by event. For people a chain
is *folded*: a delivery also stands for its sending, and requests whose answers changed nothing are
left out, as are events that only waited for their turn. Contributing causes are inserted beside the
cause they came with: the request that waited while its receiver was silent, the topic that a new
controller found. Nothing is guessed: each line happened before the one above it, and led to it or
to a line further up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..events import Event, TraceError, is_root
from ..trace import StoredTrace
from .refusals import cause_of_refusal
from .state_history import last_change
from .waits import innermost_wait, is_request, topic_creations, unanswered_requests

_HOPS_MAX = 4000
"""Maximum number of steps of a chain: loops of requests and answers may reach back very far."""
_RELEASE_MAX = 4000
"""Number of events before a message's arrival that are searched for its release."""
_ROUND_TRIP_MAX = 64
"""Number of steps behind an answer that are searched for its request."""
_HOPS_SEARCHED_MAX = 200
"""Number of steps of a chain that are searched for a client's request or a wait."""
_ANSWER_MAX = 4
"""Number of steps behind a client's reaction that are searched for the answer it reacted to."""
_ZOOKEEPER_RESPONSE = "ServerPacket"
_CLIENT_REQUESTS = ("ProduceRequest", "FetchRequest")
_PARTITIONS_MAX = 20
_REPEATED = ("timer_fire", "client_retry", "client_invoke")
_BOOKKEEPING = ("/queue", "/queue_length", "/event")
"""Paths that only show which events wait in the controller's queue, or which one it handles."""
_WAIT_US = 1000
"""Microseconds below which a timer only let other events go first, and does not count as a wait."""


def parent_of(trace: StoredTrace, event: Event) -> Event | None:
    """Return the cause of an event; None for a root, or if the trace does not contain the cause.

    The cause of a delivery after a hold is the release, which came after the sending.
    """
    if event.cause is None or event.cause >= event.seq or is_root(event):
        return None
    released = released_by(trace, event)
    if released is not None:
        return released
    try:
        return trace.event(event.cause)
    except TraceError:
        return None  # the trace is a slice without it


def released_by(trace: StoredTrace, event: Event) -> Event | None:
    """Return the release of an arriving message that was held by a cut link, a pause or a rule."""
    if event.kind != "deliver" or event.message_id is None or event.cause is None:
        return None
    first = max(event.cause + 1, event.seq - _RELEASE_MAX)
    may_hold = trace.chunk_filter({"kind": "release"})
    found = None
    for other in trace.events(first, event.seq, may_hold):
        if other.kind == "release" and other.message_id == event.message_id:
            found = other
    return found


def enabling_leadership(trace: StoredTrace, event: Event) -> Event | None:
    """Return the event that made a broker the leader, if an event is its first append as such.

    Only the delivery of a request counts: other appends, such as at the end of a wait, did not wait
    for a leader.
    """
    if event.kind != "deliver":
        return None
    for path, old, _ in event.delta:
        if not path.endswith("/log_end_offset") or old is None:
            continue
        partition = path.removesuffix("/log_end_offset")
        led = _start_of_leadership(trace, partition, event)
        if led is None:
            continue
        before = last_change(trace, path, event.seq - 1)
        if before is None or before.event.seq <= led.seq:
            return led
    return None


def _start_of_leadership(trace: StoredTrace, partition: str, event: Event) -> Event | None:
    """Return the event that made a broker the leader it is at an event; None if it is none."""
    role = last_change(trace, f"{partition}/role", event.seq)
    if role is None or role.new != "leader" or role.event.seq == event.seq:
        return None
    return role.event


def start_as_follower(trace: StoredTrace, event: Event) -> Event | None:
    """Return the event that made a replica a follower, for the fetch with which it joins the ISR.

    Returns None if the ISR changed after it. Otherwise the causes of the fetch do not matter.
    """
    for path, _, new in event.delta:
        if not path.endswith("/proposed_isr") or event.type != "FetchRequest" or not new:
            continue
        partition = path.removesuffix("/proposed_isr")
        topic_partition = partition.partition("/")[2]
        before = last_change(trace, f"{partition}/isr", event.seq)
        follower = f"broker-{event.fields.get('replica_id')}/{topic_partition}/role"
        role = last_change(trace, follower, event.seq)
        if (
            before is not None
            and role is not None
            and role.new == "follower"
            and role.event.seq > before.event.seq
        ):
            return role.event
    return None


def awaited_leadership(trace: StoredTrace, event: Event, since: int) -> Event | None:
    """Return the event that made a broker the leader, for a client's request to that broker.

    Returns None if that was not after the event ``since``.
    """
    if event.kind != "deliver" or event.type not in _CLIENT_REQUESTS:
        return None
    fields = event.fields
    partitions = fields.get("partitions")
    if fields.get("replica_id", -1) >= 0 or not isinstance(partitions, list):
        return None
    for partition in partitions[:_PARTITIONS_MAX]:
        name = partition.get("topic_partition") if isinstance(partition, dict) else None
        led = None if name is None else _start_of_leadership(trace, f"{event.actor}/{name}", event)
        if led is not None and led.seq > since:
            return led
    return None


def chain_of(trace: StoredTrace, seq: int, limit: int = _HOPS_MAX) -> list[Event]:
    """Return an event and its causal ancestors, up to ``limit``: itself first, the root last."""
    chain = [trace.event(seq)]
    while len(chain) <= limit:
        parent = parent_of(trace, chain[-1])
        if parent is None:
            break
        chain.append(parent)
    return chain


def why(trace: StoredTrace, seq: int, *, is_folded: bool = True) -> list[Event]:
    """Return the causes of an event that matter, itself first, the root last; all unless folded."""
    if not is_folded:
        return chain_of(trace, seq)
    chain = _continue_through_waits(trace, chain_of(trace, seq))
    enabling = enabling_leadership(trace, chain[0])
    if enabling is not None:
        return [chain[0], *_fold_with_contributions(trace, chain_of(trace, enabling.seq))]
    refusal_chain = _refusal_chain(trace, chain)
    if refusal_chain is not None:
        return refusal_chain
    for index, event in enumerate(chain[:_HOPS_SEARCHED_MAX]):
        # An operation that began before this leader was elected had to wait for the election.
        enabling = start_as_follower(trace, event) or awaited_leadership(
            trace, event, chain[-1].seq
        )
        if enabling is not None:
            led = _fold_with_contributions(trace, chain_of(trace, enabling.seq))
            return [*_fold_with_contributions(trace, chain[: index + 1]), *led]
    return _fold_with_contributions(trace, chain)


def _fold_with_contributions(trace: StoredTrace, chain: list[Event]) -> list[Event]:
    """Fold a chain and insert the contributing causes."""
    kept = fold(chain)
    for other in (*unanswered_requests(trace, kept), *topic_creations(trace, chain)):
        places = (place for place, event in enumerate(kept) if event.seq <= other.seq)
        place = next(places, None)
        if place is not None and kept[place].seq != other.seq:
            kept.insert(place, other)
    return kept


def _continue_through_waits(trace: StoredTrace, chain: list[Event]) -> list[Event]:
    """Continue a chain through a wait for a healthy peer with the peer's own wait and its cause."""
    for index, event in enumerate(chain[:_HOPS_SEARCHED_MAX]):
        inner = innermost_wait(trace, event)
        if inner is not None and inner.cause is not None:
            seen = [inner] if inner.seq < event.seq else []
            return [*chain[: index + 1], *seen, *chain_of(trace, inner.cause)]
    return chain


def _changes_something(event: Event) -> bool:
    """Return whether an event changed more than the controller's queue."""
    return any(not path.endswith(_BOOKKEEPING) for path, _, _ in event.delta)


def _changed_something(chain: list[Event], index: int) -> bool:
    """Return whether an event of a chain changed more than the controller's queue.

    A change recorded after the event's chunk was full is in a ``state`` event caused by the event.
    """
    later = chain[index - 1]
    return _changes_something(chain[index]) or (later.kind == "state" and _changes_something(later))


def fold(chain: list[Event]) -> list[Event]:
    """Return the chain without sendings, answered requests, waits for a turn in a queue, and all
    but the last of repeated attempts."""
    kept = [chain[0]]
    index = 1
    if chain[0].kind == "deliver" and (
        chain[0].type == _ZOOKEEPER_RESPONSE or not _changes_something(chain[0])
    ):
        back = _index_after_request(chain, 0)
        index = 1 if back is None else back
    while index < len(chain) - 1:
        event = chain[index]
        back = _index_after_request(chain, index)
        if _changed_something(chain, index) or (
            _matters(chain, index, back) and not _is_repeated(kept, event)
        ):
            kept.append(event)
        index = index + 1 if back is None else back
    if len(chain) > 1:
        kept.append(chain[-1])
    return kept


def _is_repeated(kept: list[Event], event: Event) -> bool:
    """Return whether the same timer fired, or the same client tried, later in the chain: the last
    time is enough."""
    return event.kind in _REPEATED and any(
        (later.kind, later.actor, later.type) == (event.kind, event.actor, event.type)
        for later in kept[-2:]
    )


def _index_after_request(chain: list[Event], index: int) -> int | None:
    """Return the index after the sending of the request that a delivery answers; None if it is not
    an answer."""
    event = chain[index]
    if event.kind != "deliver" or event.peer == event.actor or is_request(event):
        return None
    for later in range(index + 1, min(index + _ROUND_TRIP_MAX, len(chain) - 1)):
        other = chain[later]
        if is_root(other) or other.kind == "expire":
            return None
        if other.actor == event.actor:
            return later + 1 if other.kind == "send" and other.peer == event.peer else None
    return None


def _matters(chain: list[Event], index: int, after_request: int | None) -> bool:
    """Return whether an event without a change of state belongs in the folded chain."""
    event = chain[index]
    if event.kind == "deliver":
        return after_request is None and event.peer != event.actor
    if event.kind == "timer_fire":
        return event.time_us - chain[index + 1].time_us >= _WAIT_US
    return event.kind not in ("send", "hold", "state")


def _refusal_chain(trace: StoredTrace, chain: list[Event]) -> list[Event] | None:
    """Return the answer, the request and the causes of the refusal, if a chain begins with an error
    answer or a client's reaction to one; else None."""
    searched = _ANSWER_MAX if chain[0].kind.startswith("client_") else 1
    for index, answer in enumerate(chain[:searched]):
        if answer.type is None or not answer.type.endswith("Response"):
            continue
        request = next((other for other in chain[index:] if _is_answered_by(answer, other)), None)
        refusal_cause = None if request is None else cause_of_refusal(trace, answer, request)
        if request is None or refusal_cause is None:
            return None
        head = [event for event in chain[: index + 1] if event.kind != "send" or event is chain[0]]
        return [
            *head,
            request,
            *_fold_with_contributions(trace, chain_of(trace, refusal_cause.seq)),
        ]
    return None


def _is_answered_by(answer: Event, other: Event) -> bool:
    responder = answer.actor if answer.kind == "send" else answer.peer
    return (
        other.kind == "deliver"
        and other.actor == responder
        and (other.type or "").endswith("Request")
    )


@dataclass(slots=True)
class Effect:
    """An event and its effects."""

    event: Event
    """The event."""
    depth: int
    """Number of steps below the root."""
    children: list[Effect] = field(default_factory=list)
    """The events that it caused, each with its own effects."""
    is_whole: bool = True
    """False at the root of a tree that was cut short by the limit."""


def effects(trace: StoredTrace, seq: int, limit: int = 1000, depth: int | None = None) -> Effect:
    """Return the tree of an event's causal descendants."""
    root = Effect(trace.event(seq), 0)
    nodes: dict[int, Effect] = {seq: root}
    for index in range(trace.chunk_of(seq), len(trace.chunks)):
        for raw in trace.raw_events(index):
            parent = nodes.get(raw[7])
            if parent is None or raw[0] <= seq or (depth is not None and parent.depth >= depth):
                continue
            if len(nodes) > limit:
                root.is_whole = False
                return root
            event = Event(raw, trace.strings, trace.schema)
            node = nodes[raw[0]] = Effect(event, parent.depth + 1)
            parent.children.append(node)
    return root
