"""Three client libraries that list the topics of a secured cluster, with their own settings."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import warnings
from dataclasses import dataclass
from typing import Any

from fakekafka import Cluster
from fakekafka.wire.kafka.security.certificates import Certificate


@dataclass
class Login:
    """The credentials and the protocol of a client."""

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    user: str = "alice"
    password: str = "secret"
    token: str | None = None
    certificate: Certificate | None = None
    trusts: bool = True
    listener: str | None = None

    def servers(self, cluster: Cluster) -> str:
        return cluster.bootstrap_servers_of(self.listener or self.protocol)


class Refused(Exception):
    """Raised if a client cannot log in; its text is the client's reason."""


def confluent_config(cluster: Cluster, login: Login) -> dict[str, Any]:
    config: dict[str, Any] = {
        "bootstrap.servers": login.servers(cluster),
        "security.protocol": login.protocol,
        "log_level": 0,
    }
    if "SSL" in login.protocol:
        if login.trusts:
            config["ssl.ca.location"] = str(cluster.security.ca_path)
        if login.certificate is not None:
            config["ssl.certificate.location"] = str(login.certificate.certificate_path)
            config["ssl.key.location"] = str(login.certificate.key_path)
    if login.mechanism is not None:
        config["sasl.mechanism"] = login.mechanism
        if login.mechanism == "OAUTHBEARER":
            config["oauth_cb"] = lambda _: (login.token, 4102444800.0)
        else:
            config.update({"sasl.username": login.user, "sasl.password": login.password})
    return config


def confluent_topics(cluster: Cluster, login: Login) -> set[str]:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    errors: list[str] = []

    def failed(error: Any) -> None:
        errors.append(error.str())

    config = confluent_config(cluster, login)
    config["error_cb"] = failed
    admin = AdminClient(config)
    admin.poll(0)  # gets the token
    deadline_s = 2.0
    while True:
        try:
            return set(admin.list_topics(timeout=0.5).topics)
        except KafkaException as error:
            admin.poll(0)
            deadline_s -= 0.5
            told = [text for text in errors if "brokers are down" not in text]
            if told or deadline_s <= 0:
                raise Refused(" ".join(told) or str(error)) from None


def _context(cluster: Cluster, login: Login) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=cluster.security.ca_path if login.trusts else None)
    context.check_hostname = True
    if login.certificate is not None:
        context.load_cert_chain(login.certificate.certificate_path, login.certificate.key_path)
    return context


def _options(cluster: Cluster, login: Login, provider: type[Any]) -> dict[str, Any]:
    """Return the settings that both Python clients share; ``provider`` supplies a token."""
    options: dict[str, Any] = {
        "bootstrap_servers": login.servers(cluster),
        "security_protocol": login.protocol,
    }
    if "SSL" in login.protocol:
        options["ssl_context"] = _context(cluster, login)
    if login.mechanism is not None:
        options["sasl_mechanism"] = login.mechanism
    if login.mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = provider()
    elif login.mechanism is not None:
        options |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}
    return options


def kafka_python_topics(cluster: Cluster, login: Login) -> set[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaError
        from kafka.net.sasl.oauth import AbstractTokenProvider

        class Provider(AbstractTokenProvider):  # type: ignore[misc]
            def token(self) -> str:
                return login.token or ""

        try:
            options = _options(cluster, login, Provider)
            admin = KafkaAdminClient(bootstrap_timeout_ms=3000, **options)
        except KafkaError as error:
            raise Refused(str(error)) from None
        try:
            return set(admin.list_topics())
        finally:
            admin.close()


def aiokafka_topics(cluster: Cluster, login: Login) -> set[str]:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.abc import AbstractTokenProvider
    from aiokafka.errors import KafkaError

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return login.token or ""

    async def ask() -> set[str]:
        consumer = AIOKafkaConsumer(**_options(cluster, login, Provider))
        try:
            await consumer.start()
            return set(await consumer.topics())
        finally:
            # A task that aiokafka cancels before its first step propagates its CancelledError.
            with contextlib.suppress(asyncio.CancelledError):
                await consumer.stop()

    try:
        return asyncio.run(ask())
    except KafkaError as error:
        raise Refused(repr(error)) from None


TOPICS = {
    "confluent-kafka": confluent_topics,
    "kafka-python": kafka_python_topics,
    "aiokafka": aiokafka_topics,
}
"""Functions by client library that return the topics it sees; they raise ``Refused``."""
