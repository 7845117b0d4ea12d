"""TLS of a listener: its context, and the principals of clients by their certificates."""

from __future__ import annotations

import asyncio
import re
import ssl
from functools import partial
from pathlib import Path

from ....protocol.errors import UsageError
from ....protocol.security.configuration import ANONYMOUS
from .certificates import Certificate

_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_RULE = re.compile(r"\s*(?:DEFAULT|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*")
_REFERENCE = re.compile(r"\$(\d)")


def server_context(certificate: Certificate, authority: Path, client_auth: str) -> ssl.SSLContext:
    """Return the TLS context of a listener: TLS 1.2 and 1.3, as Kafka's default."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate.certificate_path, certificate.key_path)
    context.load_verify_locations(authority)
    context.verify_mode = _CLIENT_AUTH[client_auth]
    return context


class PrincipalRules:
    """Maps the name in a client's certificate to a principal: ``ssl.principal.mapping.rules``.

    The rules are tried in order; the first rule that matches the whole name decides. Kafka:
    ``SslPrincipalMapper`` (KIP-371, since 2.2).
    """

    def __init__(self, text: str) -> None:
        """Raises ``UsageError`` if ``text`` is not a list of rules."""
        self._rules: list[tuple[re.Pattern[str], str, str] | None] = []
        at = 0
        text = text.strip() or "DEFAULT"
        while True:
            match = _RULE.match(text, at)
            if match is None:
                raise UsageError(f"ssl.principal.mapping.rules: invalid rule {text[at:]!r}")
            pattern, replacement, case = match.groups()
            if pattern is None:
                self._rules.append(None)
            else:
                self._rules.append((re.compile(pattern), replacement, case))
            at = match.end()
            if at == len(text):
                return
            if text[at] != ",":
                raise UsageError(f"ssl.principal.mapping.rules: invalid rule {text[at:]!r}")
            at += 1

    def name(self, distinguished_name: str) -> str | None:
        """Return the principal's name; None if no rule applies."""
        for rule in self._rules:
            if rule is None:
                return distinguished_name.strip()
            pattern, replacement, case = rule
            match = pattern.fullmatch(distinguished_name)
            if match is not None:
                principal = _REFERENCE.sub(partial(_group, match), replacement)
                if case == "L":
                    principal = principal.lower()
                elif case == "U":
                    principal = principal.upper()
                return principal.strip()
        return None


def _group(match: re.Match[str], reference: re.Match[str]) -> str:
    """Return the text of a referenced group; a reference to a missing group stays as it is."""
    number = int(reference[1])
    return match[number] or "" if number <= match.re.groups else reference[0]


def peer_principal(transport: asyncio.BaseTransport, rules: PrincipalRules) -> str | None:
    """Return the principal of a client on TLS; None if no rule applies to its certificate."""
    ssl_object = transport.get_extra_info("ssl_object")
    der = None if ssl_object is None else ssl_object.getpeercert(True)
    if der is None:
        return ANONYMOUS
    from cryptography import x509

    subject = x509.load_der_x509_certificate(der).subject
    name = rules.name(subject.rfc4514_string())
    return None if name is None else f"User:{name}"
