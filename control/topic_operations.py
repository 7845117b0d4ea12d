"""Operations on topics, partitions and records."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..protocol.errors import UsageError
from ..protocol.values import TopicPartition
from ..scenarios.actions import TOPIC_SHAPE
from ..testing.parameters.cluster_kinds import TOPIC_NAMES
from ..testing.parameters.kinds import INDEX, INT32, STRING, nullable, whole
from ..testing.parameters.parameter import optional, required
from .operation import Operation, ServedCluster
from .section import Section
from .watching.record_pages import (
    LIMIT,
    LIMIT_MAX,
    SHOWN_BYTES,
    SHOWN_BYTES_MAX,
    PageRequest,
    record_page,
)

if TYPE_CHECKING:
    from ..testing.views import ConsumerRecord, PartitionView

_TOPICS, _RECORDS = Section("topics"), Section("records")
_RECORDS_MAX = 1000
_RANGE = (
    optional("offset", INDEX, "where to begin", 0),
    optional("limit", INT32, "how many at most", _RECORDS_MAX),
)
_REPLICA = optional("replica", INT32, "a broker's id; the leader by default")


def _view(served: ServedCluster, arguments: dict[str, Any]) -> dict[str, Any]:
    return _shown(served.cluster.partition(arguments["topic"], arguments["partition"]))


def _shown(view: PartitionView) -> dict[str, Any]:
    shown = dataclasses.asdict(view)
    replicas = shown.pop("_replicas")
    shown["replica_views"] = [replicas[broker] for broker in view.replicas]
    return shown


def _topic(served: ServedCluster, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    cluster, topic = served.cluster, arguments["topic"]
    first = cluster.partition(topic, 0)  # raises a helpful error for an unknown topic
    brokers = cluster.running.living_brokers()
    count = max((b.metadata_cache.partition_count(topic) for b in brokers), default=1)
    return [_shown(first), *(_shown(cluster.partition(topic, n)) for n in range(1, count))]


def _create_many(served: ServedCluster, arguments: dict[str, Any]) -> None:
    served.cluster.create_topics(arguments.pop("names"), **arguments)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "backslashreplace")


def _records_shown(
    records: list[ConsumerRecord], arguments: dict[str, Any]
) -> list[dict[str, Any]]:
    limit = max(arguments.get("limit", _RECORDS_MAX), 0)
    first = arguments.get("offset", 0)
    return [
        {
            "offset": r.offset,
            "timestamp": r.timestamp,
            "key": _text(r.key),
            "value": _text(r.value),
            "headers": [[name, _text(value)] for name, value in r.headers],
        }
        for r in [r for r in records if r.offset >= first][:limit]
    ]


def _records(served: ServedCluster, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    records = served.cluster.records(
        arguments["topic"], arguments["partition"], arguments.get("replica")
    )
    return _records_shown(records, arguments)


def _page(served: ServedCluster, arguments: dict[str, Any]) -> dict[str, Any]:
    given = [name for name in ("before", "offset", "timestamp") if name in arguments]
    if len(given) > 1:
        raise UsageError(
            f"a page takes only one of before, offset and timestamp, not {' and '.join(given)}"
        )
    wanted = PageRequest(
        arguments.get("limit", LIMIT),
        arguments.get("before"),
        arguments.get("offset"),
        arguments.get("timestamp"),
    )
    return record_page(
        served.cluster,
        TopicPartition(arguments["topic"], arguments["partition"]),
        wanted,
        replica=arguments.get("replica"),
        shown_bytes=arguments.get("shown_bytes", SHOWN_BYTES),
    )


def _log(served: ServedCluster, arguments: dict[str, Any]) -> bytes:
    topic, number = arguments["topic"], arguments["partition"]
    replica = arguments.get("replica", f"leader:{topic}-{number}")
    return served.cluster.log_bytes(topic, number, replica)


def _consume(served: ServedCluster, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    records = served.cluster.consume(
        arguments["topic"], arguments["partition"], arguments.get("offset", 0)
    )
    return _records_shown(records, arguments)


def _produce(served: ServedCluster, arguments: dict[str, Any]) -> int:
    return served.cluster.produce(
        arguments["topic"],
        arguments["value"],
        arguments.get("key"),
        arguments["partition"],
        arguments.get("acks", -1),
    )


TOPIC_OPERATIONS: tuple[Operation, ...] = (
    _TOPICS.get(
        "/topics",
        "names of all topics",
        lambda served, _: served.cluster.topics(),
        gives="an array of names",
    ),
    _TOPICS.act("/topics", "create_topic"),
    _TOPICS.post(
        "/create_topics",
        "create many topics of one shape with one request",
        _create_many,
        required("names", TOPIC_NAMES),
        *TOPIC_SHAPE,
    ),
    _TOPICS.get(
        "/topics/{topic}",
        "snapshots of all partitions of a topic",
        _topic,
        gives="an array of partitions",
    ),
    _TOPICS.act("/topics/{topic}", "delete_topic", method="DELETE"),
    _TOPICS.act("/topics/{topic}/partitions", "create_partitions"),
    _TOPICS.act("/topics/{topic}/config", "alter_config"),
    _TOPICS.get(
        "/topics/{topic}/{partition}",
        "a partition's snapshot",
        _view,
        gives="the partition with its replicas",
    ),
    _RECORDS.get(
        "/topics/{topic}/{partition}/records",
        "the records that a replica holds",
        _records,
        *_RANGE,
        _REPLICA,
        gives="an array of records",
    ),
    _RECORDS.get(
        "/topics/{topic}/{partition}/page",
        "a page of records, newest first, with keys and values in base64",
        _page,
        optional("before", INDEX, "the page that ends before this offset"),
        optional("offset", INDEX, "the page that begins at this offset"),
        optional("timestamp", INDEX, "the page that begins at this time, in ms since 1970"),
        optional("limit", whole(1, LIMIT_MAX), "how many records at most", LIMIT),
        optional(
            "shown_bytes",
            whole(0, SHOWN_BYTES_MAX),
            "of a key, a value, a header at most",
            SHOWN_BYTES,
        ),
        _REPLICA,
        gives="the page, the marks of the log, and the offsets of the pages around it",
    ),
    _RECORDS.get(
        "/topics/{topic}/{partition}/log",
        "the bytes of a replica's whole log, for comparing replicas",
        _log,
        _REPLICA,
        gives="the bytes as they are stored",
        gives_bytes=True,
    ),
    _RECORDS.post(
        "/topics/{topic}/{partition}/records",
        "append a record; gives its offset",
        _produce,
        required("value", nullable(STRING)),
        optional("key", STRING),
        optional("acks", INT32, default=-1),
        gives="the offset",
    ),
    _RECORDS.get(
        "/topics/{topic}/{partition}/consume",
        "the records up to the high watermark, as consumers see them",
        _consume,
        *_RANGE,
        gives="an array of records",
    ),
)
