"""Operations on consumer groups and transactions, through the brokers that coordinate them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..actors.clients.assignors import decode_assignment
from ..protocol.awaiting import Disconnected, RequestTimeout
from ..protocol.errors import (
    ClientError,
    ErrorCode,
    KafkaError,
    NotThereYet,
    UsageError,
    did_you_mean,
)
from ..protocol.groups import (
    CONSUMER_PROTOCOL,
    CONSUMER_PROTOCOL_TYPE,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescription,
    ConsumerGroupMemberDescription,
    DeleteGroupsRequest,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    ListedGroup,
    ListGroupsRequest,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from ..protocol.transactions import DescribeTransactionsRequest, ListTransactionsRequest
from ..protocol.values import TopicPartition
from ..testing.parameters.kinds import COUNT, INDEX, STRING, choice
from ..testing.parameters.parameter import optional, required
from . import cluster_state
from .cluster_operations import WAIT
from .operation import Operation, ServedCluster
from .section import Section
from .watching.record_pages import PageRequest, record_page

if TYPE_CHECKING:
    from ..testing.cluster import Cluster

_GROUPS, _TRANSACTIONS = Section("groups"), Section("transactions")
_TIMEOUT_MS = 2000.0
"""Timeout in milliseconds of a request to one broker; a broker that is cut off never answers."""


def _ask(cluster: Cluster, name: str, request: Any) -> Any:
    """Send a request to a broker; return the response, or None if there is none in time."""
    running = cluster.running

    async def ask() -> Any:
        return await running.admin.ask(name, request, _TIMEOUT_MS)

    try:
        return running.call(ask, 2 * _TIMEOUT_MS)
    except (Disconnected, RequestTimeout):
        return None


def _coordinators(cluster: Cluster) -> list[str]:
    """Return the names of the brokers that are alive and not paused."""
    processes = cluster.running.processes.values()
    return [p.name for p in processes if p.is_alive and not p.process.paused]


# -- groups ------------------------------------------------------------------------------------


def _all_groups(cluster: Cluster, wanted: str | None = None) -> list[dict[str, Any]]:
    """Return every group, or one, with its members, its committed offsets and their lag."""
    found: dict[str, dict[str, Any]] = {}
    high_watermarks = _high_watermarks(cluster)
    for name in _coordinators(cluster):
        listed = _ask(cluster, name, ListGroupsRequest())
        if listed is None:
            continue
        groups = [group for group in listed.groups if wanted in (None, group.group_id)]
        for shown in _described(cluster, name, groups):
            offsets = _ask(cluster, name, OffsetFetchRequest(shown["group"], None))
            shown["offsets"] = _shown_offsets(offsets, high_watermarks)
            shown["lag"] = sum(entry["lag"] or 0 for entry in shown["offsets"])
            found[shown["group"]] = shown
    return [found[group_id] for group_id in sorted(found)]


def _described(
    cluster: Cluster, coordinator: str, groups: list[ListedGroup]
) -> Iterator[dict[str, Any]]:
    """Yield groups with their members, described with the API of each group's protocol."""
    consumer = tuple(g.group_id for g in groups if g.group_type == CONSUMER_PROTOCOL)
    classic = tuple(g.group_id for g in groups if g.group_type != CONSUMER_PROTOCOL)
    queries: tuple[tuple[Any, Callable[[Any, str], dict[str, Any]]], ...] = (
        (DescribeGroupsRequest(classic), _shown_group),
        (ConsumerGroupDescribeRequest(consumer), _shown_consumer_group),
    )
    for request, show in queries:
        described = _ask(cluster, coordinator, request) if request.group_ids else None
        for group in () if described is None else described.groups:
            if group.error == ErrorCode.NONE:
                yield show(group, coordinator)


def _high_watermarks(cluster: Cluster) -> Callable[[Any], int | None]:
    known = cluster_state.partitions(cluster)
    offsets = cluster_state.replica_offsets(cluster)

    def find(key: Any) -> int | None:
        leader = known[key].leader if key in known else -1
        at_leader = offsets.get(leader, {}).get(key)
        return None if at_leader is None else at_leader[0]

    return find


def _shown_group(group: DescribedGroup, coordinator: str) -> dict[str, Any]:
    is_consumer = group.protocol_type == CONSUMER_PROTOCOL_TYPE

    def assigned(member: DescribedMember) -> list[list[Any]] | None:
        return assigned_partitions(member.assignment) if is_consumer else None

    return _shown(group, coordinator, group.protocol_type, group.protocol, assigned)


