"""The command line tools that tests of clients look for in a container with Kafka.

``container.py COMMAND...`` does what ``kafka-acls``, ``kafka-configs`` and ``kafka-topics`` would.
``FAKEKAFKA_CONTAINER`` holds the configuration of an admin client, as JSON.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

_TIMEOUT_S = 20
_FLAGS = {"--add", "--remove", "--list", "--alter", "--force", "--cluster"}
_RESOURCES = {
    "--topic": ResourceType.TOPIC,
    "--group": ResourceType.GROUP,
    "--transactional-id": ResourceType.TRANSACTIONAL_ID,
}
_SCRAM = re.compile(r"(SCRAM-SHA-\d+)=\[(?:iterations=(\d+),)?password=([^\]]*)\]")


def options_of(words: Iterable[str]) -> dict[str, str]:
    found = {}
    left = iter(words)
    for word in left:
        found[word] = "" if word in _FLAGS else next(left)
    return found


def wait(futures: Iterable[Future[Any]]) -> None:
    for future in futures:
        future.result(_TIMEOUT_S)


def acls(admin: AdminClient, options: dict[str, str]) -> None:
    if "--list" in options:
        principal = options.get("--principal")
        for acl in admin.describe_acls(any_acl(principal)).result(_TIMEOUT_S):
            print(acl)
        return
    resource, name = ResourceType.BROKER, "kafka-cluster"
    for option, kind in _RESOURCES.items():
        if option in options:
            resource, name = kind, options[option]
    permission = "ALLOW" if "--allow-principal" in options else "DENY"
    said = (
        resource,
        name,
        ResourcePatternType.LITERAL,
        options[f"--{permission.lower()}-principal"],
        options.get(f"--{permission.lower()}-host", "*"),
        AclOperation[options["--operation"].upper()],
        AclPermissionType[permission],
    )
    if "--add" in options:
        wait(admin.create_acls([AclBinding(*said)]).values())
    else:
        wait(admin.delete_acls([AclBindingFilter(*said)]).values())


def any_acl(principal: str | None) -> AclBindingFilter:
    anything: Any = None
    return AclBindingFilter(
        ResourceType.ANY,
        anything,
        ResourcePatternType.ANY,
        principal or anything,
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )


def configs(admin: AdminClient, options: dict[str, str]) -> None:
    if options["--entity-type"] != "users":
        raise SystemExit(f"no tool for {options}")
    upsertions: list[Any] = [
        UserScramCredentialUpsertion(
            options["--entity-name"],
            ScramCredentialInfo(
                ScramMechanism[mechanism.replace("-", "_")], int(iterations or 4096)
            ),
            password.encode(),
        )
        for mechanism, iterations, password in _SCRAM.findall(options["--add-config"])
    ]
    wait(admin.alter_user_scram_credentials(upsertions).values())


def topics(admin: AdminClient, options: dict[str, str]) -> None:
    grown = NewPartitions(options["--topic"], int(options["--partitions"]))
    wait(admin.create_partitions([grown]).values())


TOOLS = {"kafka-acls": acls, "kafka-configs": configs, "kafka-topics": topics}


def main() -> None:
    words = shlex.split(" ".join(sys.argv[1:]))
    admin = AdminClient(json.loads(os.environ["FAKEKAFKA_CONTAINER"]))
    tool = words[0].rpartition("/")[2].removesuffix(".sh")
    TOOLS[tool](admin, options_of(words[1:]))


main()
