"""The values that are normalised before a recording is compared, and why.

Every other value of a response or a znode is compared as it is.
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
    """Names random values of Kafka in the order of their first appearance."""

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
    """Fields of responses that are normalised in the same way."""

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
    Row(("errorCode",), _error, "error codes are compared by name"),
    Row(("host", "port", "listeners"), _is_set, "hosts differ, and each run takes free ports"),
    Row(("clusterId",), _length, "the id is random"),
    Row(("topicId",), _topic_id, "the id is random"),
    Row(("controllerId",), _is_set, "which broker creates /controller first is left to chance"),
    Row(("memberId", "leader", "members_order"), _member, "member ids end with a random UUID"),
    Row(("producerId",), _producer, "ids depend on the order in which brokers allocate blocks"),
    Row(("records",), _read, "timestamps differ by run; offsets and values are compared"),
    Row(("isrNodes", "offlineReplicas"), _sorted, "followers may join the ISR in any order"),
    Row(("sessionId",), _is_set, "the id of a fetch session is random (KIP-227)"),
    Row(
        (*("timestamp", "logAppendTimeMs", "logAppendTime", "startTimeMs"), "lastTimestamp"),
        _time,
        "timestamps differ by run",
    ),
    Row(("transactionStartTimeMs", "issueTimestampMs"), _time, "timestamps differ by run"),
    Row(
        ("brokerEpoch", "finalizedFeaturesEpoch"),
        _is_set,
        "the values come from ZooKeeper and differ by run",
    ),
    Row(("metadata", "assignment", "protocolMetadata"), _bytes, "bytes are compared as text"),
    Row(("totalBytes", "usableBytes"), _is_set, "sizes of the volume with the log directory"),
)
"""The fields that are normalised, how, and why."""

LEFT_OUT: Mapping[str, str] = {
    "throttleTimeMs": "not compared: no client is throttled; tests of quotas cover the field",
    "documentation": "not compared: this project does not contain the texts of Kafka",
}
"""Fields that are not compared, and why."""

ORDER = "Kafka groups results in hash tables, so elements are matched by their identifying fields"

_CHANGES: dict[str, Change] = {name: row.change for row in ROWS for name in row.fields}


def normalised(names: Names, tree: Any, name: str = "") -> Any:
    """Return a response's tree in the form in which it is compared."""
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
    """Return a normalised tree as lines: each path, with the plain fields at that path."""
    found: dict[str, str] = {}
    if isinstance(tree, dict):
        _collect("", tree, found)
    else:
        found["is"] = text(tree)
    return found


def text(value: Any) -> str:
    """Return a value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, sort_keys=isinstance(value, dict))


def _collect(
    path: str, tree: dict[str, Any], found: dict[str, str], shown: Sequence[str] = ()
) -> None:
    """Collect the lines below a path; ``shown`` are fields that the path contains already."""
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