def _shown_consumer_group(group: ConsumerGroupDescription, coordinator: str) -> dict[str, Any]:
    def assigned(member: ConsumerGroupMemberDescription) -> list[list[Any]]:
        topics = member.assignment
        return [[topic.topic, number] for topic in topics for number in topic.partitions]

    return _shown(group, coordinator, CONSUMER_PROTOCOL_TYPE, group.assignor, assigned)


def _shown(
    group: DescribedGroup | ConsumerGroupDescription,
    coordinator: str,
    protocol_type: str,
    protocol: str,
    assigned: Callable[[Any], list[list[Any]] | None],
) -> dict[str, Any]:
    return {
        "group": group.group_id,
        "state": group.state,
        "coordinator": coordinator,
        "protocol_type": protocol_type,
        "protocol": protocol,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "assignment": assigned(member),
            }
            for member in group.members
        ],
    }


def assigned_partitions(data: bytes) -> list[list[Any]] | None:
    """Return the (topic, partition) pairs of a consumer's assignment; None if it is malformed."""
    try:
        return [[topic, number] for topic, number in decode_assignment(data)]
    except ClientError:
        return None


def _shown_offsets(
    fetched: Any, high_watermark: Callable[[Any], int | None]
) -> list[dict[str, Any]]:
    if fetched is None:
        return []
    shown = []
    for committed in fetched.partitions:
        key = committed.topic_partition
        end = high_watermark(key)
        shown.append(
            {
                "topic": key.topic,
                "partition": key.partition,
                "offset": committed.offset,
                "high_watermark": end,
                "lag": None if end is None else max(end - committed.offset, 0),
            }
        )
    return sorted(shown, key=lambda entry: (entry["topic"], entry["partition"]))


def _group(served: ServedCluster, arguments: dict[str, Any]) -> dict[str, Any]:
    found = _all_groups(served.cluster, arguments["group"])
    if not found:
        known = [shown["group"] for shown in _all_groups(served.cluster)]
        hint = did_you_mean(arguments["group"], known)
        raise UsageError(f"there is no group {arguments['group']!r}{hint}")
    return found[0]


def _wait_for_group(served: ServedCluster, arguments: dict[str, Any]) -> dict[str, Any]:
    timeout_s = arguments.get("timeout_s", WAIT.default)
    served.cluster.wait_for_group(arguments["group"], arguments.get("members"), timeout_s)
    return _group(served, arguments)


def _delete_group(served: ServedCluster, arguments: dict[str, Any]) -> None:
    group = _group(served, arguments)
    request = DeleteGroupsRequest((group["group"],))
    answer = _ask(served.cluster, group["coordinator"], request)
    error = ErrorCode.REQUEST_TIMED_OUT if answer is None else answer.groups[0][1]
    if error != ErrorCode.NONE:
        raise KafkaError(error, f"group {group['group']!r}")


def _reset_offsets(served: ServedCluster, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Commit other offsets for a group without members, as Kafka's tools do."""
    given = [name for name in ("to", "offset", "timestamp") if name in arguments]
    if len(given) != 1:
        names = " and ".join(given) or "none"
        raise UsageError(f"reset_offsets takes one of to, offset and timestamp, not {names}")
    cluster, group_id = served.cluster, arguments["group"]
    group = _group(served, arguments)
    if group["members"]:
        count = len(group["members"])
        raise UsageError(
            f"group {group_id!r} has {count} {'member' if count == 1 else 'members'}: the offsets "
            "of a group can only be reset while it has no members"
        )
    before = {(one["topic"], one["partition"]): one["offset"] for one in group["offsets"]}
    keys = _partitions_to_reset(cluster, arguments, [TopicPartition(*key) for key in before])
    committed = [OffsetCommitPartition(key, _new_offset(cluster, key, arguments)) for key in keys]
    request = OffsetCommitRequest(group_id, -1, "", None, tuple(committed))
    answer = _ask(cluster, group["coordinator"], request)
    if answer is None:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"group {group_id!r}")
    for key, error in answer.partitions:
        if error != ErrorCode.NONE:
            raise KafkaError(error, f"group {group_id!r}, {key}")
    return [
        {
            "topic": one.topic_partition.topic,
            "partition": one.topic_partition.partition,
            "offset": one.offset,
            "was": before.get((one.topic_partition.topic, one.topic_partition.partition)),
        }
        for one in committed
    ]


