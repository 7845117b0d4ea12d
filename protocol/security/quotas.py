"""Quotas of users, clients and IP addresses, and the messages about them (KIP-546)."""

from __future__ import annotations

from ..errors import ErrorCode
from ..values import Request, message

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"
CLIENT_QUOTAS: dict[str, type] = {
    PRODUCER_BYTE_RATE: int,
    CONSUMER_BYTE_RATE: int,
    REQUEST_PERCENTAGE: float,
    CONTROLLER_MUTATION_RATE: float,
}
"""Names of quotas of users and clients -> types of their values."""
IP_QUOTAS: dict[str, type] = {CONNECTION_CREATION_RATE: int}

EXACT = 0
DEFAULT = 1
ANY = 2

Entity = tuple[tuple[str, str | None], ...]
"""(type, name) pairs; the name None stands for the default entity of a type."""


@message
class QuotaFilterComponent:
    entity_type: str
    match_type: int
    """``EXACT``, ``DEFAULT`` or ``ANY``."""
    match: str | None = None


@message
class DescribeClientQuotasRequest(Request["DescribeClientQuotasResponse"]):
    components: tuple[QuotaFilterComponent, ...]
    is_strict: bool = False
    """True to exclude entities that have types other than the types of the components."""


@message
class DescribeClientQuotasResponse:
    error: ErrorCode
    error_message: str | None = None
    entries: tuple[tuple[Entity, tuple[tuple[str, float], ...]], ...] = ()
    """(entity, (name, value) pairs) for each matching entity."""


@message
class QuotaAlteration:
    entity: Entity
    changes: tuple[tuple[str, float | None], ...]
    """(name, value) pairs; the value None removes a quota."""


@message
class AlterClientQuotasRequest(Request["AlterClientQuotasResponse"]):
    alterations: tuple[QuotaAlteration, ...]
    validate_only: bool = False


@message
class AlterClientQuotasResponse:
    results: tuple[tuple[Entity, ErrorCode, str | None], ...]
