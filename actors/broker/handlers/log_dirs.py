"""Handlers about log directories; the work is in ``replication.log_dirs`` (KIP-113)."""

from __future__ import annotations

from ....protocol.admin import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from ....protocol.errors import ErrorCode
from ...delivery import Delivery
from ...port import Handler
from ..parts import BrokerHandlers


class LogDirHandlers(BrokerHandlers):
    """They answer at once: a move goes on after its request."""

    def by_type(self) -> dict[type, Handler]:
        return {
            DescribeLogDirsRequest: self.describe_log_dirs,
            AlterReplicaLogDirsRequest: self.alter_replica_log_dirs,
        }

    def describe_log_dirs(
        self, request: DescribeLogDirsRequest, _delivery: Delivery
    ) -> DescribeLogDirsResponse:
        return DescribeLogDirsResponse(
            ErrorCode.NONE, self._replica_manager.log_dirs.describe(request.partitions)
        )

    def alter_replica_log_dirs(
        self, request: AlterReplicaLogDirsRequest, _delivery: Delivery
    ) -> AlterReplicaLogDirsResponse:
        return AlterReplicaLogDirsResponse(self._replica_manager.log_dirs.alter(request.moves))
