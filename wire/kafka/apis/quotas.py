"""Quotas of users, clients and addresses (KIP-546)."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ....protocol.errors import ErrorCode
from ....protocol.security.quotas import (
    ANY,
    DEFAULT,
    EXACT,
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    QuotaAlteration,
    QuotaFilterComponent,
)
from ..api import Api, ApiCall, CodecAnswer, each, reads, writes
from ..repetitions import last_of_each

_MATCH_TYPES = (EXACT, DEFAULT, ANY)


def _describe(
    components: tuple[QuotaFilterComponent, ...], is_strict: bool
) -> DescribeClientQuotasRequest | CodecAnswer:
    if any(
        one.match_type not in _MATCH_TYPES or (one.match_type == EXACT and one.match is None)
        for one in components
    ):  # ClientQuotaFilterComponent and DescribeClientQuotasRequest throw
        return CodecAnswer(DescribeClientQuotasResponse(ErrorCode.UNKNOWN_SERVER_ERROR, None, ()))
    return DescribeClientQuotasRequest(components, is_strict)


def _described(
    response: DescribeClientQuotasResponse, _call: ApiCall
) -> tuple[ErrorCode, str | None, Any]:
    """Return error, message and entries; the message is empty, not null, if there is no error."""
    if response.error is not ErrorCode.NONE:
        return response.error, response.error_message, None
    return response.error, response.error_message or "", response.entries


DESCRIBE_CLIENT_QUOTAS = Api(
    48,
    reads(
        _describe,
        "components(entityType matchType match) strict",
        components=each(QuotaFilterComponent),
    ),
    writes(
        "[errorCode errorMessage entries[entity[entityType entityName] values[key value]]]",
        convert=_described,
    ),
)
"""List the quotas that a filter matches."""


def _alter(
    entries: tuple[tuple[Any, tuple[tuple[str, float, bool], ...]], ...], validate_only: bool
) -> AlterClientQuotasRequest:
    alterations = [
        QuotaAlteration(
            entity, tuple((key, None if remove else value) for key, value, remove in ops)
        )
        for entity, ops in entries
    ]
    named = last_of_each(alterations, attrgetter("entity"))
    return AlterClientQuotasRequest(tuple(named), validate_only)


ALTER_CLIENT_QUOTAS = Api(
    49,
    reads(
        _alter,
        "entries(entity(entityType entityName) ops(key value remove)) validateOnly",
    ),
    writes("entries=results[entity[entityType entityName] errorCode errorMessage]"),
)
"""Set and remove quotas."""
