"""The values that are made equal before a recording is compared, and why.

Everything else that a response or a znode says is compared as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.fidelity.protocol import records

IDENTITY = (
    *("nodeId", "brokerId", "name", "topic", "topicName", "partitionIndex", "partition", "index"),
    *("groupId", "memberId", "transactionalId", "resourceName", "configName", "logDir", "key"),
    *("partitionId", "apiKey", "producerId", "entityType", "resourceType", "batchIndex"),
)
"""Fields that tell the elements of an array apart."""

Change = Callable[["Names", Any], Any]


class Names:
    """Gives what Kafka draws at random a name by its first appearance."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, object], str] = {}
        self._counts: dict[str, int] = {}

    def of(self, kind: str, value: object) -> str:
        known = self._known.get((kind, value))
        if known is None:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            known = self._known[(kind, value)] = f"{kind} {self._counts[kind]}"
        return known


class Row(NamedTuple):
    """Fields of responses that are normalised alike."""

    fields: tuple[str, ...]
    change: Change
    reason: str


def _is_set(_names: Names, value: Any) -> Any:
    return value if value in (None, "", -1, 0) else "set"


def _member(names: Names, value: Any) -> Any:
    return names.of("member", value) if value else value


def _producer(names: Names, value: Any) -> Any:
    return names.of("producer", value) if isinstance(value, int) and value > 0 else value


def _time(_names: Names, value: Any) -> Any:
    return "a time" if isinstance(value, int) and value > 1_000_000 else value


def _error(_names: Names, value: Any) -> Any:
    return ErrorCode(value).name if value in ErrorCode._value2member_map_ else value


def _length(_names: Names, value: Any) -> Any:
    return None if value is None else f"{len(value)} characters"


def _topic_id(_names: Names, value: Any) -> Any:
    return "none" if value.strip("0") == "" else "set"


def _read(_names: Names, value: Any) -> Any:
    return records.read(value)


def _sorted(_names: Names, value: Any) -> Any:
    return None if value is None else sorted(value)


def _bytes(names: Names, value: Any) -> Any:
    return value.decode("latin-1") if isinstance(value, bytes) else value


ROWS: tuple[Row, ...] = (
    Row(("errorCode",), _error, "errors are written by their names"),
    Row(("host", "port", "listeners"), _is_set, "ports are free ones, hosts differ"),
    Row(("clusterId",), _length, "drawn at random at the first start"),
    Row(("topicId",), _topic_id, "drawn at random when a topic is created"),
    Row(("controllerId",), _is_set, "who wins the race for /controller is left to chance"),
    Row(("memberId", "leader", "members_order"), _member, "ends with a random UUID"),
    Row(("producerId",), _producer, "depends on which broker got which block of ids; 0 is spent"),
    Row(("records",), _read, "times are of the run; offsets and values are compared"),
    Row(("isrNodes", "offlineReplicas"), _sorted, "followers that join at once do so in any order"),
    Row(("sessionId",), _is_set, "drawn at random (KIP-227)"),
    Row(
        (*("timestamp", "logAppendTimeMs", "logAppendTime", "startTimeMs"), "lastTimestamp"),
        _time,
        "times are of the run",
    ),
    Row(("transactionStartTimeMs", "issueTimestampMs"), _time, "times are of the run"),
    Row(("brokerEpoch", "finalizedFeaturesEpoch"), _is_set, "a transaction id of ZooKeeper"),
    Row(("metadata", "assignment", "protocolMetadata"), _bytes, "bytes are written as text"),
    Row(("totalBytes", "usableBytes"), _is_set, "of the volume"),
)
"""Which fields are changed, to what, and why."""

LEFT_OUT: Mapping[str, str] = {
    "throttleTimeMs": "no client is throttled here; the tests of quotas look at it",
    "documentation": "texts of Kafka's documentation are not part of this project",
}
"""Fields that are not compared, and why."""

ORDER = "Kafka groups results in hash tables, so arrays are compared by what tells elements apart"

_CHANGES: dict[str, Change] = {name: row.change for row in ROWS for name in row.fields}


def normalised(names: Names, tree: Any, name: str = "") -> Any:
    """A response's tree as it is compared."""
    if isinstance(tree, dict):
        return {
            key: normalised(names, value, key) for key, value in tree.items() if key not in LEFT_OUT
        }
    change = _CHANGES.get(name)
    if change is not None and not (isinstance(tree, list) and tree and isinstance(tree[0], dict)):
        return change(names, tree)
    if isinstance(tree, list):
        return [normalised(names, element, name) for element in tree]
    return _bytes(names, tree) if isinstance(tree, bytes) else tree


def lines(tree: Any) -> dict[str, str]:
    """A normalised tree as lines: a path and the plain fields that are there."""
    found: dict[str, str] = {}
    if isinstance(tree, dict):
        _collect("", tree, found)
    else:
        found["is"] = text(tree)
    return found


def text(value: Any) -> str:
    """A value on one line."""
    return json.dumps(value, ensure_ascii=False, sort_keys=isinstance(value, dict))


def _collect(
    path: str, tree: dict[str, Any], found: dict[str, str], shown: Sequence[str] = ()
) -> None:
    """``shown`` are fields that the path tells already."""
    plain: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            _collect(f"{path} {key}".strip(), value, found)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for element in value:
                telling = [k for k in IDENTITY if element.get(k) is not None][:2]
                name = "/".join(text(element[k]).strip('"') for k in telling)
                _collect(f"{path} {key} {name}".strip(), element, found, telling)
        elif key not in shown:
            plain[key] = value
    if not path:
        found.update((key, text(value)) for key, value in plain.items())
    elif plain or shown:
        name, number = path, 2
        while name in found:
            name, number = f"{path} #{number}", number + 1
        found[name] = text(plain)
