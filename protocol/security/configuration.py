"""The listeners, users and security rules of a cluster, as plain values.

Kafka spreads them over ``listeners``, ``listener.security.protocol.map``, ``sasl.*``, ``ssl.*``,
JAAS files and key stores. Here, listeners, passwords and the keys of tokens are fields. All other
security configurations of Kafka are set in the configuration of brokers under Kafka's names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from ..errors import UsageError
from ..values import frozen

T = TypeVar("T")

PLAINTEXT = "PLAINTEXT"
SSL = "SSL"
SASL_PLAINTEXT = "SASL_PLAINTEXT"
SASL_SSL = "SASL_SSL"
SECURITY_PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)

PLAIN = "PLAIN"
SCRAM_SHA_256 = "SCRAM-SHA-256"
SCRAM_SHA_512 = "SCRAM-SHA-512"
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)
SCRAM_MECHANISMS = (SCRAM_SHA_256, SCRAM_SHA_512)

CLIENT_AUTH = ("none", "requested", "required")
ANONYMOUS = "User:ANONYMOUS"
ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
SIMPLE_ACL_AUTHORIZER = "kafka.security.auth.SimpleAclAuthorizer"
"""Class name of the authorizer before 2.4."""


def _require_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


@frozen
class ListenerSpec:
    """A listener of every broker in a cluster."""

    name: str
    """Name, such as ``CLIENTS``. Clients get the brokers' addresses for the listener they use."""
    protocol: str = ""
    """``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``; empty for the listener's name."""
    ports: tuple[int, ...] = ()
    """A port for each broker, 0 for any free port; empty for free ports on all brokers."""
    mechanisms: tuple[str, ...] | None = None
    """SASL mechanisms of this listener; None for ``sasl.enabled.mechanisms``."""
    client_auth: str | None = None
    """``none``, ``requested`` or ``required``; None for ``ssl.client.auth``."""

    def __post_init__(self) -> None:
        if not self.name or not all(letter.isalnum() or letter in "_-" for letter in self.name):
            raise UsageError(f"a listener's name has letters, digits and '_', not {self.name!r}")
        if not self.protocol:
            object.__setattr__(self, "protocol", self.name)
        _require_choice(f"the protocol of listener {self.name}", self.protocol, SECURITY_PROTOCOLS)
        if self.client_auth is not None:
            _require_choice(f"client_auth of listener {self.name}", self.client_auth, CLIENT_AUTH)
        for mechanism in self.mechanisms or ():
            _require_choice(f"a mechanism of listener {self.name}", mechanism, MECHANISMS)

    @classmethod
    def parse(cls, text: str) -> ListenerSpec:
        """Parse ``NAME``, ``NAME:PROTOCOL`` or ``NAME:PROTOCOL:PORT,PORT``."""
        name, _, rest = text.partition(":")
        protocol, _, ports = rest.partition(":")
        if not all(port.strip().isdigit() for port in ports.split(",") if ports):
            raise UsageError(f"a listener is NAME[:PROTOCOL[:PORT,...]], not {text!r}")
        numbers = tuple(int(port) for port in ports.split(",")) if ports else ()
        return cls(name.strip(), protocol.strip(), numbers)

    @property
    def uses_tls(self) -> bool:
        return self.protocol in (SSL, SASL_SSL)

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in (SASL_PLAINTEXT, SASL_SSL)


