"""Admin operations of a cluster: requests to the controller, as an admin client sends them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ...protocol.admin import (
    PREFERRED,
    SET,
    TOPIC_RESOURCE,
    UNCLEAN,
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    ConfigResource,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    NewPartitions,
    NewTopic,
    OngoingReassignment,
)
from ...protocol.awaiting import Cancelled, Disconnected, RequestTimeout
from ...protocol.errors import ErrorCode, KafkaError, UsageError
from ...protocol.host import sleep
from ...protocol.names import broker_name
from ...protocol.values import Request, TopicPartition
from .. import arguments
from ..api_names import REQUESTS
from ..parameters.cluster_kinds import ASSIGNMENT, ELECTION, MOVES, REPLICA_LISTS, TOPIC_NAMES
from .roles import broker_process

if TYPE_CHECKING:
    from ...actors.broker.broker import Broker
    from ..running import RunningCluster

R = TypeVar("R")

_TIMEOUT_MS = 30000
_GRACE_MS = 2000
"""Extra wait for the answer of a controller that timed out, as the answer says what is missing."""
_RETRY_MS = 20


def _top_error(response: Any) -> ErrorCode:
    """Return the error of the whole response, or NOT_CONTROLLER if its first topic has that."""
    error = getattr(response, "error", None)
    if isinstance(error, ErrorCode):
        return error
    topics = getattr(response, "topics", ())
    if topics and topics[0].error == ErrorCode.NOT_CONTROLLER:
        return ErrorCode.NOT_CONTROLLER
    return ErrorCode.NONE


class AdminClient:
    """Asks the controller for changes and waits for them. Refusals raise ``KafkaError``.

    ``EmulatedCluster`` has the same methods for users and documents them.
    """

    def __init__(self, running: RunningCluster) -> None:
        self._running = running

    async def ask_controller(self, request: Any) -> Any:
        """Ask the active controller, looking it up again while it moves, as admin clients do."""
        admin = self._running.admin
        deadline_ms = admin.now_ms() + _TIMEOUT_MS + _GRACE_MS
        while True:
            controller = self._running.active_controller()
            remaining_ms = deadline_ms - admin.now_ms()
            if controller is not None and remaining_ms > 0:
                name = broker_name(controller.broker_id)
                try:
                    response = await admin.ask(name, request, remaining_ms)
                    if _top_error(response) != ErrorCode.NOT_CONTROLLER:
                        return response
                except Cancelled:
                    raise
                except (Disconnected, RequestTimeout):
                    pass
            if admin.now_ms() >= deadline_ms:
                raise KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"no active controller answered {type(request).__name__} "
                    f"within {_TIMEOUT_MS} ms",
                )
            await sleep(admin, _RETRY_MS)

    def request(self, request: Any) -> Any:
        """Return the controller's answer to a request, which is retried while it moves."""

        def ask() -> Coroutine[Any, Any, Any]:
            return self.ask_controller(request)

        return self._running.call(ask, _TIMEOUT_MS + 5000)

    def ask(self, broker: int | str, request: Request[R], timeout_s: float = 30) -> R:
        name = broker_process(self._running, broker).name
        if type(request) not in REQUESTS.values():
            right = "a request of fakekafka.protocol, such as data.MetadataRequest(('orders',))"
            arguments.refuse("request", request, right)
        timeout_ms = arguments.number("timeout_s", timeout_s, "seconds", above_zero=True) * 1000

        async def send() -> Any:
            if getattr(request, "acks", None) == 0:
                self._running.admin.send(name, request)
                return None
            return await self._running.admin.ask(name, request, timeout_ms)

        response: R = self._running.call(send, timeout_ms + _GRACE_MS)
        return response

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication_factor: int | None,
        config: Mapping[str, Any] | None,
        assignment: Mapping[int, Sequence[int]] | None,
    ) -> None:
        arguments.text("name", name)
        count = arguments.integer("partitions", partitions)
        factor = -1
        if replication_factor is not None:
            factor = arguments.integer("replication_factor", replication_factor)
        else:
            spec = next(iter(self._running.processes.values())).spec
            if not spec.behaviour.default_counts_for_new_topics:
                factor = spec.config["default.replication.factor"]
        overrides = arguments.topic_config(config)
        if assignment is not None:
            lists = ASSIGNMENT.check("assignment", assignment)
            known = list(self._running.processes)
            for number, replicas in lists.items():
                if replicas and not any(replica in known for replica in replicas):
                    raise UsageError(
                        f"assignment {list(replicas)} of {name}-{number} names no broker of the "
                        f"cluster; brokers are {known}"
                    )
            replica_lists = tuple((number, tuple(ids)) for number, ids in lists.items())
            topic = NewTopic(name, -1, -1, replica_lists, overrides)
        else:
            topic = NewTopic(name, count, factor, (), overrides)
        response = self.request(CreateTopicsRequest((topic,), _TIMEOUT_MS))
        _check_topics(response)
        self._wait_everywhere(lambda broker: broker.metadata_cache.contains_topic(name))

    def create_topics(self, names: Sequence[str], partitions: int, replication_factor: int) -> None:
        names = TOPIC_NAMES.check("names", names)
        count = arguments.integer("partitions", partitions)
        factor = arguments.integer("replication_factor", replication_factor)
        topics = tuple(NewTopic(name, count, factor) for name in names)
        _check_topics(self.request(CreateTopicsRequest(topics, _TIMEOUT_MS)))
        last = names[-1]
        self._wait_everywhere(lambda broker: broker.metadata_cache.contains_topic(last))

    def delete_topic(self, name: str) -> None:
        self.delete_topics([arguments.text("name", name)])

    def delete_topics(self, names: Sequence[str]) -> None:
        """Delete topics with one request and wait until no living broker knows any of them."""
        _check_topics(self.request(DeleteTopicsRequest(tuple(names), _TIMEOUT_MS)))

        def none_is_known(broker: Broker) -> bool:
            return not any(map(broker.metadata_cache.contains_topic, names))

        self._wait_everywhere(none_is_known)
        self._running.wait_until(lambda: self._deletion_ended(names))

    def _deletion_ended(self, topics: Sequence[str]) -> bool:
        """Return whether the deletion of topics that no broker knows any more has ended, or is
        suspended because a broker is down.

        Their znodes disappear a moment after the metadata.
        """
        if not all(process.is_alive for process in self._running.processes.values()):
            return True
        controller = self._running.active_controller()
        return controller is None or not any(
            topic in controller.context.topics.all_topics for topic in topics
        )

    def create_partitions(
        self, topic: str, count: int, assignment: Sequence[Sequence[int]] = ()
    ) -> None:
        arguments.text("topic", topic)
        count = arguments.integer("count", count)
        lists = tuple(map(tuple, REPLICA_LISTS.check("assignment", assignment)))
        request = CreatePartitionsRequest(
            (NewPartitions(topic, count, lists or None),), _TIMEOUT_MS
        )
        _check_topics(self.request(request))
        self._wait_everywhere(lambda broker: broker.metadata_cache.partition_count(topic) >= count)

    def alter_config(self, topic: str, config: Mapping[str, Any]) -> None:
        wanted = dict(arguments.topic_config(config))
        entries = tuple((key, SET, value) for key, value in wanted.items())
        resource = ConfigResource(TOPIC_RESOURCE, arguments.text("topic", topic))
        response = self.request(AlterConfigsRequest(((resource, entries),)))
        for _, error, message in response.results:
            if error != ErrorCode.NONE:
                raise KafkaError(error, message or f"topic {topic!r}")
        self._wait_everywhere(
            lambda broker: all(
                broker.dynamic_config.topic_config(topic).overrides.get(key) == value
                for key, value in wanted.items()
            )
        )

    def elect_leaders(
        self, election: str = "preferred", partitions: Sequence[tuple[str, int]] | None = None
    ) -> dict[TopicPartition, ErrorCode]:
        kind = {"preferred": PREFERRED, "unclean": UNCLEAN}[ELECTION.check("election", election)]
        wanted = None
        if partitions is not None:
            wanted = tuple(TopicPartition(*p) for p in arguments.partition_keys(partitions))
        response = self._request_accepted(ElectLeadersRequest(kind, wanted))
        return {partition: error for partition, error, _ in response.partitions}

    def reassign_partitions(self, targets: Mapping[tuple[str, int], Sequence[int] | None]) -> None:
        wanted = tuple(
            (TopicPartition(*key), None if ids is None else tuple(ids))
            for key, ids in MOVES.check("targets", targets).items()
        )
        response = self._request_accepted(AlterPartitionReassignmentsRequest(wanted))
        for partition, error, message in response.partitions:
            if error != ErrorCode.NONE:
                raise KafkaError(error, f"{partition}: {message or ''}")

    def reassignments(self) -> tuple[OngoingReassignment, ...]:
        return tuple(self._request_accepted(ListPartitionReassignmentsRequest(None)).reassignments)

    def _request_accepted(self, request: Any) -> Any:
        """Return the controller's answer; ``KafkaError`` if it refuses the request as a whole."""
        response = self.request(request)
        if response.error != ErrorCode.NONE:
            raise KafkaError(response.error)
        return response

    def _wait_everywhere(self, condition: Callable[[Broker], object]) -> None:
        """Wait until a condition holds at every serving broker."""

        def every_broker_is_updated() -> bool:
            brokers = self._running.living_brokers()
            return all(condition(broker) for broker in brokers if broker.state == "running")

        self._running.wait_until(every_broker_is_updated)


def _check_topics(response: Any) -> None:
    for result in response.topics:
        if result.error != ErrorCode.NONE:
            what = result.error_message
            if not what and result.error == ErrorCode.REQUEST_TIMED_OUT:
                what = f"not done within {_TIMEOUT_MS} ms; a partition may have no replica alive"
            raise KafkaError(result.error, f"topic {result.name!r}{(what and f': {what}') or ''}")
