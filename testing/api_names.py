"""Look-up of requests, messages and error codes by the names that users write."""

from __future__ import annotations

from ..protocol import admin, control, data, groups, transactions
from ..protocol.errors import ErrorCode, UsageError, did_you_mean
from ..protocol.security import acls, authentication, delegation_tokens, quotas
from ..protocol.values import Request
from ..statemachines.controller.events import controller_events
from ..zkfake import messages as zookeeper

_MODULES = (
    control,
    data,
    admin,
    groups,
    transactions,
    authentication,
    acls,
    quotas,
    delegation_tokens,
)

REQUESTS: dict[str, type] = {
    name.removesuffix("Request"): value
    for module in _MODULES
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, Request) and value is not Request
}
"""Classes of Kafka's requests by the name of the API."""

_EVENTS: dict[str, type] = {event.__name__: event for event in controller_events()}

_MESSAGES: dict[str, type] = {
    name: value
    for module in (*_MODULES, zookeeper)
    for name, value in vars(module).items()
    if isinstance(value, type) and value.__module__ == module.__name__
} | _EVENTS


def message_type(name: str) -> type:
    """Return a message class by its name, such as ``FetchResponse``."""
    try:
        return _MESSAGES[name]
    except KeyError:
        hint = did_you_mean(name, _MESSAGES)
        raise UsageError(f"there is no message {name!r}{hint}") from None


def request_type(api: str) -> type:
    """Return the request class of an API named as in Kafka (``Produce``, ``fetch``)."""
    by_lower = {name.lower(): value for name, value in REQUESTS.items()}
    wanted = api.replace("_", "").lower().removesuffix("request")
    try:
        return by_lower[wanted]
    except KeyError:
        if wanted == "apiversions":
            raise UsageError(
                "ApiVersions cannot be injected or asked: each connection answers it by itself, "
                "and no message of it reaches the broker"
            ) from None
        hint = did_you_mean(api, REQUESTS)
        raise UsageError(f"there is no API {api!r}{hint}") from None


def injection_target(api: str, *, answers: bool) -> type:
    """Return the class of the messages an injection affects: requests, or a controller's events.

    An event, such as ``BrokerChange``, can only be delayed. ``answers`` is True if the injection
    answers or disconnects.
    """
    if api in REQUESTS or api not in _EVENTS:
        return request_type(api)
    if answers:
        raise UsageError(f"API {api} is an event of the controller; it can only be delayed")
    return _EVENTS[api]


def error_code(error: str | int | ErrorCode) -> ErrorCode:
    """Return the error code with a name or number."""
    try:
        return ErrorCode[error.upper()] if isinstance(error, str) else ErrorCode(error)
    except (KeyError, ValueError):
        hint = did_you_mean(str(error).upper(), [code.name for code in ErrorCode])
        raise UsageError(f"there is no error code {error!r}{hint}") from None
