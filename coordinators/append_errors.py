"""Errors that a coordinator returns if its record could not be appended to the internal topic.

Offset commits, groups and transactions share this mapping, and each adds entries of its own
(Kafka: ``GroupMetadataManager.storeGroup`` and ``storeOffsets``,
``TransactionStateManager.appendTransactionToLog``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..protocol.errors import ErrorCode

APPEND_ERRORS: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
