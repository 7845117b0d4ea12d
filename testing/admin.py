"""Admin operations of the API: requests to the controller, as an admin client sends them."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from ..actors.channels import broker_name, sleep
from ..protocol.admin import (
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
from ..protocol.awaiting import Cancelled, Disconnected, RequestTimeout
from ..protocol.errors import ErrorCode, KafkaError, UsageError
from ..protocol.values import TopicPartition
from .cluster_parts import ClusterParts

_TIMEOUT_MS = 30000
_RETRY_MS = 20


def _top_error(response: Any) -> ErrorCode:
    """The error that says the wrong broker was asked, wherever the response carries it."""
    error = getattr(response, "error", None)
    if isinstance(error, ErrorCode):
        return error
    topics = getattr(response, "topics", ())
    if topics and topics[0].error == ErrorCode.NOT_CONTROLLER:
        return ErrorCode.NOT_CONTROLLER
    return ErrorCode.NONE


class AdminOperations(ClusterParts):
    """Mixed into ``Cluster`` and ``Simulation``. Refusals raise ``KafkaError``."""

    async def _ask_controller(self, request: Any) -> Any:
        """Ask the active controller, finding it again while it moves (as admin clients do)."""
        admin = self._admin
        deadline_ms = admin.now_ms() + _TIMEOUT_MS
        while True:
            controller_id = self._believed_controller()
            left_ms = deadline_ms - admin.now_ms()
            if controller_id is not None and left_ms > 0:
                try:
                    response = await admin.ask(broker_name(controller_id), request, left_ms)
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

    def _believed_controller(self) -> int | None:
        return self.controller.id

    def _ask(self, request: Any) -> Any:
        def ask() -> Coroutine[Any, Any, Any]:
            return self._ask_controller(request)

        return self.call(ask, _TIMEOUT_MS + 5000)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, Any] | None = None,
        assignment: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """Create a topic and wait until every partition has a leader.

        ``assignment`` maps partition numbers to broker ids, given instead of the two counts;
        ``replication_factor`` is otherwise ``default.replication.factor``.
        """
        overrides = tuple((key, str(value)) for key, value in (config or {}).items())
        if assignment is not None:
            lists = tuple((p, tuple(replicas)) for p, replicas in assignment.items())
            topic = NewTopic(name, -1, -1, lists, overrides)
        else:
            factor = -1 if replication_factor is None else replication_factor
            topic = NewTopic(name, partitions, factor, (), overrides)
        response = self._ask(CreateTopicsRequest((topic,), _TIMEOUT_MS))
        _check_topics(response)
        self._wait_everywhere(lambda broker: broker.metadata_cache.contains_topic(name))

    def create_topics(
        self, names: Sequence[str], partitions: int = 1, replication_factor: int = 1
    ) -> None:
        """Create many topics of one shape with one request."""
        topics = tuple(NewTopic(name, partitions, replication_factor) for name in names)
        _check_topics(self._ask(CreateTopicsRequest(topics, _TIMEOUT_MS)))
        last = names[-1]
        self._wait_everywhere(lambda broker: broker.metadata_cache.contains_topic(last))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until no living broker knows it."""
        _check_topics(self._ask(DeleteTopicsRequest((name,), _TIMEOUT_MS)))
        self._wait_everywhere(lambda broker: not broker.metadata_cache.contains_topic(name))
        self.wait_until(lambda: self._deletion_ended(name))

    def _deletion_ended(self, topic: str) -> bool:
        """Whether a topic that no broker knows any more has gone, or its deletion is suspended.

        With a broker down it stays suspended; else its znodes go a moment after the metadata.
        """
        if not all(process.is_alive for process in self.processes.values()):
            return True
        controller = self.controller._active()
        return controller is None or topic not in controller.context.all_topics

    def create_partitions(
        self,
        topic: str,
        count: int,
        assignment: Sequence[Sequence[int]] = (),
    ) -> None:
        """Grow a topic to ``count`` partitions."""
        lists = tuple(tuple(replicas) for replicas in assignment)
        request = CreatePartitionsRequest((NewPartitions(topic, count, lists),), _TIMEOUT_MS)
        _check_topics(self._ask(request))
        self._wait_everywhere(lambda broker: broker.metadata_cache.partition_count(topic) >= count)

    def alter_config(self, topic: str, config: Mapping[str, Any]) -> None:
        """Set configurations of a topic, leaving its others as they are."""
        entries = tuple((key, SET, str(value)) for key, value in config.items())
        resource = ConfigResource(TOPIC_RESOURCE, topic)
        response = self._ask(AlterConfigsRequest(((resource, entries),)))
        for _, error, message in response.results:
            if error != ErrorCode.NONE:
                raise KafkaError(error, message or f"topic {topic!r}")
        wanted = {key: str(value) for key, value in config.items()}
        self._wait_everywhere(
            lambda broker: all(
                broker.dynamic_config.topic_config(topic).overrides.get(key) == value
                for key, value in wanted.items()
            )
        )

    def elect_leaders(
        self,
        election: str = "preferred",
        partitions: Sequence[tuple[str, int]] | None = None,
    ) -> dict[TopicPartition, ErrorCode]:
        """Run a ``preferred`` or ``unclean`` election; per partition its error code."""
        kinds = {"preferred": PREFERRED, "unclean": UNCLEAN}
        if election not in kinds:
            raise UsageError(f"election must be 'preferred' or 'unclean', not {election!r}")
        wanted = None if partitions is None else tuple(TopicPartition(*p) for p in partitions)
        response = self._ask(ElectLeadersRequest(kinds[election], wanted))
        if response.error != ErrorCode.NONE:
            raise KafkaError(response.error)
        return {partition: error for partition, error, _ in response.partitions}

    def reassign_partitions(self, targets: Mapping[tuple[str, int], Sequence[int] | None]) -> None:
        """Start moving partitions to other brokers; None cancels a move."""
        wanted = tuple(
            (TopicPartition(*key), None if target is None else tuple(target))
            for key, target in targets.items()
        )
        response = self._ask(AlterPartitionReassignmentsRequest(wanted))
        if response.error != ErrorCode.NONE:
            raise KafkaError(response.error)
        for partition, error, message in response.partitions:
            if error != ErrorCode.NONE:
                raise KafkaError(error, f"{partition}: {message or ''}")

    def reassignments(self) -> tuple[OngoingReassignment, ...]:
        """Moves that are under way."""
        response = self._ask(ListPartitionReassignmentsRequest(None))
        if response.error != ErrorCode.NONE:
            raise KafkaError(response.error)
        return tuple(response.reassignments)

    def _wait_everywhere(self, condition: Any) -> None:
        """Wait until a condition holds at every serving broker."""

        def holds() -> bool:
            return all(
                condition(process.broker)
                for process in self.processes.values()
                if process.broker is not None and process.broker.state == "running"
            )

        self.wait_until(holds)


def _check_topics(response: Any) -> None:
    for result in response.topics:
        if result.error != ErrorCode.NONE:
            raise KafkaError(result.error, f"topic {result.name!r}: {result.error_message or ''}")
