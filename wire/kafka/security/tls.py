"""TLS of a listener: its context, and who the certificate of a client says it is."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from ....protocol.security.configuration import ANONYMOUS
from .certificates import Certificate
from .principal_rules import PrincipalRules

_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def server_context(certificate: Certificate, authority: Path, client_auth: str) -> ssl.SSLContext:
    """The TLS context of a listener: TLS 1.2 and 1.3, as Kafka's default."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate.certificate_path, certificate.key_path)
    context.load_verify_locations(authority)
    context.verify_mode = _CLIENT_AUTH[client_auth]
    return context


def peer_principal(transport: asyncio.BaseTransport, rules: PrincipalRules) -> str | None:
    """The principal of a client on TLS; None where no rule applies to its certificate."""
    ssl_object = transport.get_extra_info("ssl_object")
    der = None if ssl_object is None else ssl_object.getpeercert(True)
    if der is None:
        return ANONYMOUS
    from cryptography import x509

    subject = x509.load_der_x509_certificate(der).subject
    name = rules.name(subject.rfc4514_string())
    return None if name is None else f"User:{name}"