@dataclass(frozen=True, slots=True)
class SecurityConfig:
    """The listeners, users and security rules of a cluster, for ``Cluster(security=...)``."""

    listeners: tuple[ListenerSpec, ...] = (ListenerSpec(PLAINTEXT),)
    """Listeners of every broker; ``bootstrap_servers`` has the addresses of the first one."""
    users: Mapping[str, str] = field(default_factory=dict)
    """User names to passwords, for PLAIN and for all enabled SCRAM mechanisms."""
    mechanisms: tuple[str, ...] = MECHANISMS
    """``sasl.enabled.mechanisms``; mechanisms unknown to the emulated release are ignored."""
    client_auth: str = "none"
    """``ssl.client.auth``"""
    principal_mapping_rules: str = "DEFAULT"
    """``ssl.principal.mapping.rules``"""
    authorizer: bool = False
    """True to authorize requests by ACLs (``authorizer.class.name``)."""
    super_users: tuple[str, ...] = ()
    """``super.users``, such as ``User:admin``."""
    allow_everyone_if_no_acl_found: bool = False
    """``allow.everyone.if.no.acl.found``"""
    token_keys: Any = None
    """JSON Web Key Set, as a dictionary or JSON text, that verifies the signatures of OAUTHBEARER
    tokens; None for unsecured tokens."""
    token_issuer: str | None = None
    """Issuer required in signed tokens; None for any issuer."""
    token_audience: tuple[str, ...] = ()
    """Audiences, one of which is required in signed tokens; empty for any audience."""
    token_scope: tuple[str, ...] = ()
    """Scopes required in unsecured tokens."""
    delegation_token_key: str | None = None
    """``delegation.token.master.key``; None to disable delegation tokens."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "listeners", _listeners(self.listeners))
        names = [listener.name for listener in self.listeners]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"the listeners of a cluster need different names, not {names}")
        _require_choice("client_auth", self.client_auth, CLIENT_AUTH)
        for name in ("mechanisms", "super_users", "token_audience", "token_scope"):
            object.__setattr__(self, name, _strings(name, getattr(self, name)))
        for mechanism in self.mechanisms:
            _require_choice("a mechanism", mechanism, MECHANISMS)
        for user in self.super_users:
            if ":" not in user:
                raise UsageError(f"a super user has the form 'User:{user}', not {user!r}")
        if not all(isinstance(t, str) and t for pair in self.users.items() for t in pair):
            raise UsageError("users maps user names to passwords; neither may be empty")

    @classmethod
    def of(cls, value: Any) -> SecurityConfig:
        """Convert a mapping of fields, or a string of listeners, to a configuration.

        A ``SecurityConfig`` is returned as it is.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(listeners=_listeners(value))
        if isinstance(value, Mapping):
            return _from_fields(cls, value, "security")
        raise UsageError(
            "security must be a SecurityConfig, its fields, or listeners such as "
            f"'PLAINTEXT;CLIENTS:SASL_SSL', not {value!r}"
        )

    @property
    def uses_tls(self) -> bool:
        return any(listener.uses_tls for listener in self.listeners)

    def broker_config(self, is_acl_authorizer: bool, has_tokens: bool) -> dict[str, str]:
        """Return the corresponding configurations of a broker, by Kafka's names."""
        values: dict[str, str] = {}
        if any(listener.uses_sasl for listener in self.listeners):
            values["sasl.enabled.mechanisms"] = ",".join(self.mechanisms)
        if self.uses_tls:
            values["ssl.client.auth"] = self.client_auth
        if self.principal_mapping_rules != "DEFAULT":
            values["ssl.principal.mapping.rules"] = self.principal_mapping_rules
        if self.authorizer:
            values["authorizer.class.name"] = (
                ACL_AUTHORIZER if is_acl_authorizer else SIMPLE_ACL_AUTHORIZER
            )
            values["super.users"] = ";".join(self.super_users)
            values["allow.everyone.if.no.acl.found"] = str(
                self.allow_everyone_if_no_acl_found
            ).lower()
        if self.delegation_token_key is not None and has_tokens:
            values["delegation.token.master.key"] = self.delegation_token_key
        return values


def _strings(name: str, value: Any) -> tuple[str, ...]:
    """Return a tuple of strings, given as an iterable or as a single string."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Iterable) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{name} must be strings, not {value!r}")
    return tuple(value)


def _listener(value: Any) -> Any:
    """Convert a listener that is given as a string or as a mapping of fields to a spec."""
    if isinstance(value, str):
        return ListenerSpec.parse(value)
    if isinstance(value, Mapping):
        return _from_fields(ListenerSpec, value, "a listener")
    return value


def _from_fields(cls: type[T], value: Mapping[str, Any], description: str) -> T:
    known = [field_.name for field_ in fields(cls)]  # type: ignore[arg-type]
    for name in value:
        if name not in known:
            raise UsageError(f"{description} has no field {name!r}; it has {', '.join(known)}")
    return cls(**value)


def _listeners(value: Any) -> tuple[ListenerSpec, ...]:
    """Convert listeners to specs; given as specs, strings, or a mapping of names to protocols."""
    if isinstance(value, Mapping):
        return tuple(ListenerSpec(name, protocol) for name, protocol in value.items())
    if isinstance(value, str):
        value = value.split(";")
    if isinstance(value, ListenerSpec):
        value = (value,)
    if not isinstance(value, Iterable):
        raise UsageError(
            f"listeners must be a list, or a mapping of names to protocols, not {value!r}"
        )
    specs = [_listener(item) for item in value]
    if not all(isinstance(item, ListenerSpec) for item in specs):
        raise UsageError(f"each listener must be a ListenerSpec or 'NAME:PROTOCOL', not {value!r}")
    return tuple(specs)
