"""Formats an event as one line of fixed columns, for people, grep and golden files.

    #1234     12.503412 deliver  broker-2       <- controller-1   LeaderAndIsrRequest  epoch=7 ...

The columns are seq, seconds, kind, actor, arrow, peer, type, then the most telling fields.
``verbosity`` 1 adds the whole payload below the line, 2 also the changes of state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .events import Event, Truncated, bytes_text

ARROWS = {
    "send": "->",
    "deliver": "<-",
    "drop": "-x",
    "hold": "-|",
    "release": "|>",
    "timer_fire": "~!",
    "spawn": "++",
    "stop": "--",
    "crash": "XX",
    "restart": "^^",
    "fault": "!!",
}
_KEY_FIELDS: dict[str, tuple[str, ...]] = {
    "ProduceRequest": ("acks", "transactional_id", "partitions"),
    "ProduceResponse": ("partitions",),
    "FetchRequest": ("replica_id", "session_epoch", "partitions", "forgotten"),
    "FetchResponse": ("error", "partitions"),
    "LeaderAndIsrRequest": ("controller_epoch", "partition_states"),
    "UpdateMetadataRequest": ("controller_epoch", "partition_states", "live_brokers"),
    "StopReplicaRequest": ("controller_epoch", "partition_states"),
    "MetadataResponse": ("controller_id", "topics"),
    "ClientPacket": ("xid", "request"),
    "ServerPacket": ("xid", "response"),
    "WatchEvent": ("type", "path"),
    "Ping": (),
    "Waited": ("request",),
}
"""Fields shown on the line, in this order; other types show all that are not empty."""
_PARTITION_FIELDS = (
    "error", "leader", "leader_epoch", "isr", "new_isr", "zk_version", "is_new",
    "delete_partition", "fetch_offset", "base_offset", "high_watermark", "timestamp", "offset",
    "end_offset", "records", "diverging_epoch", "leader_and_isr",
)  # fmt: skip
_ZNODE_FIELDS = ("code", "path", "version", "data", "children", "operations", "results", "watch")
_EMPTY: tuple[Any, ...] = (None, "", -1, False, "NONE", "OK", [], {})
_NEVER_EMPTY = frozenset({"leader", "acks"})  # -1 has a meaning in these
_ITEMS_SHOWN = 3
_WORD_LENGTH = 96


def format_time(time_us: int) -> str:
    """Format a time as seconds with six decimals."""
    return f"{time_us // 1_000_000}.{time_us % 1_000_000:06d}"


def format_event(event: Event, verbosity: int = 0) -> str:
    """Format an event as its line, with what ``verbosity`` adds below it."""
    line = (
        f"#{event.seq:<7d} {format_time(event.time_us):>13} {event.kind:<10} {event.actor:<14} "
        f"{ARROWS.get(event.kind, '  ')} {event.peer or '':<14} {event.type or '':<22} "
        f"{summary(event)}"
    ).rstrip()
    if verbosity <= 0:
        return line
    lines = [line]
    lines += [f"          {row}" for row in _tree(event.fields)]
    if event.cause is not None:
        lines.append(f"          cause #{event.cause}")
    if verbosity > 1:
        lines += [
            f"        Δ {path}: {_word(old)} -> {_word(new)}" for path, old, new in event.delta
        ]
    return "\n".join(lines)


def summary(event: Event) -> str:
    """Format the most telling fields of an event on one line."""
    words: list[str] = []
    if event.message_id is not None:
        words.append(f"m{event.message_id}")
    fields = event.fields
    names: Iterable[str] = _KEY_FIELDS.get(event.type or "", tuple(fields))
    for name in names:
        value = fields.get(name)
        if not _is_empty(value, name):
            words.append(_field(name, value))
    if event.why:
        words.append(f"({event.why})")
    if event.op is not None:
        words.append(f"op={event.op}")
    if event.kind == "state":
        words += [f"{path}: {_word(old)} -> {_word(new)}" for path, old, new in event.delta]
    elif event.delta:
        words.append(f"Δ{len(event.delta)}")
    return " ".join(words)


def _field(name: str, value: Any) -> str:
    if name in ("request", "response") and isinstance(value, dict):
        return _entry(value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        shown = [_entry(item) for item in value[:_ITEMS_SHOWN]]
        more = f" +{len(value) - _ITEMS_SHOWN} more" if len(value) > _ITEMS_SHOWN else ""
        listed = ", ".join(shown) + more
        if name in ("partitions", "partition_states", "topics"):
            return listed
        return f"{name}=[{listed}]"
    return f"{name}={_word(value)}"


def _entry(item: Any) -> str:
    """Format a nested message in a few words."""
    if not isinstance(item, dict):
        return _word(item)
    label, names = _label(item)
    words = [
        f"{name}={_named_word(name, item[name])}"
        for name in names
        if not _is_empty(item.get(name), name)
    ]
    if "data" in item and isinstance(item["data"], bytes):
        words = [word for word in words if not word.startswith("data=")]
        words.append(f"data={_word(item['data'])}")
    return f"{label}({' '.join(words)})" if words else label


def _label(item: dict[str, Any]) -> tuple[str, Iterable[str]]:
    if "topic_partition" in item:
        return str(item["topic_partition"]), _PARTITION_FIELDS
    if "topic" in item and "partition" in item:
        return f"{item['topic']}-{item['partition']}", _PARTITION_FIELDS
    if "base_offset" in item and "last_offset" in item:
        return f"{item['base_offset']}..{item['last_offset']}", ("leader_epoch", "size")
    if "endpoints" in item:
        return str(item.get("id")), ()
    if "@type" in item:
        return str(item["@type"]), [name for name in item if name not in ("@type", "stat")]
    if "code" in item:
        return str(item["code"]), [
            name for name in _ZNODE_FIELDS if name in item and name != "code"
        ]
    if "name" in item and "partitions" in item:
        return str(item["name"]), ("error",)
    return "", tuple(item)


def _named_word(name: str, value: Any) -> str:
    if name == "records" and isinstance(value, (bytes, Truncated)):
        return f"{value.length if isinstance(value, Truncated) else len(value)}B"
    return _word(value)


def _is_empty(value: Any, name: str = "") -> bool:
    if name in _NEVER_EMPTY:
        return value is None
    return any(
        value is empty or (value == empty and type(value) is type(empty)) for empty in _EMPTY
    )


def _word(value: Any) -> str:
    if isinstance(value, bytes):
        text = bytes_text(value)
    elif isinstance(value, Truncated):
        text = str(value)
    elif isinstance(value, list):
        if any(isinstance(item, (dict, list)) for item in value):
            shown = ", ".join(_entry(item) for item in value[:_ITEMS_SHOWN])
            more = f" +{len(value) - _ITEMS_SHOWN} more" if len(value) > _ITEMS_SHOWN else ""
            return f"[{shown}{more}]"
        text = "[" + ",".join(_word(item) for item in value) + "]"
    elif isinstance(value, dict):
        return _entry(value)
    else:
        text = str(value)
    return text if len(text) <= _WORD_LENGTH else text[: _WORD_LENGTH - 2] + ".."


def _tree(value: Any, indent: str = "") -> Iterator[str]:
    """Yield a line for every value of a payload, nested ones indented."""
    items: Iterable[tuple[str, Any]] = (
        value.items() if isinstance(value, dict) else ((f"[{i}]", v) for i, v in enumerate(value))
    )
    for name, item in items:
        nested = isinstance(item, dict) or (
            isinstance(item, list) and any(isinstance(part, (dict, list)) for part in item)
        )
        if nested:
            yield f"{indent}{name}:"
            yield from _tree(item, indent + "  ")
        else:
            yield f"{indent}{name}={_word(item)}"
