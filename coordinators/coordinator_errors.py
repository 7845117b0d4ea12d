"""Messages of FindCoordinator, with an error and with none."""

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
"""What Kafka's ``Errors.message`` gives where there is no other message."""


def with_error_texts(
    response: FindCoordinatorResponse, api_version: int, behaviour: Behaviour
) -> FindCoordinatorResponse:
    """The response as a client of this version gets it.

    Since 2.3 Kafka names every error that has no message, before version 4 of the API
    (``FindCoordinatorResponse.prepareOldResponse``); version 4 names none.
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
