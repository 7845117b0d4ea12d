"""SCRAM credentials of users, which are stored in ``/config/users`` and cached by every broker
(KIP-84, KIP-554).

Kafka: ``CredentialProvider``, ``ZkAdminManager.alterUserScramCredentials``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ...protocol.errors import ErrorCode
from ...protocol.security.authentication import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserScramCredentials,
)
from ...protocol.security.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISM_NUMBERS,
    ScramCredential,
    credential,
    credential_text,
    parse_credential,
)
from ...protocol.znode_paths import DEFAULT_ENTITY, USERS
from ..zookeeper.client import KafkaZkClient
from .entities import change_entity_config, desanitize, sanitize

_EMPTY_NAME = "Username must not be empty"
_Refusal = tuple[ErrorCode, str]


class ScramCredentials:
    """Cache of the credentials that one broker knows."""

    def __init__(self) -> None:
        self._by_mechanism: dict[str, dict[str, ScramCredential]] = {
            mechanism: {} for mechanism in MECHANISM_NUMBERS.values()
        }

    def get(self, mechanism: str, user: str) -> ScramCredential | None:
        return self._by_mechanism[mechanism].get(user)

    def users(self, mechanism: str) -> tuple[str, ...]:
        """Return the users with a credential for the mechanism."""
        return tuple(self._by_mechanism[mechanism])

    def user_changed(self, entity: str, values: Mapping[str, str]) -> None:
        """Apply the new configuration of a user, which removes credentials it does not contain."""
        user = desanitize(entity)
        if user is None or "/" in entity:
            return
        for mechanism, known in self._by_mechanism.items():
            text = values.get(mechanism)
            if text is None:
                known.pop(user, None)
            else:
                known[user] = parse_credential(text)


class ScramAdmin:
    """Describes and alters credentials; errors are reported per user."""

    def __init__(self, zk: KafkaZkClient) -> None:
        self._zk = zk

    async def describe(
        self, request: DescribeUserScramCredentialsRequest
    ) -> DescribeUserScramCredentialsResponse:
        results = []
        if not request.users:
            stored = await self._zk.admin.get_all_entity_configs(USERS)
            for entity, values in sorted(stored.items()):
                if entity != DEFAULT_ENTITY and any(m in values for m in _names()):
                    results.append(_described(desanitize(entity) or "", values))
        else:
            for user, count in Counter(request.users).items():
                results.append(await self._describe_one(user, count))
        return DescribeUserScramCredentialsResponse(ErrorCode.NONE, None, tuple(results))

    async def _describe_one(self, user: str, count: int) -> UserScramCredentials:
        if not user:
            return UserScramCredentials(user, ErrorCode.RESOURCE_NOT_FOUND, _EMPTY_NAME)
        if count > 1:
            text = (
                "Cannot describe SCRAM credentials for the same user twice in a single request: "
                f"{user}"
            )
            return UserScramCredentials(user, ErrorCode.DUPLICATE_RESOURCE, text)
        values = await self._zk.admin.get_entity_configs(USERS, sanitize(user))
        if not any(mechanism in values for mechanism in _names()):
            text = f"Attempt to describe a user credential that does not exist: {user}"
            return UserScramCredentials(user, ErrorCode.RESOURCE_NOT_FOUND, text)
        return _described(user, values)

    async def alter(
        self, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        """Alter credentials; if one alteration is invalid, all of the same user are refused."""
        refused = _illegal(request)
        pairs = [(u.user, u.mechanism) for u in request.upsertions] + list(request.deletions)
        for (user, _), count in Counter(p for p in pairs if p[0] not in refused).items():
            if count > 1:
                text = "A user credential cannot be altered twice in the same request"
                refused[user] = (ErrorCode.DUPLICATE_RESOURCE, text)
        stored: dict[str, dict[str, str]] = {}
        for user in dict.fromkeys(user for user, _ in pairs if user not in refused):
            stored[user] = await self._zk.admin.get_entity_configs(USERS, sanitize(user))
        for user, mechanism in request.deletions:
            if user not in refused and MECHANISM_NUMBERS[mechanism] not in stored[user]:
                text = "Attempt to delete a user credential that does not exist"
                refused[user] = (ErrorCode.RESOURCE_NOT_FOUND, text)
        results = [(user, error, text) for user, (error, text) in refused.items()]
        for user, values in stored.items():
            if user not in refused:
                await self._change(user, values, request)
                results.append((user, ErrorCode.NONE, None))  # type: ignore[arg-type]
        return AlterUserScramCredentialsResponse(tuple(results))

    async def _change(
        self, user: str, values: dict[str, str], request: AlterUserScramCredentialsRequest
    ) -> None:
        for name, number in request.deletions:
            if name == user:
                del values[MECHANISM_NUMBERS[number]]
        for new in request.upsertions:
            if new.user == user:
                mechanism = MECHANISM_NUMBERS[new.mechanism]
                values[mechanism] = credential_text(
                    credential(mechanism, new.salt, new.salted_password, new.iterations)
                )
        await change_entity_config(self._zk, USERS, sanitize(user), values)


def _names() -> tuple[str, ...]:
    return tuple(MECHANISM_NUMBERS.values())


def _described(user: str, values: Mapping[str, str]) -> UserScramCredentials:
    return UserScramCredentials(
        user,
        ErrorCode.NONE,
        None,
        tuple(
            (number, parse_credential(values[mechanism]).iterations)
            for number, mechanism in MECHANISM_NUMBERS.items()
            if mechanism in values
        ),
    )


def _illegal(request: AlterUserScramCredentialsRequest) -> dict[str, _Refusal]:
    """Return the users with an alteration that is invalid in itself, each with the error."""
    refused: dict[str, _Refusal] = {}
    unknown = (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    for user, mechanism in request.deletions:
        if not user:
            refused[user] = (ErrorCode.UNACCEPTABLE_CREDENTIAL, _EMPTY_NAME)
        elif mechanism not in MECHANISM_NUMBERS:
            refused[user] = unknown
    for new in request.upsertions:
        if not new.user:
            refused[new.user] = (ErrorCode.UNACCEPTABLE_CREDENTIAL, _EMPTY_NAME)
        elif new.mechanism not in MECHANISM_NUMBERS:
            refused[new.user] = unknown
        elif new.iterations > ITERATIONS_MAX:
            refused[new.user] = (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
        elif new.iterations < ITERATIONS_MIN:
            refused[new.user] = (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    return refused
