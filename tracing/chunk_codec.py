"""The body of a chunk: columns of events, packed together.

    [first seq, seqs, strings added, types added, heads, unseen, causes, payloads, whys, operations,
     changes]

*First seq* is the number of the first event. The columns have one entry for each event, except for
the sparse ones: *unseen*, *whys* and *changes*. *Heads* are ``[time us, kind, actor, peer, type,
message id]``, exactly what the outline covers; heads of events outside the outline are in *unseen*,
each preceded by its place. A delivery in the same chunk as its sending has no payload of its own.
*Whys* is a map by place, *seqs* is nil if the numbers have no gap, and *changes* are four columns:
place, path, old value, new value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import msgpack

from .events import KIND_CODES, KINDS, MESSAGE_KINDS
from .schema import Schema

NO_TYPE = "NoneType"
"""Name in the outline for the type of an event without a message."""
SHARING = frozenset(KIND_CODES[kind] for kind in MESSAGE_KINDS)
"""Kinds whose payload is stored at the event that caused them, if that is in the same chunk."""

Changes = tuple[Sequence[int], Sequence[int], Sequence[Any], Sequence[Any]]
"""Places of the events, numbers of the paths, old values, new values."""


class ChunkColumns(NamedTuple):
    """The columns of a chunk's body, without the strings and types that the chunk adds."""

    first_seq: int
    seqs: Sequence[int] | None
    """Number of every event; None if they are consecutive."""
    heads: bytes
    """Packed heads of the events in the outline."""
    unseen: Sequence[Any]
    causes: Sequence[int | None]
    payloads: bytes
    """Packed payloads of all events."""
    whys: Mapping[int, str]
    operations: Sequence[int | None]
    changes: Changes


_pack = msgpack.Packer().pack


def encode_chunk(
    columns: ChunkColumns,
    strings: Sequence[str],
    types: Sequence[Any],
    changes: bytes,
) -> tuple[bytes, list[int]]:
    """Return the body, and the offsets at which its parts begin and the last one ends.

    ``changes`` are the changes of ``columns``, already packed: they may contain messages.
    """
    parts = (
        b"\x9b",  # eleven parts
        _pack(columns.first_seq),
        _pack(columns.seqs),
        _pack(strings),
        _pack(types),
        columns.heads,
        _pack(columns.unseen),
        _pack(columns.causes),
        columns.payloads,
        _pack(columns.whys),
        _pack(columns.operations),
        changes,
    )
    return b"".join(parts), list(accumulate(map(len, parts)))


def heads_of(body: Sequence[Any]) -> list[Any]:
    """Return all heads of an unpacked body, with those of unseen events in their places."""
    heads: list[Any] = body[4]
    for place, *head in body[5]:
        heads.insert(place, head)
    body[5].clear()
    return heads


def decode_chunk(body: Sequence[Any], numbers: Mapping[str | None, int | None], schema: Schema
                 ) -> list[Any]:  # fmt: skip
    """Return the events of an unpacked body as lists in the order of ``EVENT_FIELDS``.

    ``numbers`` maps each string added by this chunk or an earlier one to its number.
    """
    first, seqs, _, _, _, _, causes, payloads, whys, operations, changes = body
    heads = heads_of(body)
    deltas: list[Any] = [()] * len(heads)
    for place, path, old, new in zip(*changes, strict=True):
        if deltas[place]:
            deltas[place].append([path, old, new])
        else:
            deltas[place] = [[path, old, new]]
    raws: list[Any] = []
    add = raws.append
    epochs_by_type = schema.epochs_of
    for place, (time_us, kind, actor, peer, name, message_id) in enumerate(heads):
        cause, payload = causes[place], payloads[place]
        code = KIND_CODES[kind]
        if payload is None and cause is not None and code in SHARING and seqs is None:
            sharing = cause - first
            if 0 <= sharing < place:
                payload = raws[sharing][9]
        epochs_of = epochs_by_type(name)
        add(
            [
                first + place if seqs is None else seqs[place],
                time_us * 1000,
                code,
                numbers[actor],
                numbers[peer],
                None if name == NO_TYPE else numbers[name],
                message_id,
                cause,
                None if payload is None or epochs_of is None else epochs_of(payload),
                payload,
                deltas[place],
                whys.get(place),
                operations[place],
            ]
        )  # fmt: skip
    return raws


def columns_of(
    raws: Sequence[Any], strings: Sequence[str], unseen: Iterable[str], pack: Any
) -> tuple[ChunkColumns, int]:
    """Return the columns of events given in the order of ``EVENT_FIELDS``, and the number of heads
    whose kind is not in ``unseen``."""
    kinds_unseen = frozenset(KIND_CODES[kind] for kind in unseen)
    heads, apart = [], []
    changes: tuple[list[Any], list[Any], list[Any], list[Any]] = ([], [], [], [])
    for place, raw in enumerate(raws):
        peer, name = raw[4], raw[5]
        head = (
            raw[1] // 1000,
            KINDS[raw[2]],
            strings[raw[3]],
            None if peer is None else strings[peer],
            NO_TYPE if name is None else strings[name],
            raw[6],
        )
        if raw[2] in kinds_unseen:
            apart.append((place, *head))
        else:
            heads.append(head)
        for change in raw[10]:
            for column, value in zip(changes, (place, *change), strict=True):
                column.append(value)
    columns = ChunkColumns(
        raws[0][0],
        [raw[0] for raw in raws],
        _pack(heads),
        apart,
        [raw[7] for raw in raws],
        pack([raw[9] for raw in raws]),
        {place: raw[11] for place, raw in enumerate(raws) if raw[11] is not None},
        [raw[12] for raw in raws],
        changes,
    )
    return columns, len(heads)
