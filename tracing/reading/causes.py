"""Cause and effect in a recorded run.

Every event names the one from which it follows, so a chain of causes is followed event by event,
wherever it leads. A chain is *folded* for people: a delivery stands for its sending, too, what an
actor asked and was told is left out where it changed nothing, and so is what merely waited for its
turn. Nothing in it is guessed: each line happened before the one above it, and led to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..events import ROOT_KINDS, Event, TraceError
from ..trace import StoredTrace
from .state_history import last_change

_HOPS_MAX = 4000
"""Steps of a chain that are followed: loops of requests and answers may go back for ever."""
_ROUND_TRIP_MAX = 64
"""Steps within which a question and its answer are looked for."""
_WAIT_US = 1000
"""A timer that took less has only let others go first."""


def parent_of(trace: StoredTrace, event: Event) -> Event | None:
    """What this event follows from; None at a root, and where the trace does not hold it."""
    if event.cause is None or event.cause >= event.seq or event.kind in ROOT_KINDS:
        return None
    try:
        return trace.event(event.cause)
    except TraceError:
        return None  # not in this slice


def enabled_by(trace: StoredTrace, event: Event) -> Event | None:
    """For the first append of a new leader: the event that made it the leader."""
    for path, old, _ in event.delta:
        if not path.endswith("/log_end_offset") or old is None:
            continue
        partition = path.removesuffix("/log_end_offset")
        role = last_change(trace, f"{partition}/role", event.seq)
        if role is None or role.new != "leader" or role.event.seq == event.seq:
            continue
        before = last_change(trace, path, event.seq - 1)
        if before is None or before.event.seq <= role.event.seq:
            return role.event
    return None


def chain_of(trace: StoredTrace, seq: int, limit: int = _HOPS_MAX) -> list[Event]:
    """Every causal ancestor of an event, itself first, the root last."""
    chain = [trace.event(seq)]
    while len(chain) <= limit:
        parent = parent_of(trace, chain[-1])
        if parent is None:
            break
        chain.append(parent)
    return chain


def why(trace: StoredTrace, seq: int, *, is_folded: bool = True) -> list[Event]:
    """The causes of an event that matter, itself first, the root last; all unless folded."""
    if not is_folded:
        return chain_of(trace, seq)
    head = trace.event(seq)
    enabling = enabled_by(trace, head)
    if enabling is None:
        return fold(chain_of(trace, seq))
    return [head, *fold(chain_of(trace, enabling.seq))]


def fold(chain: list[Event]) -> list[Event]:
    """The chain without sendings, questions that were answered, waiting for one's turn, and all
    but the last of a timer's firings in a row."""
    kept = [chain[0]]
    index = 1
    if chain[0].kind == "deliver" and not chain[0].delta:
        back = _asked_at(chain, 0)
        index = 1 if back is None else back
    while index < len(chain) - 1:
        event = chain[index]
        back = _asked_at(chain, index)
        if event.delta or (_matters(chain, index, back) and not _is_same_timer(kept[-1], event)):
            kept.append(event)
        index = index + 1 if back is None else back
    if len(chain) > 1:
        kept.append(chain[-1])
    return kept


def _is_same_timer(later: Event, event: Event) -> bool:
    """Whether a timer only went on: of its firings in a row the last one says it all."""
    return (
        event.kind == later.kind == "timer_fire"
        and event.actor == later.actor
        and event.type == later.type
    )


def _asked_at(chain: list[Event], index: int) -> int | None:
    """Index behind the sending of the request that a delivery answers; None if it is no answer."""
    event = chain[index]
    if event.kind != "deliver" or event.peer == event.actor:
        return None
    for later in range(index + 1, min(index + _ROUND_TRIP_MAX, len(chain) - 1)):
        other = chain[later]
        if other.kind in ROOT_KINDS or other.kind == "expire":
            return None
        if other.actor == event.actor:
            return later + 1 if other.kind == "send" and other.peer == event.peer else None
    return None


def _matters(chain: list[Event], index: int, asked_at: int | None) -> bool:
    """Whether an event without a change of state says something."""
    event = chain[index]
    if event.kind == "deliver":
        return asked_at is None and event.peer != event.actor
    if event.kind == "timer_fire":
        return event.time_us - chain[index + 1].time_us >= _WAIT_US
    return event.kind not in ("send", "hold", "state")


@dataclass(slots=True)
class Effect:
    """An event and what it led to."""

    event: Event
    depth: int
    children: list[Effect] = field(default_factory=list)
    is_whole: bool = True
    """False at the root of a tree that the limit cut short."""


def effects(trace: StoredTrace, seq: int, limit: int = 1000, depth: int | None = None) -> Effect:
    """The tree of causal descendants of an event."""
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
