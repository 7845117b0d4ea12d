"""Certificates made when a cluster starts: of an authority, the brokers and the clients.

Their keys are on elliptic curves, which takes a millisecond each; RSA keys would take a hundred.
"""

from __future__ import annotations

import datetime
import ipaddress
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ....protocol.errors import UsageError
from ....protocol.values import frozen

if TYPE_CHECKING:
    from cryptography import x509

_DAY = datetime.timedelta(days=1)
_LIFETIME_DAYS = 30
STORE_PASSWORD = "fakekafka"
"""Password of the PKCS#12 files, as Java requires one."""


def require_cryptography() -> None:
    """Raise ``UsageError`` if the library that makes certificates is missing."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise UsageError(
            "listeners with TLS need the package cryptography: pip install 'fakekafka[security]'"
        ) from None


@frozen
class Certificate:
    """A certificate with its private key, in files and as text."""

    name: str
    """The distinguished name as a broker sees it, such as ``CN=alice``."""
    certificate_path: Path
    """File with the certificate as PEM."""
    key_path: Path
    """File with the private key as PEM."""
    keystore_path: Path
    """PKCS#12 file with certificate and key, for Java; its password is ``keystore_password``."""

    keystore_password: ClassVar[str] = STORE_PASSWORD
    """Password of the keystore: ``fakekafka``."""

    @property
    def certificate_pem(self) -> str:
        """The certificate as PEM text."""
        return self.certificate_path.read_text()

    @property
    def key_pem(self) -> str:
        """The private key as PEM text."""
        return self.key_path.read_text()


class CertificateAuthority:
    """A certificate authority, with the certificates that it issued in a temporary folder."""

    def __init__(self, name: str = "fakekafka test authority") -> None:
        require_cryptography()
        from cryptography.hazmat.primitives.asymmetric import ec

        self._folder = tempfile.TemporaryDirectory(prefix="fakekafka-tls-")
        self._count = 0
        self.name: str = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._sign_itself()
        self.certificate_path.write_bytes(_pem(self._certificate))

    @property
    def certificate_path(self) -> Path:
        """File with the authority's certificate, which clients trust."""
        return Path(self._folder.name) / "ca.pem"

    @property
    def truststore_path(self) -> Path:
        """PKCS#12 file with the authority's certificate, for Java, with password ``fakekafka``."""
        path = Path(self._folder.name) / "truststore.p12"
        if not path.exists():
            from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
            from cryptography.hazmat.primitives.serialization.pkcs12 import (
                PKCS12Certificate,
                serialize_java_truststore,
            )

            entry = PKCS12Certificate(self._certificate, b"fakekafka-ca")
            encryption = BestAvailableEncryption(STORE_PASSWORD.encode())
            path.write_bytes(serialize_java_truststore([entry], encryption))
        return path

    def close(self) -> None:
        """Remove all files."""
        self._folder.cleanup()

    def issue(
        self,
        common_name: str,
        *,
        hosts: tuple[str, ...] = (),
        organization: str | None = None,
        expired: bool = False,
    ) -> Certificate:
        """Issue a certificate with a new key: a server's if ``hosts`` is given, else a client's."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import pkcs12
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
        if organization is not None:
            attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
        subject = x509.Name(attributes)
        usage = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = self._builder(subject, key.public_key(), expired=expired).add_extension(
            x509.ExtendedKeyUsage([usage]), critical=False
        )
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        self._count += 1
        stem = Path(self._folder.name) / f"{self._count}"
        issued = Certificate(
            certificate.subject.rfc4514_string(),
            stem.with_suffix(".pem"),
            stem.with_suffix(".key"),
            stem.with_suffix(".p12"),
        )
        issued.certificate_path.write_bytes(_pem(certificate))
        key_bytes = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        issued.key_path.touch(mode=0o600)
        issued.key_path.write_bytes(key_bytes)
        issued.keystore_path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                common_name.encode(),
                key,
                certificate,
                [self._certificate],
                serialization.BestAvailableEncryption(STORE_PASSWORD.encode()),
            )
        )
        return issued

    def _builder(
        self, subject: x509.Name, public_key: Any, *, expired: bool
    ) -> x509.CertificateBuilder:
        from cryptography import x509

        now = datetime.datetime.now(datetime.UTC)
        end = now - _DAY if expired else now + _LIFETIME_DAYS * _DAY
        issuer = subject if self.is_new else self._certificate.subject
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 2 * _DAY)
            .not_valid_after(end)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )

    @property
    def is_new(self) -> bool:
        """True until the authority's own certificate is made."""
        return not hasattr(self, "_certificate")

    def _sign_itself(self) -> x509.Certificate:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.x509.oid import NameOID

        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)])
        public_key = self._key.public_key()
        return (
            self._builder(subject, public_key, expired=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(_signing_usage(), critical=True)
            .sign(self._key, hashes.SHA256())
        )


def _signing_usage() -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
