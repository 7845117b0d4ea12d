"""The id that a broker starts with (docs/kafka/brokers.md#start-of-a-broker).

Error messages are worded as in Kafka's log, so that a search for them leads to Kafka's answers.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol.config import BrokerConfig
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.versions import Behaviour
from ..zookeeper.client import KafkaZkClient

MetaProperties = Mapping[str, Mapping[str, str]]
"""The ``meta.properties`` of log directories, by path; empty for a directory without one."""

NO_BROKER_ID = "broker.id must be greater than or equal to 0"
"""Message of ``KafkaConfig`` if an id is neither configured nor to be generated."""

_MOVED_DATA = (
    "If you moved your data, make sure your configured {0} matches. If you intend to create a new "
    "{1}, you should remove all data in your data directories{2}."
)
_SHARED_DIRECTORY = (
    "This could happen if multiple brokers shared a log directory (log.dirs) or partial data was "
    "manually copied from another broker. Found"
)


def named_broker_ids(stored: MetaProperties) -> list[int]:
    """Return the distinct ids in the directories' files; an unreadable id is skipped."""
    texts = [values.get("broker.id", "") for values in stored.values()]
    return list(dict.fromkeys(int(text) for text in texts if text.isdecimal()))


def check_meta_properties(
    stored: MetaProperties, cluster_id: str, configured_id: int, behaviour: Behaviour
) -> int | None:
    """Check the ``meta.properties`` of all log directories and return their broker id, or None.

    Raises ``KafkaError`` (INVALID_CONFIG) if one is unreadable, belongs to another cluster, or has
    another broker id than the others or than ``configured_id`` (below 0 if none is configured).
    """
    for path, values in stored.items():
        _require_readable(path, values)
    if behaviour.meta_properties_before_logs:
        return _check_each(stored, cluster_id, configured_id)
    ids = named_broker_ids(stored)
    _require_equal(stored, ids, behaviour)
    if behaviour.meta_properties_name_cluster:
        _require_cluster(stored, cluster_id)
    stored_id = next(iter(ids), None)
    if stored_id is not None and 0 <= configured_id != stored_id:
        # Since 2.4 Kafka prints a Scala Option.
        shown = f"Some({stored_id})" if behaviour.meta_properties_name_cluster else str(stored_id)
        raise _invalid_config(
            f"InconsistentBrokerIdException: Configured broker.id {configured_id} doesn't match "
            f"stored broker.id {shown} in meta.properties. "
            + _MOVED_DATA.format("broker.id", "broker", " (log.dirs)")
        )
    return stored_id


def _invalid_config(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, text)


def _require_readable(path: str, values: Mapping[str, str]) -> None:
    text = values.get("broker.id")
    if text is not None and (not text.isdecimal() or values.get("version") != "0"):
        raise _invalid_config(
            f"{path}/meta.properties cannot be read: it needs version=0 and a number as "
            f"broker.id, not version={values.get('version')} and broker.id={text}"
        )


def _check_each(stored: MetaProperties, cluster_id: str, configured_id: int) -> int | None:
    """Check directories one by one, as since 3.7: each must match the ids known before it."""
    expected_id = configured_id if configured_id >= 0 else None
    stored_id = None
    for path, values in sorted(stored.items()):
        found = values.get("cluster.id", cluster_id)
        if found != cluster_id:
            raise _invalid_config(
                f"Invalid cluster.id in: {path}/meta.properties. Expected {cluster_id}, but read "
                f"{found}"
            )
        if "broker.id" in values:
            stored_id = int(values["broker.id"])
            expected_id = stored_id if expected_id is None else expected_id
            if stored_id != expected_id:
                raise _invalid_config(
                    f"Stored node id {stored_id} doesn't match previous node id {expected_id} in "
                    f"{path}/meta.properties. " + _MOVED_DATA.format("node id", "node", "")
                )
    return stored_id


def _require_equal(stored: MetaProperties, ids: list[int], behaviour: Behaviour) -> None:
    if not behaviour.meta_properties_name_cluster:
        if len(ids) > 1:
            found = ", ".join(map(str, ids))
            raise _invalid_config(
                "InconsistentBrokerIdException: Failed to match broker.id across log.dirs. "
                f"{_SHARED_DIRECTORY} Set({found})"
            )
        return
    written = {path: dict(values) for path, values in stored.items() if values}
    kinds = list(written.values())
    if any(values != kinds[0] for values in kinds):
        found = "\n".join(
            f"- {path} -> {{{', '.join(f'{key}={value}' for key, value in values.items())}}}"
            for path, values in written.items()
        )
        raise _invalid_config(
            "InconsistentBrokerMetadataException: BrokerMetadata is not consistent across "
            f"log.dirs. {_SHARED_DIRECTORY}:\n{found}"
        )


def _require_cluster(stored: MetaProperties, cluster_id: str) -> None:
    for values in stored.values():
        found = values.get("cluster.id", cluster_id)
        if found != cluster_id:
            raise _invalid_config(
                f"InconsistentClusterIdException: The Cluster ID {cluster_id} doesn't match "
                f"stored clusterId Some({found}) in meta.properties. The broker is trying to join "
                "the wrong cluster. Configured zookeeper.connect may be wrong."
            )


async def resolve_broker_id(config: BrokerConfig, stored_id: int | None, zk: KafkaZkClient) -> int:
    """Return the id a broker starts with: configured, stored on its disk, or generated (CP-194).

    Generated ids count up from ``reserved.broker.max.id`` + 1. Raises ``KafkaError``
    (INVALID_CONFIG) if there is no id and none may be generated.
    """
    configured: int = config["broker.id"]
    if configured >= 0:
        return configured
    if stored_id is not None:
        return stored_id
    if not config["broker.id.generation.enable"]:
        raise _invalid_config(NO_BROKER_ID)
    return int(config["reserved.broker.max.id"]) + await zk.brokers.generate_broker_sequence_id()
