"""Error messages of FindCoordinator responses."""

from __future__ import annotations

from ..protocol.data import FindCoordinatorResponse
from ..protocol.errors import ErrorCode
from ..protocol.values import changed
from ..protocol.versions import Behaviour

_FIRST_OF_MANY_KEYS = 4
_TEXTS = {
    ErrorCode.NONE: "NONE",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
"""Texts of Kafka's ``Errors.message``, for coordinators without a message of their own."""


def with_error_texts(
    response: FindCoordinatorResponse, api_version: int, behaviour: Behaviour
) -> FindCoordinatorResponse:
    """Return the response with the error messages that this version of the API carries.

    Since 2.3 Kafka fills in a missing message, even for NONE, in versions below 4 of the API
    (``FindCoordinatorResponse.prepareOldResponse``), but not in version 4.
    """
    if not behaviour.find_coordinator_generated or api_version >= _FIRST_OF_MANY_KEYS:
        return response
    return FindCoordinatorResponse(
        tuple(
            changed(found, error_message=_TEXTS.get(found.error))
            if found.error_message is None
            else found
            for found in response.coordinators
        )
    )
