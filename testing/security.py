"""``cluster.security``: certificates, users and tokens for the clients of tests."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..protocol.config import BrokerConfig
from ..protocol.errors import ErrorCode, KafkaError, UsageError, did_you_mean
from ..protocol.names import broker_name
from ..protocol.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    Acl,
    AclEntry,
    AclFilter,
    AclOperation,
    CreateAclsRequest,
    DeleteAclsRequest,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)
from ..protocol.security.authentication import AlterUserScramCredentialsRequest, ScramUpsertion
from ..protocol.security.configuration import (
    MECHANISMS,
    OAUTHBEARER,
    SCRAM_MECHANISMS,
    ListenerSpec,
    SecurityConfig,
)
from ..protocol.security.quotas import (
    CLIENT_ID,
    IP,
    USER,
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    Entity,
    QuotaAlteration,
)
from ..protocol.security.scram import ITERATIONS_MIN, MECHANISM_NUMBERS, salted_password
from ..protocol.versions import Behaviour, behaviour
from ..protocol.znode_paths import DEFAULT_ENTITY
from ..wire.kafka.gateway import Gateway
from ..wire.kafka.security.certificates import Certificate, CertificateAuthority
from ..wire.kafka.security.listener_security import ListenerSecurity, SaslSettings
from ..wire.kafka.security.tls import PrincipalRules, server_context
from ..wire.kafka.security.tokens import SignedTokens, Validator, check_unsecured, unsecured_token
from ..wire.kafka.tcp_listener import BrokerCredentials
from . import arguments

if TYPE_CHECKING:
    from ..wire.kafka.security.guard import GuardedBackend
    from .running import RunningCluster

_TIMEOUT_MS = 10000
_HOSTS = ("localhost", "127.0.0.1", "::1")
_TOKEN_LIFETIME_S = 3600
_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
}


class ClusterSecurity:
    """Credentials, ACLs and quotas that give the clients of a test access, or deny it."""

    def __init__(
        self, config: SecurityConfig, *hosts: str, wall_s: Callable[[], float] = time.time
    ) -> None:
        """Prepare credentials: ``hosts`` are further names in the brokers' certificate, ``wall_s``
        is the clock by which tokens are issued."""
        self.config: SecurityConfig = config
        """Listeners, users and rules that the cluster was given."""
        self._hosts = hosts
        self._wall_s = wall_s
        self._authority: CertificateAuthority | None = None
        self._foreign: CertificateAuthority | None = None
        self._server_certificate: Certificate | None = None
        self._running: RunningCluster | None = None
        self._validate = self._token_validator()
        self._rules = PrincipalRules(config.principal_mapping_rules)

    def _token_validator(self) -> Validator:
        config = self.config
        if config.token_keys is not None:
            keys = SignedTokens(config.token_keys, config.token_issuer, config.token_audience)
            return keys.check
        return functools.partial(check_unsecured, required_scope=config.token_scope)

    # -- certificates --------------------------------------------------------------------------

    @property
    def authority(self) -> CertificateAuthority:
        """The authority that signs the brokers' certificates; created on first use."""
        if self._authority is None:
            self._authority = CertificateAuthority()
        return self._authority

    @property
    def ca_path(self) -> Path:
        """Path of the authority's certificate in PEM, for clients to trust."""
        return self.authority.certificate_path

    @property
    def ca_pem(self) -> str:
        """The authority's certificate as PEM text."""
        return self.ca_path.read_text()

    @property
    def truststore_path(self) -> Path:
        """Path of the certificate as a PKCS#12 file for Java; its password is ``fakekafka``."""
        return self.authority.truststore_path

    def client_certificate(
        self,
        common_name: str,
        *,
        organization: str | None = None,
        expired: bool = False,
        foreign: bool = False,
    ) -> Certificate:
        """Issue a certificate with its key for a client with a common name.

        ``organization`` is a further part of the name. An ``expired`` certificate is out of date;
        a ``foreign`` one is signed by an authority that no broker trusts.
        """
        authority = self.authority
        if foreign:
            if self._foreign is None:
                self._foreign = CertificateAuthority("a foreign authority")
            authority = self._foreign
        name = arguments.text("common_name", common_name)
        return authority.issue(name, organization=organization, expired=expired)

    # -- tokens --------------------------------------------------------------------------------

    def token(
        self,
        subject: str,
        *,
        lifetime_s: float = _TOKEN_LIFETIME_S,
        scope: Sequence[str] = (),
        **claims: Any,
    ) -> str:
        """Return an unsecured OAUTHBEARER token; ``claims`` are added, or replace its own."""
        # Issued a second ago: a clock that is slightly behind would refuse a token of the future.
        return unsecured_token(subject, int(self._wall_s()) - 1, lifetime_s + 1, scope, **claims)

    # -- users ---------------------------------------------------------------------------------

    def add_user(
        self,
        name: str,
        password: str,
        *,
        mechanisms: Sequence[str] = SCRAM_MECHANISMS,
        iterations: int = ITERATIONS_MIN,
    ) -> None:
        """Set the SCRAM credentials of a user, and wait until every broker knows them."""
        running = self._require_running()
        for mechanism in mechanisms:
            if mechanism not in SCRAM_MECHANISMS:
                arguments.refuse("mechanisms", mechanisms, f"some of {SCRAM_MECHANISMS}")
        salt = running.in_process(None, lambda: running.runtime.rng.randbytes(16))
        numbers = {mechanism: number for number, mechanism in MECHANISM_NUMBERS.items()}
        upsertions = tuple(
            ScramUpsertion(
                arguments.text("name", name),
                numbers[mechanism],
                iterations,
                salt,
                salted_password(mechanism, password.encode(), salt, iterations),
            )
            for mechanism in mechanisms
        )
        self._alter(AlterUserScramCredentialsRequest((), upsertions))

        def every_broker_knows_the_user() -> bool:
            return all(
                (known := broker.security.scram.get(mechanism, name)) is not None
                and known.salt == salt
                for broker in running.living_brokers()
                for mechanism in mechanisms
            )

        running.wait_until(every_broker_knows_the_user)

    def remove_user(self, name: str) -> None:
        """Delete the SCRAM credentials of a user, and wait until no broker knows them."""
        running = self._require_running()
        known = {
            number
            for broker in running.living_brokers()
            for number, mechanism in MECHANISM_NUMBERS.items()
            if broker.security.scram.get(mechanism, name) is not None
        }
        deletions = tuple((name, number) for number in sorted(known))
        self._alter(AlterUserScramCredentialsRequest(deletions))

        def no_broker_knows_the_user() -> bool:
            return not any(
                broker.security.scram.get(mechanism, name)
                for broker in running.living_brokers()
                for mechanism in SCRAM_MECHANISMS
            )

        running.wait_until(no_broker_knows_the_user)

    def _alter(self, request: AlterUserScramCredentialsRequest) -> None:
        for user, error, text in self._ask_controller(request).results:
            if error is not ErrorCode.NONE:
                raise KafkaError(error, text or f"user {user}")

    # -- rights --------------------------------------------------------------------------------

    def allow(
        self,
        principal: str,
        operation: str,
        *,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        prefix: bool = False,
        host: str = WILDCARD,
    ) -> None:
        """Allow an operation by an ACL, such as ``allow("User:alice", "READ", topic="orders")``.

        The ACL is for a ``topic``, a ``group`` or a ``transactional_id``, or else for the cluster;
        with ``prefix`` it is for all whose names start with the given one. Returns once every
        broker knows the ACL.
        """
        resource = _resource(topic, group, transactional_id, prefix=prefix)
        self._add_acl(Permission.ALLOW, principal, operation, resource, host)

    def deny(
        self,
        principal: str,
        operation: str,
        *,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        prefix: bool = False,
        host: str = WILDCARD,
    ) -> None:
        """Deny an operation by an ACL; the arguments are those of ``allow``."""
        resource = _resource(topic, group, transactional_id, prefix=prefix)
        self._add_acl(Permission.DENY, principal, operation, resource, host)

    def acls(self) -> tuple[Acl, ...]:
        """Return all ACLs, as one living broker knows them."""
        for broker in self._require_running().living_brokers():
            if broker.security.authorizer is not None:
                return broker.security.authorizer.acls(AclFilter())
        raise UsageError("there are no ACLs; give security a SecurityConfig(authorizer=True)")

    def remove_acls(self) -> None:
        """Remove every ACL, and wait until no broker knows any."""
        self._ask_controller(DeleteAclsRequest((AclFilter(),)))
        self._await_acls(lambda known: not known)

    def _add_acl(
        self, permission: Permission, principal: str, operation: str, resource: Resource, host: str
    ) -> None:
        entry = AclEntry(
            arguments.text("principal", principal),
            arguments.text("host", host),
            _operation(operation),
            permission,
        )
        acl = Acl(resource, entry)
        ((error, text),) = self._ask_controller(CreateAclsRequest((acl,))).results
        if error is not ErrorCode.NONE:
            raise KafkaError(error, text or "")
        self._await_acls(lambda known: acl in known)

    def _await_acls(self, holds: Callable[[tuple[Acl, ...]], bool]) -> None:
        running = self._require_running()

        def every_broker_knows_the_acls() -> bool:
            authorizers = [broker.security.authorizer for broker in running.living_brokers()]
            return all(found is None or holds(found.acls(AclFilter())) for found in authorizers)

        running.wait_until(every_broker_knows_the_acls)

    def _ask_controller(self, request: Any) -> Any:
        running = self._require_running()

        async def ask() -> Any:
            node = broker_name(running.require_controller().broker_id)
            return await running.admin.ask(node, request, _TIMEOUT_MS)

        return running.call(ask, _TIMEOUT_MS)

    # -- quotas --------------------------------------------------------------------------------

    def set_quota(
        self,
        *,
        user: str | None = None,
        client_id: str | None = None,
        ip: str | None = None,
        **values: float | None,
    ) -> None:
        """Set quotas of a user, a client id or both, such as ``producer_byte_rate=1024``, or of an
        ``ip`` address, such as ``connection_creation_rate=5``.

        The name ``"<default>"`` stands for all without a quota of their own. The value None
        removes a quota.
        """
        named = {USER: user, CLIENT_ID: client_id, IP: ip}
        entity = tuple(
            (kind, None if name == DEFAULT_ENTITY else name)
            for kind, name in named.items()
            if name is not None
        )
        self._alter_quotas(entity, values)

    def _alter_quotas(self, entity: Entity, values: Mapping[str, float | None]) -> None:
        request = AlterClientQuotasRequest((QuotaAlteration(entity, tuple(values.items())),))
        ((_, error, text),) = self._ask_controller(request).results
        if error is not ErrorCode.NONE:
            raise KafkaError(error, text or "")
        running = self._require_running()

        def every_broker_knows_the_quota() -> bool:
            return all(
                broker.security.quotas.has_quota(dict(entity), name, value)
                for broker in running.living_brokers()
                for name, value in values.items()
            )

        running.wait_until(every_broker_knows_the_quota)

    def _remove_quotas(self) -> None:
        request = DescribeClientQuotasRequest(())
        for entity, values in self._ask_controller(request).entries:
            self._alter_quotas(entity, dict.fromkeys(name for name, _ in values))

    # -- for the cluster -----------------------------------------------------------------------

    def attach(self, running: RunningCluster | None) -> None:
        """Use a running cluster for all requests; None for no cluster."""
        self._running = running

    def _require_running(self) -> RunningCluster:
        if self._running is None:
            raise UsageError("the cluster is not running")
        return self._running

    def remove_files(self) -> None:
        """Remove the files of the certificates."""
        for authority in (self._authority, self._foreign):
            if authority is not None:
                authority.close()
        self._authority = self._foreign = self._server_certificate = None

    def restore(self) -> None:
        """Restore the state after the start: no ACLs, no quotas, and only the configured users."""
        running = self._require_running()
        if any(broker.security.authorizer for broker in running.living_brokers()):
            self.remove_acls()
        if any(broker.security.quotas.is_any for broker in running.living_brokers()):
            self._remove_quotas()
        known = {
            user
            for broker in running.living_brokers()
            for mechanism in SCRAM_MECHANISMS
            for user in broker.security.scram.users(mechanism)
        }
        for user in sorted(known):
            self.remove_user(user)
        self.create_users()

    def create_users(self) -> None:
        """Set the SCRAM credentials of the configured users."""
        running = self._require_running()
        flags = next(iter(running.processes.values())).spec.behaviour
        wanted = [m for m in SCRAM_MECHANISMS if m in self.config.mechanisms]
        if not flags.sasl_scram or not wanted:
            return
        if any(listener.uses_sasl for listener in self.config.listeners):
            for name, password in self.config.users.items():
                self.add_user(name, password, mechanisms=wanted)

    def guard(self, config: BrokerConfig) -> Callable[[Any], GuardedBackend] | None:
        """Return a function that wraps a gateway with authorization; None without an authorizer."""
        if not config["authorizer.class.name"]:
            return None
        return functools.partial(_guarded, flags=behaviour(config.kafka_version))

    def listener_security(
        self, gateway: Gateway, config: BrokerConfig, broker_id: int, listener: ListenerSpec
    ) -> ListenerSecurity:
        """Return the security settings of a broker's listener."""
        tls = None
        if listener.uses_tls:
            if self._server_certificate is None:
                hosts = tuple(dict.fromkeys((*_HOSTS, *self._hosts)))
                self._server_certificate = self.authority.issue("localhost", hosts=hosts)
            client_auth = listener.client_auth or config["ssl.client.auth"]
            if listener.uses_sasl and listener.client_auth is None:
                client_auth = "none"
            tls = server_context(self._server_certificate, self.ca_path, client_auth)
        sasl = None
        if listener.uses_sasl:
            flags = behaviour(config.kafka_version)
            enabled = listener.mechanisms or config["sasl.enabled.mechanisms"]
            known = known_mechanisms(flags)
            sasl = SaslSettings(
                mechanisms=tuple(mechanism for mechanism in enabled if mechanism in known),
                credentials=BrokerCredentials(self.config.users, gateway, broker_id),
                validate_token=self._validate,
                now_ms=gateway.runtime.now_ms,
                wall_ms=gateway.runtime.wall_ms,
                behaviour=flags,
                config=config,
            )
        return ListenerSecurity(listener.protocol, tls, self._rules, sasl)


