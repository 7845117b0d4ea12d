"""Automatic creation of topics whose metadata a client requests
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
    """Creates missing topics, on any broker."""

    def __init__(self, parts: AdminParts, topics: TopicAdmin) -> None:
        self._parts = parts
        self._topics = topics
        self._being_created: dict[str, None] = {}

    async def create(self, names: Iterable[str]) -> dict[str, ErrorCode]:
        """Create missing topics from this broker, and return the error to answer for each
        (docs/kafka/administration.md#metadata).

        The error is LEADER_NOT_AVAILABLE for a topic that was created or exists already, and
        UNKNOWN_TOPIC_OR_PARTITION for one that another request to this broker is creating. Kafka:
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
            results = await self._topics.create_in_zookeeper(
                [self.topic_for(name) for name in wanted]
            )
        finally:
            for name in wanted:
                del self._being_created[name]
        for result in results:
            is_there = result.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
            answers[result.name] = ErrorCode.LEADER_NOT_AVAILABLE if is_there else result.error
        return answers

    def taken_names(self) -> TakenNames:
        """Return the names of existing topics, to which ``check`` adds those of one request."""
        return TakenNames(self._parts.metadata.topics())

    def check(self, name: str, taken: TakenNames) -> ErrorCode:
        """Return NONE if a missing topic may be created, or the error that forbids it
        (docs/kafka/administration.md#metadata).

        Pass the same ``taken`` for all topics of a request, so that a topic that collides with an
        earlier one of the request is refused, too.
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
        """Return the topic to create, with the counts of an internal topic if it is one."""
        config = self._parts.config
        internal = internal_topic(name, config)
        if internal is not None:
            return internal
        return NewTopic(name, config["num.partitions"], config["default.replication.factor"])
