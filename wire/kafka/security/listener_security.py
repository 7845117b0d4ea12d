"""The security settings of a broker's listener."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ....protocol.config import BrokerConfig
from ....protocol.security.configuration import ANONYMOUS, OAUTHBEARER, PLAIN, SSL
from ....protocol.values import frozen
from ....protocol.versions import Behaviour

if TYPE_CHECKING:
    import asyncio
    import ssl

    from .sasl import Credentials, SaslServer
    from .tls import PrincipalRules
    from .tokens import Validator


@frozen
class SaslSettings:
    """SASL settings of one listener of one broker."""

    mechanisms: tuple[str, ...]
    credentials: Credentials
    validate_token: Validator
    now_ms: Callable[[], int]
    wall_ms: Callable[[], int]
    behaviour: Behaviour
    config: BrokerConfig

    @property
    def failure_delay_ms(self) -> int:
        """Milliseconds by which the answer to a failed authentication is delayed (KIP-306)."""
        if not self.behaviour.failed_authentication_delayed:
            return 0
        return int(self.config["connection.failed.authentication.delay.ms"])

    def server(self, mechanism: str) -> SaslServer:
        """Return the broker's side of a new exchange."""
        from .sasl import OAuthBearerServer, PlainServer, ScramServer  # imported only with SASL

        if mechanism == PLAIN:
            explains = self.behaviour.malformed_plain_tokens_told
            return PlainServer(self.credentials, explains_malformed=explains)
        if mechanism == OAUTHBEARER:
            return OAuthBearerServer(self.validate_token, self.wall_ms)
        checks = self.behaviour.scram_nonce_checked
        return ScramServer(mechanism, self.credentials, checks_nonce=checks)


@frozen
class ListenerSecurity:
    """Security of a listener: TLS, SASL, both or neither."""

    protocol: str
    tls: ssl.SSLContext | None = None
    rules: PrincipalRules | None = None
    sasl: SaslSettings | None = None

    def principal(self, transport: asyncio.BaseTransport) -> str | None:
        """Return the principal of a new connection; None if no rule maps its certificate's name."""
        if self.protocol != SSL or self.rules is None:
            return ANONYMOUS
        from .tls import peer_principal

        return peer_principal(transport, self.rules)


OPEN = ListenerSecurity("PLAINTEXT")
"""Plain TCP, for any client."""