def _guarded(gateway: Any, flags: Behaviour) -> GuardedBackend:
    from ..wire.kafka.security.guard import GuardedBackend  # here, as few clusters need it

    return GuardedBackend(gateway, flags, gateway.authorizer, gateway.knows_topic)


def known_mechanisms(flags: Behaviour) -> tuple[str, ...]:
    """Return the SASL mechanisms that the emulated release has."""
    return tuple(
        mechanism
        for mechanism in MECHANISMS
        if (mechanism not in SCRAM_MECHANISMS or flags.sasl_scram)
        and (mechanism != OAUTHBEARER or flags.sasl_oauthbearer)
    )


def _resource(
    topic: str | None, group: str | None, transactional_id: str | None, *, prefix: bool
) -> Resource:
    """Return the one resource that is given, or else the cluster."""
    names = {"topic": topic, "group": group, "transactional_id": transactional_id}
    named = [kind for kind, name in names.items() if name is not None]
    if len(named) > 1:
        raise UsageError(f"an ACL is about one resource, not {' and '.join(named)}")
    pattern = PatternType.PREFIXED if prefix else PatternType.LITERAL
    if not named:
        return Resource(ResourceType.CLUSTER, CLUSTER_NAME, pattern)
    return Resource(_RESOURCES[named[0]], arguments.text(named[0], names[named[0]]), pattern)


def _operation(name: str) -> AclOperation:
    try:
        return AclOperation[arguments.text("operation", name).upper()]
    except KeyError:
        hint = did_you_mean(name.upper(), [found.name for found in AclOperation])
        raise UsageError(f"there is no operation {name!r}{hint}") from None
