"""Checks of commits and fetches of offsets in a group of the consumer protocol (Kafka:
``ConsumerGroup.validateOffsetCommit``, ``validateOffsetFetch``)."""

from __future__ import annotations

from ...protocol.errors import ErrorCode
from .group import ConsumerGroup
from .member import ConsumerMember

FIRST_COMMIT_VERSION = 9
"""The version of OffsetCommit from which on clients know STALE_MEMBER_EPOCH."""
_NONE = ErrorCode.NONE


def commit_refusal(
    group: ConsumerGroup, member_id: str, epoch: int, api_version: int | None
) -> ErrorCode:
    """Why a commit is refused; ``api_version`` is None for one in a transaction."""
    if epoch < 0 and not group.members:
        return _NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if api_version is not None and member.classic is None and api_version < FIRST_COMMIT_VERSION:
        return ErrorCode.UNSUPPORTED_VERSION
    error = _epoch_error(member, epoch)
    if api_version is None and error is ErrorCode.STALE_MEMBER_EPOCH:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def fetch_refusal(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """Why a fetch is refused; whoever names neither member nor epoch may fetch."""
    if member_id is None and epoch < 0:
        return _NONE
    member = group.members.get(member_id or "")
    return ErrorCode.UNKNOWN_MEMBER_ID if member is None else _epoch_error(member, epoch)


def _epoch_error(member: ConsumerMember, epoch: int) -> ErrorCode:
    if epoch == member.member_epoch:
        return _NONE
    if member.classic is None:
        return ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.ILLEGAL_GENERATION
