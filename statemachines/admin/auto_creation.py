"""Topics created because a client asked for their metadata
(docs/kafka/administration.md#metadata)."""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.admin import NewTopic
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.internal_topics import internal_topic
from ...protocol.topic_names import TakenNames, validate_topic_name
from .parts import AdminParts
from .topics import TopicAdmin


class AutoCreation:
    """Creation of missing topics, from any broker."""

    def __init__(self, parts: AdminParts, topics: TopicAdmin) -> None:
        self._parts = parts
        self._topics = topics
        self._being_created: dict[str, None] = {}

    async def create(self, names: Iterable[str]) -> dict[str, ErrorCode]:
        """Create missing topics from this very broker; what to answer for each
        (docs/kafka/administration.md#metadata).

        LEADER_NOT_AVAILABLE is the answer for what was created or is there already, and
        UNKNOWN_TOPIC_OR_PARTITION while another request of this broker creates it. Kafka's
        ``DefaultAutoTopicCreationManager.createTopicsInZk``.
        """
        answers: dict[str, ErrorCode] = {}
        taken = self.taken_names()
        for name in names:
            answers[name] = (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if name in self._being_created
                else self.check(name, taken)
            )
        wanted = [name for name, error in answers.items() if error == ErrorCode.NONE]
        self._being_created.update(dict.fromkeys(wanted))
        try:
            results = await self._topics.create_here([self.topic_for(name) for name in wanted])
        finally:
            for name in wanted:
                del self._being_created[name]
        for result in results:
            is_there = result.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
            answers[result.name] = ErrorCode.LEADER_NOT_AVAILABLE if is_there else result.error
        return answers

    def taken_names(self) -> TakenNames:
        """The topics there are; those of one request are added by ``check``."""
        return TakenNames(self._parts.metadata.topics())

    def check(self, name: str, taken: TakenNames) -> ErrorCode:
        """Return whether a missing topic may be created (docs/kafka/administration.md#metadata).

        A topic that collides with one earlier in the same request is refused as well: ``taken``
        is the same for all of a request.
        """
        try:
            validate_topic_name(name, self._parts.behaviour)
        except KafkaError as error:
            return error.code
        if taken.colliding(name) is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if self.topic_for(name).replication_factor > len(self._parts.metadata.alive_brokers()):
            return ErrorCode.INVALID_REPLICATION_FACTOR
        taken.add(name)
        return ErrorCode.NONE

    def topic_for(self, name: str) -> NewTopic:
        """The topic that is created for a missing one: internal topics have their own shape."""
        config = self._parts.config
        internal = internal_topic(name, config)
        if internal is not None:
            return internal
        return NewTopic(name, config["num.partitions"], config["default.replication.factor"])
