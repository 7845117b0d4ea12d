"""The ``uniform`` assignor for members with different subscriptions (Kafka:
``UniformHeterogeneousAssignmentBuilder``).

Every member first keeps its partitions. The remaining partitions go to the members with the fewest.
Then partitions move to members that have at least two fewer than their owner, until no move
improves the balance.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol.groups import TopicIdPartitions

_Partition = tuple[str, int]


def assign_to_uneven(
    topics: Mapping[str, tuple[str, ...]],
    targets: Mapping[str, TopicIdPartitions],
    counts: Mapping[str, int],
) -> dict[str, TopicIdPartitions]:
    """Return target assignments by member id.

    ``topics`` and the present ``targets`` are by member id, partition ``counts`` by topic id.
    """
    balance = _Balance(topics, counts)
    if not balance.subscribers:
        return {}
    balance.keep(targets)
    balance.assign_remaining()
    balance.move_until_balanced()
    return balance.result()


class _Balance:
    """An assignment under construction."""

    def __init__(self, topics: Mapping[str, tuple[str, ...]], counts: Mapping[str, int]) -> None:
        self._counts = counts
        self.subscribers: dict[str, list[str]] = {}
        """Subscribed members by topic id."""
        for member_id, topic_ids in topics.items():
            for topic_id in topic_ids:
                self.subscribers.setdefault(topic_id, []).append(member_id)
        self._owner: dict[_Partition, str] = {}
        self._sizes = dict.fromkeys(topics, 0)
        self._max_sizes = {m: sum(counts[t] for t in topic_ids) for m, topic_ids in topics.items()}
        """Maximum number of partitions that each member could have."""
        self._moves: dict[_Partition, tuple[str, str]] = {}
        """Moved partitions, with the member each came from and the member it went to."""

    def keep(self, targets: Mapping[str, TopicIdPartitions]) -> None:
        """Let members keep the partitions of topics to which they still subscribe."""
        for member_id, partitions in targets.items():
            for topic_id, numbers in partitions.items():
                if member_id in self.subscribers.get(topic_id, ()):
                    for number in numbers:
                        self._assign((topic_id, number), member_id)

    def assign_remaining(self) -> None:
        """Assign each remaining partition to the subscriber with the fewest partitions."""
        for partition in self._ranked(self.subscribers):
            if partition not in self._owner:
                self._assign(partition, min(self.subscribers[partition[0]], key=self._rank))

    def move_until_balanced(self) -> None:
        """Move partitions until no move improves the balance."""
        movable = self._ranked(
            [t for t, subscribers in self.subscribers.items() if len(subscribers) > 1]
        )
        has_moved = True
        while has_moved:
            has_moved = False
            for partition in movable:
                subscribers = self.subscribers[partition[0]]
                owner = self._owner[partition]
                if any(self._sizes[owner] > self._sizes[other] + 1 for other in subscribers):
                    self._move(partition, min(subscribers, key=self._rank))
                    has_moved = True

    def _move(self, partition: _Partition, destination: str) -> None:
        """Move a partition, or rather one of its topic that was moved the other way before."""
        owner = self._owner[partition]
        for other, move in self._moves.items():
            if (
                other[0] == partition[0]
                and move == (destination, owner)
                and self._owner[other] == owner
            ):
                partition = other
                break
        source = self._moves.pop(partition, (owner, ""))[0]
        if source != destination:
            self._moves[partition] = (source, destination)
        self._sizes[owner] -= 1
        self._assign(partition, destination)

    def _assign(self, partition: _Partition, member_id: str) -> None:
        self._owner[partition] = member_id
        self._sizes[member_id] += 1

    def _rank(self, member_id: str) -> tuple[bool, int, str]:
        """Return a sort key: fewest partitions first, members that can have no more last."""
        size = self._sizes[member_id]
        return size >= self._max_sizes[member_id], size, member_id

    def _ranked(self, topic_ids: Mapping[str, object] | list[str]) -> list[_Partition]:
        """Return partitions, those of topics with the most partitions per subscriber first."""
        partitions = [(t, number) for t in sorted(topic_ids) for number in range(self._counts[t])]

        def rank(partition: _Partition) -> tuple[float, int, int]:
            count, subscribers = self._counts[partition[0]], len(self.subscribers[partition[0]])
            return -count / subscribers, subscribers, partition[1]

        return sorted(partitions, key=rank)

    def result(self) -> dict[str, TopicIdPartitions]:
        """Return the assignments by member id."""
        found: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in self._sizes}
        for (topic_id, number), member_id in sorted(self._owner.items()):
            found[member_id].setdefault(topic_id, []).append(number)
        return {
            member_id: {topic_id: tuple(numbers) for topic_id, numbers in by_topic.items()}
            for member_id, by_topic in found.items()
        }