def _partitions_to_reset(
    cluster: Cluster, arguments: dict[str, Any], committed: list[TopicPartition]
) -> list[TopicPartition]:
    topic, number = arguments.get("topic"), arguments.get("partition")
    if topic is None:
        if number is not None:
            raise UsageError("partition needs a topic")
        if not committed:
            raise UsageError(f"group {arguments['group']!r} has no offsets; name a topic")
        return committed
    cluster.partition(topic, number or 0)  # raises a helpful error if it does not exist
    known = [key for key in cluster_state.partitions(cluster) if key.topic == topic]
    return known if number is None else [TopicPartition(topic, number)]


def _new_offset(cluster: Cluster, key: TopicPartition, arguments: dict[str, Any]) -> int:
    view = cluster.partition(key.topic, key.partition)
    if view.leader is None:
        raise NotThereYet(f"{key} has no leader, so its offsets are unknown; wait for one")
    start, end = view.log_start_offset, view.high_watermark
    if arguments.get("to") == "earliest":
        return start
    if "offset" in arguments:
        return min(max(int(arguments["offset"]), start), end)
    if "timestamp" in arguments:
        wanted = PageRequest(limit=1, timestamp=arguments["timestamp"])
        found = record_page(cluster, key, wanted, shown_bytes=0)["records"]
        return min(found[0]["offset"], end) if found else end
    return end


# -- transactions ------------------------------------------------------------------------------


def _all_transactions(cluster: Cluster, wanted: str | None = None) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    if not cluster.behaviour.transactions:
        return []
    for name in _coordinators(cluster):
        listed = _ask(cluster, name, ListTransactionsRequest())
        ids = () if listed is None else tuple(t.transactional_id for t in listed.transactions)
        ids = tuple(found_id for found_id in ids if wanted in (None, found_id))
        if not ids:
            continue
        described = _ask(cluster, name, DescribeTransactionsRequest(ids))
        for one in () if described is None else described.transactions:
            if one.error == ErrorCode.NONE:
                found[one.transactional_id] = {
                    "transactional_id": one.transactional_id,
                    "state": one.state,
                    "coordinator": name,
                    "producer_id": one.producer_id,
                    "producer_epoch": one.producer_epoch,
                    "timeout_ms": one.timeout_ms,
                    "start_time_ms": one.start_time_ms,
                    "partitions": [[key.topic, key.partition] for key in one.partitions],
                }
    return [found[transactional_id] for transactional_id in sorted(found)]


def _transaction(served: ServedCluster, arguments: dict[str, Any]) -> dict[str, Any]:
    wanted = arguments["transactional_id"]
    found = _all_transactions(served.cluster, wanted)
    if not found:
        known = [shown["transactional_id"] for shown in _all_transactions(served.cluster)]
        hint = did_you_mean(wanted, known)
        raise UsageError(f"there is no transactional id {wanted!r}{hint}")
    return found[0]


GROUP_OPERATIONS: tuple[Operation, ...] = (
    _GROUPS.get(
        "/groups",
        "consumer groups: state, members, committed offsets and lag",
        lambda served, _: _all_groups(served.cluster),
        gives="an array of groups",
    ),
    _GROUPS.get("/groups/{group}", "one group", _group, gives="the group"),
    _GROUPS.post(
        "/wait_for_group",
        "wait until a group is stable; status 409 if it is not in time",
        _wait_for_group,
        required("group", STRING),
        optional("members", COUNT, "how many it must have; any number without it"),
        WAIT,
        gives="the group",
    ),
    _GROUPS.post(
        "/reset_offsets",
        "commit other offsets for a group without members",
        _reset_offsets,
        required("group", STRING),
        optional("topic", STRING, "of these partitions; all that have offsets without it"),
        optional("partition", INDEX, "of the topic; all without it"),
        optional("to", choice("earliest", "latest"), "the start, or the end"),
        optional("offset", INDEX, "this one, or the nearest that there is"),
        optional("timestamp", INDEX, "the first at this time, in ms since 1970, or later"),
        gives="an array of partitions with the new offset and the one before",
    ),
    _GROUPS.delete("/groups/{group}", "delete a group without members", _delete_group),
    _TRANSACTIONS.get(
        "/transactions",
        "transactional ids: state, producer, partitions",
        lambda served, _: _all_transactions(served.cluster),
        gives="an array of transactions",
    ),
    _TRANSACTIONS.get(
        "/transactions/{transactional_id}",
        "one transactional id",
        _transaction,
        gives="the transaction",
    ),
)
