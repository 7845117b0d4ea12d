"""The members of groups and the transactional applications of a scenario file."""

from __future__ import annotations

from ...actors.clients.assignors import ASSIGNORS
from .spec import CLIENTS_MAX, ClusterSpec, GroupSpec, TransformerSpec
from .table import Table, nearest


def read_coordinated(
    root: Table, cluster: ClusterSpec
) -> tuple[tuple[GroupSpec, ...], tuple[TransformerSpec, ...]]:
    """The entries of ``groups`` and of ``transformers``."""
    groups = tuple(read_group(table, n, cluster) for n, table in enumerate(root.tables("groups")))
    transformers = tuple(
        read_transformer(table, n, cluster) for n, table in enumerate(root.tables("transformers"))
    )
    for kind, key, values in (
        ("groups", "group_id", [group.group_id for group in groups]),
        ("transformers", "transactional_id", [one.transactional_id for one in transformers]),
    ):
        doubled = [value for value in values if values.count(value) > 1]
        if doubled:
            raise root.error(kind, f"two have the {key} {doubled[0]!r}")
    if transformers and not cluster.behaviour().transactions:
        version = cluster.kafka_version
        raise root.error("transformers", f"need transactions, which Kafka {version} does not have")
    return groups, transformers


def read_group(table: Table, number: int, cluster: ClusterSpec) -> GroupSpec:
    """One entry of ``groups``."""
    topics = table.items("topics")
    if not topics and len(cluster.topics) == 1:
        topics = [cluster.topics[0].name]
    if not topics:
        raise table.error("topics", "is missing; name the topics that the members subscribe to")
    for topic in topics:
        _check_topic(table, "topics", topic, cluster)
    spec = GroupSpec(
        topics=tuple(topics),
        group_id=table.text("group_id", f"group-{number + 1}"),
        members=table.integer("members", 1, 1, CLIENTS_MAX),
        assignor=table.text("assignor", "range", tuple(ASSIGNORS)),
        is_static=table.flag("is_static", False),
        session_timeout_ms=table.integer("session_timeout_ms", 45_000, 1),
        heartbeat_interval_ms=table.integer("heartbeat_interval_ms", 3000, 1),
        auto_commit_interval_ms=table.integer("auto_commit_interval_ms", 5000, 1),
        start_ms=table.number("start_ms", 0.0),
        join_every_ms=table.number("join_every_ms", 0.0),
    )
    if not spec.group_id:
        raise table.error("group_id", "must not be empty")
    table.finish()
    return spec


def read_transformer(table: Table, number: int, cluster: ClusterSpec) -> TransformerSpec:
    """One entry of ``transformers``."""
    for name in ("input", "output"):
        if not table.has(name):
            raise table.error(name, "is missing; name a topic of cluster.topics")
        _check_topic(table, name, table.raw(name), cluster)
    if table.raw("input") == table.raw("output"):
        raise table.error("output", "must be another topic than the input")
    name = table.text("name", f"transformer-{number + 1}")
    spec = TransformerSpec(
        input=table.text("input"),
        output=table.text("output"),
        name=name,
        transactional_id=table.text("transactional_id", name),
        consumer_group=table.text("consumer_group", name),
        transaction_timeout_ms=table.integer("transaction_timeout_ms", 60_000, 1),
        start_ms=table.number("start_ms", 0.0),
    )
    if not (spec.name and spec.transactional_id and spec.consumer_group):
        raise table.error("name", "must not be empty")
    table.finish()
    return spec


def _check_topic(table: Table, name: str, topic: object, cluster: ClusterSpec) -> None:
    topics = {spec.name: spec for spec in cluster.topics}
    if not isinstance(topic, str) or topic not in topics:
        raise table.error(name, f"{topic!r} is not in cluster.topics{nearest(str(topic), topics)}")
