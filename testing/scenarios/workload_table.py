"""The clients of a scenario file: one entry of ``workload``."""

from __future__ import annotations

from .spec import CLIENTS_MAX, MOST_PER_S, ClusterSpec, TopicSpec, WorkloadSpec
from .table import Table, nearest

RECORD_BYTES_MAX = 100_000_000


def read_workload(table: Table, number: int, cluster: ClusterSpec) -> WorkloadSpec:
    topics = {topic.name: topic for topic in cluster.topics}
    default = cluster.topics[0].name if len(topics) == 1 else ""
    topic = table.text("topic", default)
    if topic not in topics:
        raise table.error("topic", f"{topic!r} is not in cluster.topics{nearest(topic, topics)}")
    model = table.text("model", "open", ("open", "closed"))
    if model == "open" and table.has("in_flight"):
        raise table.error("in_flight", "belongs to model = 'closed'; open loops have rate_per_s")
    if model == "closed" and table.has("rate_per_s"):
        raise table.error("rate_per_s", "belongs to model = 'open'; closed loops have in_flight")
    start = table.number("start_ms", 0.0)
    acks = _read_acks(table)
    spec = WorkloadSpec(
        topic=topic,
        name=table.text("name", f"workload-{number + 1}"),
        model=model,  # type: ignore[arg-type]
        rate_per_s=table.number("rate_per_s", 100.0, 0.001, MOST_PER_S),
        in_flight=table.integer("in_flight", 1, 1),
        producers=table.integer("producers", 1, 0, CLIENTS_MAX),
        consumers=table.integer("consumers", 0, 0, CLIENTS_MAX),
        partitions=_read_partitions(table, topics[topic]),
        record_bytes=_read_sizes(table),
        acks=acks,
        idempotent=table.flag("idempotent", acks == -1),
        linger_ms=table.number("linger_ms", 0.0),
        start_ms=start,
        stop_ms=table.number("stop_ms", 0.0, start) if table.has("stop_ms") else None,
    )
    if spec.idempotent and acks != -1:
        raise table.error("idempotent", "needs acks = 'all'")
    if model == "closed" and acks == 0 and not spec.linger_ms:
        raise table.error("acks", "must not be 0 in a closed loop: nothing is waited for")
    table.finish()
    return spec


def _read_acks(table: Table) -> int:
    value = table.raw("acks", "all")
    if value in ("all", -1):
        return -1
    if isinstance(value, bool) or value not in (0, 1):
        raise table.error("acks", f"must be 0, 1 or 'all', not {value!r}")
    return int(value)


def _read_partitions(table: Table, topic: TopicSpec) -> tuple[int, ...] | None:
    if not table.has("partitions"):
        return None
    numbers = table.items("partitions")
    for number in numbers:
        if not isinstance(number, int) or not 0 <= number < topic.partitions:
            last = topic.partitions - 1
            raise table.error(
                "partitions", f"{topic.name} has partitions 0 to {last}, not {number!r}"
            )
    if not numbers:
        raise table.error("partitions", "is empty; leave it out for all partitions")
    return tuple(numbers)


def _read_sizes(table: Table) -> tuple[int, int]:
    value = table.raw("record_bytes", 100)
    sizes = value if isinstance(value, list) else [value, value]
    if len(sizes) != 2 or any(isinstance(s, bool) or not isinstance(s, int) for s in sizes):
        raise table.error("record_bytes", f"must be a number or [smallest, largest], not {value!r}")
    if not 0 <= sizes[0] <= sizes[1]:
        raise table.error("record_bytes", f"must be 0 <= smallest <= largest, not {value!r}")
    if sizes[1] > RECORD_BYTES_MAX:
        raise table.error("record_bytes", f"must be at most {RECORD_BYTES_MAX:,}")
    return sizes[0], sizes[1]
