"""The state of a client's SASL authentication on one connection.

Kafka: ``SaslServerAuthenticator``, and the handling of expired sessions in ``KafkaChannel`` and
``Selector`` (KIP-368).
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from ....protocol.errors import ClientError, ErrorCode, UsageError
from ....protocol.security.authentication import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from ....protocol.values import message
from ..api import CodecAnswer
from ..codec import Codec, RequestHeader
from ..error_responses import error_response
from ..messages.varints import Buffer
from .listener_security import SaslSettings
from .sasl import SaslAuthenticationError, SaslError, SaslServer

_SASL_HANDSHAKE = 17
_API_VERSIONS = 18
_REAUTHENTICATION_INTERVAL_MIN_MS = 1000


class _State(enum.Enum):
    HANDSHAKE_OR_VERSIONS = "SaslHandshake or ApiVersions"
    HANDSHAKE = "SaslHandshake"
    AUTHENTICATE = "SaslAuthenticate, or a token without a header"
    COMPLETE = "requests"
    WRONG_MECHANISM = "none: mechanism changed on re-authentication"


@message
class AuthenticationStep:
    """The outcome of a frame that belongs to the authentication."""

    answer: Sequence[Buffer] = ()
    failure: str | None = None
    """Reason why the client is refused; None if the authentication continues."""
    is_delayed: bool = True
    """True if the answer to a refused client and the end of its connection are delayed."""


class Authenticator:
    """Handles the frames of one connection until its client is authenticated, and when it
    re-authenticates."""

    def __init__(self, settings: SaslSettings, codec: Codec) -> None:
        self._settings = settings
        self._codec = codec
        self._state = _State.HANDSHAKE_OR_VERSIONS
        self._server: SaslServer | None = None
        self._mechanism = ""
        self._previous: tuple[str, str] | None = None
        """Mechanism and principal that a re-authentication must not change; None before one."""
        self._uses_authenticate_requests = False
        self._expires_at_ms: int | None = None
        self._reauthentication_begin_ms = 0
        self.principal: str | None = None
        """Principal of the client; None until the client is authenticated."""
        self.is_token_authenticated: bool = False

    def receive(self, frame: Buffer) -> AuthenticationStep | None:
        """Handle a frame; return None if it is a request of an authenticated client."""
        if self._state is _State.COMPLETE:
            step = self._check_session(frame)
            if step is not None or self._state is _State.COMPLETE:
                return step
        if len(frame) > self._settings.config["sasl.server.max.receive.size"]:
            text = "Failing SASL authentication due to invalid receive size"
            return AuthenticationStep(failure=text)
        if self._state is _State.WRONG_MECHANISM:
            return self._refused_mechanism_change()
        if self._state is not _State.AUTHENTICATE:
            return self._handle_request(frame)
        if self._uses_authenticate_requests:
            return self._handle_authenticate_request(frame)
        return self._handle_bare_token(bytes(frame))

    # -- sessions --------------------------------------------------------------------------------

    def _check_session(self, frame: Buffer) -> AuthenticationStep | None:
        """Begin a re-authentication for a handshake; refuse a client whose session has expired."""
        if self._expires_at_ms is None:
            return None
        now_ms = self._settings.now_ms()
        if int.from_bytes(frame[:2], "big") == _SASL_HANDSHAKE:
            waited_ms = now_ms - self._reauthentication_begin_ms
            if (
                not self._reauthentication_begin_ms
                or waited_ms >= _REAUTHENTICATION_INTERVAL_MIN_MS
            ):
                self._reauthentication_begin_ms = now_ms
                self._previous = (self._mechanism, self.principal or "")
                self._state = _State.HANDSHAKE
                return None
        if now_ms > self._expires_at_ms:
            return AuthenticationStep(failure="its session has expired", is_delayed=False)
        return None

    def _session_lifetime_ms(self, server: SaslServer) -> int:
        """Return the session's lifetime in milliseconds; 0 if it has ended, or never ends."""
        if not self._settings.behaviour.sasl_reauthentication:
            return 0
        limits = []
        if server.expires_at_ms is not None:
            limits.append(server.expires_at_ms - self._settings.wall_ms())
        if self._settings.config["connections.max.reauth.ms"] > 0:
            limits.append(self._settings.config["connections.max.reauth.ms"])
        if not limits:
            self._expires_at_ms = None
            return 0
        lifetime_ms = max(0, min(limits))
        self._expires_at_ms = self._settings.now_ms() + lifetime_ms
        return lifetime_ms

    # -- the handshake -----------------------------------------------------------------------------

    def _handle_request(self, frame: Buffer) -> AuthenticationStep:
        try:
            header = self._codec.parse_header(frame)
            if header.api_key not in (_API_VERSIONS, _SASL_HANDSHAKE):
                return AuthenticationStep(failure=f"{_unexpected(header)} during SASL handshake.")
            body = frame[header.body_offset :]
            request = self._codec.decode(header.api_key, header.api_version, body)
        except ClientError as error:
            return AuthenticationStep(failure=str(error))
        if isinstance(request, SaslHandshakeRequest):
            return self._handle_handshake(header, request)
        if self._state is not _State.HANDSHAKE_OR_VERSIONS:
            return AuthenticationStep(failure=f"{_unexpected(header)} again", is_delayed=False)
        assert isinstance(request, CodecAnswer)
        if request.response.error is ErrorCode.NONE:
            self._state = _State.HANDSHAKE
        return AuthenticationStep(self._frame(header, request.response))

    def _handle_handshake(
        self, header: RequestHeader, request: SaslHandshakeRequest
    ) -> AuthenticationStep:
        settings = self._settings
        mechanism = request.mechanism
        if header.api_version >= 1:
            self._uses_authenticate_requests = True
        if mechanism not in settings.mechanisms:
            error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            answer = self._frame(header, SaslHandshakeResponse(error, settings.mechanisms))
            return AuthenticationStep(answer, f"Unsupported SASL mechanism {mechanism}")
        if self._previous is not None and self._previous[0] != mechanism:
            self._mechanism = mechanism
            self._state = _State.WRONG_MECHANISM
        else:
            self._mechanism = mechanism
            self._server = settings.server(mechanism)
            self._state = _State.AUTHENTICATE
        return AuthenticationStep(
            self._frame(header, SaslHandshakeResponse(ErrorCode.NONE, settings.mechanisms))
        )

    def _refused_mechanism_change(self) -> AuthenticationStep:
        previous = self._previous[0] if self._previous is not None else ""
        return AuthenticationStep(
            failure=f"SASL mechanism '{self._mechanism}' requested by client is not supported for "
            f"re-authentication of mechanism '{previous}'"
        )

    # -- tokens ------------------------------------------------------------------------------------

    def _handle_bare_token(self, token: bytes) -> AuthenticationStep:
        server = self._server
        assert server is not None
        try:
            challenge = server.evaluate(token)
            if server.is_complete:
                self._session_lifetime_ms(server)
                self._finish(server)
        except SaslError as error:
            is_delayed = isinstance(error, SaslAuthenticationError)
            return AuthenticationStep(failure=str(error), is_delayed=is_delayed)
        return AuthenticationStep((len(challenge).to_bytes(4, "big") + challenge,))

    def _handle_authenticate_request(self, frame: Buffer) -> AuthenticationStep:
        server = self._server
        assert server is not None
        try:
            header = self._codec.parse_header(frame)
            body = frame[header.body_offset :]
            request = self._codec.decode(header.api_key, header.api_version, body)
        except ClientError as error:
            return AuthenticationStep(failure=str(error), is_delayed=False)
        if not isinstance(request, SaslAuthenticateRequest):
            text = f"{_unexpected(header)} during SASL authentication."
            return AuthenticationStep(self._illegal_state(header, request), text)
        try:
            challenge = server.evaluate(request.token)
            if server.is_complete:
                self._finish(server)
        except SaslAuthenticationError as error:
            return self._refused(header, str(error), str(error))
        except SaslError as error:
            return self._refused(header, self._public_error_text(), str(error))
        lifetime_ms = self._session_lifetime_ms(server) if server.is_complete else 0
        return AuthenticationStep(
            self._frame(
                header, SaslAuthenticateResponse(ErrorCode.NONE, None, challenge, lifetime_ms)
            )
        )

    def _public_error_text(self) -> str:
        """Return the error text for a client that must not learn the true reason."""
        during = ""
        if self._settings.behaviour.sasl_reauthentication:
            kind = "re-authentication" if self._previous is not None else "authentication"
            during = f" during {kind}"
        return (
            f"Authentication failed{during} due to invalid credentials with SASL mechanism "
            f"{self._mechanism}"
        )

    def _finish(self, server: SaslServer) -> None:
        """Complete the exchange; raise ``SaslAuthenticationError`` if the principal changes."""
        principal = f"User:{server.user}"
        if self._previous is not None and self._previous[1] != principal:
            before, after = self._previous[1].replace(":", ".", 1), principal.replace(":", ".", 1)
            raise SaslAuthenticationError(
                f"Cannot change principals during re-authentication from {before}: {after}"
            )
        self.principal = principal
        self.is_token_authenticated = server.is_token_authenticated
        self._state = _State.COMPLETE
        self._server = None

    # -- answers -----------------------------------------------------------------------------------

    def _refused(self, header: RequestHeader, public_text: str, reason: str) -> AuthenticationStep:
        response = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, public_text)
        return AuthenticationStep(self._frame(header, response), reason)

    def _illegal_state(self, header: RequestHeader, request: object) -> Sequence[Buffer]:
        try:
            response = error_response(request, ErrorCode.ILLEGAL_SASL_STATE)
        except UsageError:
            return ()
        return self._frame(header, response, request)

    def _frame(
        self, header: RequestHeader, response: object, request: object = None
    ) -> Sequence[Buffer]:
        return self._codec.encode_frame(
            header.api_key, header.api_version, header.correlation_id, response, request
        )


def _unexpected(header: RequestHeader) -> str:
    return f"Unexpected Kafka request of type {header.api_key}"
