"""The next step of a member towards its target assignment: it first revokes partitions that are no
longer in the target, then receives those that are free (Kafka: ``CurrentAssignmentBuilder``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...protocol.groups import TopicIdPartitions
from .member import ConsumerMember, MemberState

Owned = Iterable[tuple[str, tuple[int, ...]]]


def reconciled(
    member: ConsumerMember,
    target_epoch: int,
    target: TopicIdPartitions,
    is_free: Callable[[str, int], bool],
    owned: Owned | None,
) -> ConsumerMember:
    """Return the member after its next step, or the same member if it has to wait.

    ``is_free`` returns whether no member holds a partition. ``owned`` are the partitions that the
    member reports as owned, None if it does not report them.
    """
    if member.state is MemberState.STABLE:
        if member.member_epoch == target_epoch:
            return member
        epoch = member.member_epoch
    elif member.state is MemberState.UNREVOKED_PARTITIONS:
        if _may_own_any(owned, member.pending_revocation):
            return member
        epoch = member.member_epoch + 1
    else:
        epoch = member.member_epoch
    kept: TopicIdPartitions = {}
    revoked: TopicIdPartitions = {}
    newly_assigned: TopicIdPartitions = {}
    is_waiting_for_partitions = False
    for topic_id in sorted({*target, *member.assigned}):
        wanted, assigned = target.get(topic_id, ()), member.assigned.get(topic_id, ())
        _put(kept, topic_id, [number for number in assigned if number in wanted])
        _put(revoked, topic_id, [number for number in assigned if number not in wanted])
        missing = [number for number in wanted if number not in assigned]
        free = [number for number in missing if is_free(topic_id, number)]
        is_waiting_for_partitions = is_waiting_for_partitions or len(free) < len(missing)
        _put(newly_assigned, topic_id, free)
    if revoked and _may_own_any(owned, revoked):
        return member.with_member_epoch(epoch)._replace(
            state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=revoked
        )
    state = MemberState.UNRELEASED_PARTITIONS if is_waiting_for_partitions else MemberState.STABLE
    return member.with_member_epoch(target_epoch)._replace(
        state=state, assigned=union(kept, newly_assigned), pending_revocation={}
    )


def _put(partitions: TopicIdPartitions, topic_id: str, numbers: list[int]) -> None:
    if numbers:
        partitions[topic_id] = tuple(numbers)


def union(one: TopicIdPartitions, other: TopicIdPartitions) -> TopicIdPartitions:
    """Return the union of two sets of partitions."""
    return {
        topic_id: tuple(sorted({*one.get(topic_id, ()), *other.get(topic_id, ())}))
        for topic_id in sorted({*one, *other})
    }


def is_subset(owned: Owned | None, partitions: TopicIdPartitions) -> bool:
    """Return whether the reported partitions are all among these; False if none are reported."""
    return owned is not None and all(
        number in partitions.get(topic_id, ()) for topic_id, numbers in owned for number in numbers
    )


def _may_own_any(owned: Owned | None, partitions: TopicIdPartitions) -> bool:
    """Return whether a member may still own some of these; True if it does not report any."""
    return owned is None or any(
        number in partitions.get(topic_id, ()) for topic_id, numbers in owned for number in numbers
    )
