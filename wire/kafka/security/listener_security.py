"""The demands of a broker's listener on its clients."""

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
    """SASL as one listener of one broker does it."""

    mechanisms: tuple[str, ...]
    credentials: Credentials
    validate_token: Validator
    now_ms: Callable[[], int]
    wall_ms: Callable[[], int]
    behaviour: Behaviour
    config: BrokerConfig

    @property
    def failure_delay_ms(self) -> int:
        """Milliseconds that a client waits for the answer that it is refused (KIP-306)."""
        if not self.behaviour.failed_authentication_delayed:
            return 0
        return int(self.config["connection.failed.authentication.delay.ms"])

    def server(self, mechanism: str) -> SaslServer:
        """The broker's side of a new exchange."""
        from .sasl import OAuthBearerServer, PlainServer, ScramServer  # an open cluster has none

        if mechanism == PLAIN:
            tells = self.behaviour.malformed_plain_tokens_told
            return PlainServer(self.credentials, tells_malformed=tells)
        if mechanism == OAUTHBEARER:
            return OAuthBearerServer(self.validate_token, self.wall_ms)
        checks = self.behaviour.scram_nonce_checked
        return ScramServer(mechanism, self.credentials, checks_nonce=checks)


@frozen
class ListenerSecurity:
    """TLS, SASL, both or neither."""

    protocol: str
    tls: ssl.SSLContext | None = None
    rules: PrincipalRules | None = None
    sasl: SaslSettings | None = None

    def principal(self, transport: asyncio.BaseTransport) -> str | None:
        """Return who a client is before it says anything; None where its certificate gives no
        name."""
        if self.protocol != SSL or self.rules is None:
            return ANONYMOUS
        from .tls import peer_principal

        return peer_principal(transport, self.rules)


OPEN = ListenerSecurity("PLAINTEXT")
"""Plain TCP, for any client."""
