"""Members of consumer groups, and requests to coordinators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekafka.tests.fidelity.stage.stage import Stage

OFFSETS = "__consumer_offsets"
_SESSION_MS = 10_000
_REBALANCE_MS = 20_000
NOT_YET = ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR")
_RETRIED = ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS")


def have_coordinator(stage: Stage, *replicas: int) -> None:
    """Create the topic of offsets with these replicas, the coordinator first."""
    stage.create(OFFSETS, (replicas,), {"cleanup.policy": "compact"})
    stage.topics.remove(OFFSETS)
    wait_coordinator(stage, replicas[0])


def wait_coordinator(stage: Stage, broker: int, group: str = "some group") -> None:
    """Wait until a broker coordinates groups."""

    def serves() -> bool:
        tree = stage.normalised(offsets_of(stage, broker, group, {}))
        if isinstance(tree, str):
            return False
        return bool(tree.get("errorCode", "NONE") == "NONE")

    stage.wait(f"{broker} coordinates", serves, 20)
    stage.pass_time(0.3)


def coordinator(stage: Stage, broker: int, key: str, kind: int = 0) -> Any:
    """Ask a broker for the coordinator of a group (0) or a transactional id (1)."""
    return stage.ask(broker, "FindCoordinator", key=key, keyType=kind)


def offsets_of(
    stage: Stage, broker: int, group: str, partitions: Mapping[str, Sequence[int]] | None
) -> Any:
    """Send OffsetFetch, and return the response."""
    asked = None
    if partitions is not None:
        asked = [{"name": name, "partitionIndexes": list(n)} for name, n in partitions.items()]
    return stage.ask(broker, "OffsetFetch", groupId=group, topics=asked)


def commit(
    stage: Stage,
    broker: int,
    group: str,
    offsets: Mapping[tuple[str, int], int],
    *,
    generation: int = -1,
    member: str = "",
    text: str | None = "",
    instance: str | None = None,
) -> Any:
    """Send OffsetCommit, by default from outside the group, and return the response."""
    topics = [
        {
            "name": name,
            "partitions": [
                {"partitionIndex": n, "committedOffset": offset, "committedMetadata": text}
            ],
        }
        for (name, n), offset in offsets.items()
    ]
    return stage.ask(
        broker,
        "OffsetCommit",
        groupId=group,
        generationIdOrMemberEpoch=generation,
        memberId=member,
        groupInstanceId=instance,
        retentionTimeMs=-1,
        topics=topics,
    )


class Member:
    """A member of a group, with a connection of its own."""

    def __init__(self, stage: Stage, broker: int, group: str, instance: str | None = None) -> None:
        self._stage = stage
        self._client = stage.client(broker)
        self.group = group
        self.instance = instance
        self.id = ""
        self.generation = -1
        self.leader = ""
        """Id of the leader of the member's generation."""

    def move_to(self, broker: int) -> None:
        """Connect to another coordinator."""
        self._client.close()
        self._client = self._stage.client(broker)

    def has_answer(self) -> bool:
        """Return True if the response to the pending request has arrived."""
        return self._client.has_answer()

    def join(self, **others: Any) -> dict[str, Any]:
        """Join, and return the response as it is recorded."""
        self.begin_join(**others)
        return self.end_join()

    def begin_join(
        self,
        protocols: Sequence[str] = ("range",),
        kind: str = "consumer",
        session_ms: int = _SESSION_MS,
        rebalance_ms: int = _REBALANCE_MS,
        metadata: bytes | None = None,
    ) -> None:
        """Send JoinGroup; first get a member id where the release requires one (KIP-394)."""
        timeouts_ms = session_ms, rebalance_ms
        if self.has_to_knock():
            self.id = self.knock(protocols, kind, timeouts_ms, metadata)["memberId"]
        self._send_join(protocols, kind, timeouts_ms, metadata)

    def has_to_knock(self) -> bool:
        """Return True if the member must get an id before it may join."""
        return self._stage.version("JoinGroup") >= 4 and not self.id and self.instance is None

    def knock(
        self,
        protocols: Sequence[str],
        kind: str,
        timeouts_ms: tuple[int, int],
        metadata: bytes | None = None,
    ) -> dict[str, Any]:
        """Send JoinGroup without a member id, and return the raw response."""
        self._send_join(protocols, kind, timeouts_ms, metadata)
        return self._client.receive()

    def _send_join(
        self,
        protocols: Sequence[str],
        kind: str,
        timeouts_ms: tuple[int, int],
        metadata: bytes | None,
    ) -> None:
        session_ms, rebalance_ms = timeouts_ms
        fields = {
            "groupId": self.group,
            "sessionTimeoutMs": session_ms,
            "rebalanceTimeoutMs": rebalance_ms,
            "memberId": self.id,
            "groupInstanceId": self.instance,
            "protocolType": kind,
            "protocols": [
                {"name": name, "metadata": name.encode() if metadata is None else metadata}
                for name in protocols
            ],
        }
        self._client.send("JoinGroup", self._stage.version("JoinGroup"), fields)

    def end_join(self) -> dict[str, Any]:
        found: dict[str, Any] = self._stage.normalised(self.take_join())
        return found

    def take_join(self) -> dict[str, Any]:
        """Return the raw response to the pending JoinGroup."""
        tree = self._client.receive(30)
        if not tree["errorCode"]:
            self.id, self.generation = tree["memberId"], tree["generationId"]
            self.leader = tree["leader"]
        return tree

    def begin_sync(self, assignments: Mapping[str, str] | None = None, **others: Any) -> None:
        """Send SyncGroup; the leader sends the assignments of all members."""
        given = [
            {"memberId": member, "assignment": text.encode()}
            for member, text in (assignments or {}).items()
        ]
        fields = {
            "groupId": self.group,
            "generationId": self.generation,
            "memberId": self.id,
            "groupInstanceId": self.instance,
            "protocolType": "consumer",
            "protocolName": "range",
            "assignments": given,
            **others,
        }
        self._client.send("SyncGroup", self._stage.version("SyncGroup"), fields)

    def end_sync(self) -> dict[str, Any]:
        found: dict[str, Any] = self._stage.normalised(self._client.receive(30))
        return found

    def sync(self, assignments: Mapping[str, str] | None = None, **others: Any) -> dict[str, Any]:
        self.begin_sync(assignments, **others)
        return self.end_sync()

    def heartbeat(self, generation: int | None = None) -> str:
        """Send a heartbeat, and return the name of the error, or NONE."""
        fields = {
            "groupId": self.group,
            "generationId": self.generation if generation is None else generation,
            "memberId": self.id,
            "groupInstanceId": self.instance,
        }
        tree = self._client.ask("Heartbeat", self._stage.version("Heartbeat"), fields)
        return str(self._stage.normalised(tree)["errorCode"])

    def leave(self) -> dict[str, Any]:
        fields = {
            "groupId": self.group,
            "memberId": self.id,
            "members": [{"memberId": self.id, "groupInstanceId": self.instance}],
        }
        version = self._stage.version("LeaveGroup")
        found: dict[str, Any] = self._stage.normalised(
            self._client.ask("LeaveGroup", version, fields)
        )
        return found

    def close(self) -> None:
        self._client.close()


def ask_until_ready(stage: Stage, broker: int, api: str, **fields: Any) -> Any:
    """Return the first response that has no error of a coordinator that is not ready."""
    found: list[Any] = []

    def is_ready() -> bool:
        tree = stage.normalised(stage.ask(broker, api, **fields))
        found[:] = [tree]
        return not isinstance(tree, dict) or tree["errorCode"] not in _RETRIED

    stage.wait(f"{broker} answers {api}", is_ready, 20)
    return found[0]
