"""Emptying a cluster between two tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..protocol.admin import CreateTopicsRequest, DeleteTopicsRequest
from ..protocol.data import FindCoordinatorRequest, MetadataRequest
from ..protocol.errors import ErrorCode, KafkaError, NotThereYet, UsageError
from ..protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ..protocol.znode_paths import (
    BROKERS,
    CLUSTER_ID,
    CONFIG,
    CONTROLLER,
    CONTROLLER_EPOCH,
    DELETE_TOPICS,
    FEATURE,
    PRODUCER_ID_BLOCK,
    TOPICS,
    USERS,
    config_entity_path,
    persistent_paths,
)
from ..protocol.znode_payloads import decode_config, decode_topic
from .handles.admin import AdminClient
from .handles.broker import BrokerHandle
from .handles.network import NetworkHandle
from .handles.partitions import Partitions
from .handles.zookeeper import ZooKeeperHandle

if TYPE_CHECKING:
    from ..actors.broker.process import BrokerProcess
    from ..actors.delivery import Delivery
    from .running import RunningCluster

_TIMEOUT_S = 30
_DELETION_MS = 30_000
_ROUNDS_MAX = 5
"""Maximum number of deletions of topics that clients create again at once."""
_DELETED = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.REQUEST_TIMED_OUT)
_USERS = f"{CONFIG}/{USERS}/"
_KEPT_PREFIXES = (
    "/brokers/ids/",
    "/brokers/seqid",
    "/brokers/topics/",
    "/delegation_token",
    "/kafka-acl",
)


def reset(running: RunningCluster, restore_security: Callable[[], None]) -> None:
    """Empty the cluster as ``Cluster.reset`` describes.

    ``restore_security`` restores the configured users and removes all others.
    """
    running.require_waiting()
    _end_interventions(running)
    for server_id, zookeeper in running.zookeepers.items():
        server = ZooKeeperHandle(running).server(server_id)
        if server.clock_rate != 1:
            server.set_clock_rate(1)
        if not zookeeper.is_alive:
            server.start()
    for process in running.processes.values():
        _restore_broker(running, process)

    def is_settled() -> bool:
        return running.is_settled

    running.wait_until(is_settled, _TIMEOUT_S)
    _await_notifications(running)
    _forget_dynamic_configs(running)
    _require_deletable(running)
    _delete_topics(running)
    restore_security()
    _remove_tokens(running)
    _await_notifications(running)
    _forget_znodes(running)
    _forget_past(running)


def _await_notifications(running: RunningCluster) -> None:
    """Wait until every broker has applied all change notifications.

    A broker that applied one later would bring back what the reset removes.
    """
    zookeeper = ZooKeeperHandle(running)

    def every_broker_has_heard_of_every_change() -> bool:
        return all(
            followed.has_applied(zookeeper.children(followed.path))
            for broker in running.living_brokers()
            for followed in broker.followed
        )

    running.wait_until(every_broker_has_heard_of_every_change, _TIMEOUT_S)


def _delete_topics(running: RunningCluster) -> None:
    """Delete every topic; ``UsageError`` if clients keep creating some again."""
    creations = Creations(running)
    network = running.runtime.network
    running.in_process(None, lambda: network.observe(creations.note_creation))
    try:
        for _ in range(_ROUNDS_MAX):
            topics = Partitions(running).topics()
            _delete(running, topics)
            recreated = Partitions(running).topics()
            if not recreated:
                return
    finally:
        running.in_process(None, lambda: network.stop_observing(creations.note_creation))
    creators = "; ".join(f"{topic!r} {creations.creator(topic)}" for topic in recreated)
    raise UsageError(
        f"reset deleted every topic {_ROUNDS_MAX} times, and each time clients created some "
        f"again: {creators}. Close the clients of the test before, or let the cluster have "
        "config={'auto.create.topics.enable': False}"
    )


def _delete(running: RunningCluster, topics: Sequence[str]) -> None:
    """Delete topics, and wait until no deletion is in progress.

    The wait is not for the topics to be unknown, as clients may have created them again by then.
    """
    if topics:
        response = AdminClient(running).request(DeleteTopicsRequest(tuple(topics), _DELETION_MS))
        for result in response.topics:
            if result.error not in _DELETED:
                raise KafkaError(result.error, f"reset cannot delete {result.name!r}")

    zookeeper = ZooKeeperHandle(running)

    def every_topic_is_deleted() -> bool:
        controller = running.active_controller()
        if controller is None or controller.context.topics.topics_to_be_deleted:
            return False
        # A controller that was just elected may not have read yet which topics it has to delete.
        return not zookeeper.children(DELETE_TOPICS)

    # Topics whose deletion began before the reset are not listed, but may still be in progress.
    running.wait_until(every_topic_is_deleted, _TIMEOUT_S)


def _remove_tokens(running: RunningCluster) -> None:
    brokers = running.living_brokers()
    if not any(broker.security.tokens.all() for broker in brokers):
        return
    broker = brokers[0]
    running.in_process(
        broker.process, lambda: broker.start_task(broker.security.tokens.remove_all())
    )

    def no_broker_knows_a_token() -> bool:
        return not any(broker.security.tokens.all() for broker in running.living_brokers())

    running.wait_until(no_broker_knows_a_token)


def _forget_znodes(running: RunningCluster) -> None:
    """Delete the znodes that a new cluster does not have, and restart producer ids at 0."""
    zookeeper = ZooKeeperHandle(running)
    flags = next(iter(running.processes.values())).spec.behaviour
    kept = {CONTROLLER, CONTROLLER_EPOCH, CLUSTER_ID, FEATURE, *persistent_paths(flags)}
    kept |= {path.rpartition("/")[0] for path in kept}
    tree = zookeeper.tree()
    kept |= {config_entity_path(TOPICS, topic) for topic in zookeeper.children("/brokers/topics")}
    unexpected = [
        path for path, data in tree.items() if path not in kept and not _is_kept(path, data)
    ]
    for path in sorted(unexpected, reverse=True):  # children before their parents
        with contextlib.suppress(UsageError):  # it is gone already, or just got a child
            zookeeper.delete(path)
    if flags.idempotent_producers and zookeeper.get(PRODUCER_ID_BLOCK):
        zookeeper.set(PRODUCER_ID_BLOCK, None)


def _is_kept(path: str, data: bytes | None) -> bool:
    """Return whether a znode stays: brokers need it, or have reset its content themselves."""
    if path.startswith(_USERS):
        return bool(data and decode_config(data))  # SCRAM credentials of a configured user
    return path == "/" or path.startswith(_KEPT_PREFIXES)


def _forget_past(running: RunningCluster) -> None:
    """Make every broker forget its past, as if it belonged to a new cluster."""
    for broker in running.living_brokers():
        running.in_process(broker.process, broker.forget_past)

    def groups_are_forgotten() -> bool:
        return not any(
            broker.coordinators.has_groups and broker.groups.is_loading
            for broker in running.living_brokers()
        )

    running.wait_until(groups_are_forgotten)


def requested_topics(message: Any) -> Sequence[str]:
    """Return the topics that a request creates, or that brokers may auto-create for it."""
    if isinstance(message, MetadataRequest):
        return (message.topics or ()) if message.allow_auto_topic_creation else ()
    if isinstance(message, CreateTopicsRequest):
        return [topic.name for topic in message.topics]
    if isinstance(message, FindCoordinatorRequest):
        return (TRANSACTIONS_TOPIC if message.key_type else OFFSETS_TOPIC,)
    return ()


class Creations:
    """Observes which clients send requests that create topics."""

    def __init__(self, running: RunningCluster) -> None:
        self._last_requests: dict[str, str] = {}
        """Topic to a description of the last request that may have created it."""

    def note_creation(self, delivery: Delivery) -> None:
        """Note the sender of a message that may create topics; called with every message."""
        message = delivery.message
        names = requested_topics(message)
        if not names:
            return
        context = delivery.context
        client_id = getattr(context, "client_id", "")
        description = (
            f"by {type(message).__name__} of client {client_id!r} ({delivery.sender.name})"
        )
        self._last_requests.update(dict.fromkeys(names, description))

    def creator(self, topic: str) -> str:
        """Return a description of the request that may have created a topic."""
        return self._last_requests.get(topic, "by a request that was under way before")


def _end_interventions(running: RunningCluster) -> None:
    network, handle = running.runtime.network, NetworkHandle(running)
    running.in_process(None, network.remove_watchers)
    handle.heal()
    handle.release()
    running.in_process(None, network.clear_link_latencies)
    running.in_process(None, network.clear_bandwidths)
    handle.latency(0)


def _restore_broker(running: RunningCluster, process: BrokerProcess) -> None:
    handle = BrokerHandle(running, process)
    if handle.is_paused:
        handle.resume()
    if handle.clock_rate != 1:
        handle.set_clock_rate(1)
    if handle.clock_shift_ms:
        handle.shift_clock(-handle.clock_shift_ms)
    broker, disk = process.broker, process.spec.disk
    has_offline_replicas = broker is not None and broker.replica_manager.offline_count > 0
    if disk.offline_dirs or has_offline_replicas:  # offline until the broker restarts
        if handle.is_alive:
            handle.shutdown()
        for index in range(len(disk.directories)):
            handle.repair_log_dir(index)
    if not handle.is_alive:
        handle.start()


def _forget_dynamic_configs(running: RunningCluster) -> None:
    """Undo the dynamic configurations of single brokers and the cluster-wide ones.

    They are looked up in ZooKeeper, as brokers may not have read them yet.
    """
    zookeeper = ZooKeeperHandle(running)
    prefix = f"{CONFIG}/{BROKERS}/"

    def is_any_stored() -> bool:
        tree = zookeeper.tree().items()
        return any(path.startswith(prefix) and decode_config(data) for path, data in tree)

    if not is_any_stored():
        return
    for process in running.processes.values():
        running.in_process(process.process, partial(_start_forgetting_configs, process))

    def no_broker_has_dynamic_configs() -> bool:
        return not is_any_stored() and not any(
            broker.config.dynamic_of_broker or broker.config.dynamic_default
            for broker in running.living_brokers()
        )

    running.wait_until(no_broker_has_dynamic_configs)


def _start_forgetting_configs(process: BrokerProcess) -> None:
    broker = process.broker
    if broker is not None:
        broker.start_task(broker.dynamic_config.forget_all())


def _require_deletable(running: RunningCluster) -> None:
    """Raise ``UsageError`` for replicas on brokers that the cluster does not have."""
    zookeeper, broker_ids = ZooKeeperHandle(running), list(running.processes)
    for topic in zookeeper.children("/brokers/topics"):
        try:
            stored = decode_topic(zookeeper.get(f"/brokers/topics/{topic}"))
        except NotThereYet:
            continue  # its deletion has just ended
        for partition, assigned in stored.assignment:
            unexpected = [b for b in assigned.replicas if b not in broker_ids]
            if unexpected:
                raise UsageError(
                    f"reset cannot delete {topic!r}: partition {partition} has replicas at "
                    f"{unexpected}, and brokers are {broker_ids}; start a new cluster"
                )
