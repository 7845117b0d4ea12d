"""Checks and results that the topic APIs share
(docs/kafka/topics.md#creation, docs/kafka/administration.md#topics)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from ...protocol.admin import NewTopic, TopicResult
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour

Assignment: TypeAlias = dict[int, tuple[int, ...]]
"""Replicas by partition number."""


def validate_assignment(
    assignment: Mapping[int, Sequence[int]], may_have_gaps: bool = False, map_name: str = "HashMap"
) -> None:
    """Check a new topic's manual assignment; raises ``KafkaError`` (INVALID_REPLICA_ASSIGNMENT).

    Unknown brokers are allowed, as Kafka with ZooKeeper does not check them.
    """
    if len({len(replicas) for replicas in assignment.values()}) != 1:
        raise invalid_assignment_error("All partitions should have the same number of replicas")
    for replicas in assignment.values():
        if len(set(replicas)) != len(replicas):
            shown = _as_scala(assignment, map_name)
            raise invalid_assignment_error(f"Duplicate replica assignment found: {shown}")
    if not may_have_gaps and sorted(assignment) != list(range(len(assignment))):
        raise invalid_assignment_error(
            "partitions should be a consecutive 0-based integer sequence"
        )


def _as_scala(assignment: Mapping[int, Sequence[int]], map_name: str) -> str:
    """Return an assignment as Kafka's message prints it."""
    entries = [
        f"{number} -> ArrayBuffer({', '.join(map(str, replicas))})"
        for number, replicas in sorted(assignment.items())
    ]
    return f"{map_name}({', '.join(entries)})"


def validate_added(
    lists: Sequence[Sequence[int]],
    existing: Mapping[int, Sequence[int]],
    increment: int,
    broker_ids: Sequence[int],
) -> Assignment:
    """Check and return a manual assignment of added partitions; raises ``KafkaError``."""
    unknown = dict.fromkeys(r for replicas in lists for r in replicas if r not in broker_ids)
    if unknown:
        names = ", ".join(map(str, unknown))
        raise invalid_assignment_error(f"Unknown broker(s) in replica assignment: {names}.")
    if len(lists) != increment:
        raise invalid_assignment_error(
            f"Increasing the number of partitions by {increment} but {len(lists)} assignments "
            "provided."
        )
    if 0 not in existing:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Unexpected existing replica assignment, partition id 0 is missing",
        )
    first = len(existing)
    added = {first + position: tuple(replicas) for position, replicas in enumerate(lists)}
    for number, replicas in added.items():
        if not replicas:
            raise invalid_assignment_error(
                f"Cannot have replication factor of 0 for partition id {number}."
            )
        if len(set(replicas)) != len(replicas):
            raise invalid_assignment_error(
                "Duplicate brokers not allowed in replica assignment: "
                f"{', '.join(map(str, replicas))} for partition id {number}."
            )
    _check_factor(len(existing[0]), added)
    return added


def _check_factor(factor: int, added: Assignment) -> None:
    differing = {n: len(replicas) for n, replicas in added.items() if len(replicas) != factor}
    if differing:
        raise invalid_assignment_error(
            f"Inconsistent replication factor between partitions, partition 0 has {factor} while "
            f"partitions [{', '.join(map(str, differing))}] have replication factors "
            f"[{', '.join(map(str, differing.values()))}], respectively."
        )


class PartitionAllowance:
    """Number of partitions and replicas that one request may still create.

    Kafka with ZooKeeper has no limit and stays busy until it is done. A KRaft controller has this
    limit (``ReplicationControlManager`` of 3.9, ``MAX_PARTITIONS_PER_BATCH``).
    """

    _REPLICAS_PER_PARTITION = 10

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._partitions = limit
        self._replicas = limit * self._REPLICAS_PER_PARTITION

    def take(self, partitions: int, lists: Iterable[Sequence[int]] = ()) -> None:
        """Use part of the allowance; raises ``KafkaError`` (POLICY_VIOLATION) if it is exceeded."""
        replicas = sum(map(len, lists))
        if partitions > self._partitions or replicas > self._replicas:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                "Excessively large number of partitions per request: "
                f"max.partitions.per.request is {self._limit}, with "
                f"{self._REPLICAS_PER_PARTITION} replicas each.",
            )
        self._partitions -= max(partitions, 0)
        self._replicas -= replicas


def check_count(wanted: int, current: int) -> None:
    if wanted == current:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partitions.")
    if wanted < current:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {current} partitions, which is higher than the requested "
            f"{wanted}.",
        )


def invalid_assignment_error(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def unknown_topic_error(name: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def duplicate_topic_error() -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic.")


def duplicate_names(names: Sequence[str]) -> frozenset[str]:
    seen: set[str] = set()
    repeated: set[str] = set()
    for name in names:
        (repeated if name in seen else seen).add(name)
    return frozenset(repeated)


def split_duplicates(
    topics: Sequence[NewTopic], client_id: str, behaviour: Behaviour
) -> tuple[Sequence[NewTopic], list[TopicResult]]:
    """Return (topics named once, a refusal of each topic named twice), as in old releases."""
    if behaviour.create_topics_generated:
        return topics, []
    repeated = sorted(duplicate_names([topic.name for topic in topics]))
    text = (
        f"Create topics request from client `{client_id}` contains multiple entries for the "
        f"following topics: {','.join(repeated)}"
    )
    refusals = [TopicResult(name, ErrorCode.INVALID_REQUEST, text) for name in repeated]
    return [topic for topic in topics if topic.name not in repeated], refusals


def not_controller(names: Sequence[str], message: str | None = None) -> tuple[TopicResult, ...]:
    return tuple(TopicResult(name, ErrorCode.NOT_CONTROLLER, message) for name in names)


def error_results(
    requested: Sequence[tuple[str | None, str]], error: ErrorCode
) -> tuple[TopicResult, ...]:
    return tuple(TopicResult(name or "", error, None, topic_id) for name, topic_id in requested)


def with_timeout_error(result: TopicResult, is_late: bool) -> TopicResult:
    if result.error != ErrorCode.NONE or not is_late:
        return result
    return TopicResult(result.name, ErrorCode.REQUEST_TIMED_OUT, None, result.topic_id)


def all_finished(
    waiting: list[TopicPartition], is_done: Callable[[TopicPartition], bool]
) -> Callable[[], bool]:
    """Return a predicate that removes finished partitions from ``waiting``, and is true once none
    is left."""

    def all_done() -> bool:
        while waiting and is_done(waiting[-1]):
            waiting.pop()
        return not waiting

    return all_done
