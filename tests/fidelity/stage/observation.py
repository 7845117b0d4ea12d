"""Observes a cluster through clients and ZooKeeper, as lines that can be compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.fidelity.protocol.client import Closed
from fakekafka.tests.fidelity.sides.side import Side
from fakekafka.tests.fidelity.stage.normalisation import text
from fakekafka.tests.fidelity.stage.spoken import version_of

ABSENT = "-"
_AS_STORED = "as stored"
_FIRST_WITHOUT_CREATION = 4
"""First version of Metadata that need not create topics; older ones are asked for all topics."""

Stored = dict[str, Any]
"""The state of a partition in ZooKeeper."""


class Observer:
    """Observes one cluster during a scenario."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self.first_controller_epoch = 0
        self.compares_epochs = True
        """False where the number of controller elections is left to chance."""

    # -- ZooKeeper -----------------------------------------------------------------------------

    def json_of(self, path: str) -> Any:
        """Return the content of a znode; None if it does not exist."""
        found = self._side.znode(path)
        if found is None:
            return None
        try:
            return json.loads(found.data)
        except ValueError:
            return found.data.decode("utf-8", "replace")

    def registered(self) -> list[int]:
        names = self._side.children("/brokers/ids") or []
        return sorted(int(name) for name in names)

    def controller(self) -> int | None:
        node = self.json_of("/controller")
        return node["brokerid"] if isinstance(node, dict) else None

    def controller_epoch(self) -> int:
        return int(self.json_of("/controller_epoch") or 0)

    def state(self, topic: str, partition: int | str) -> dict[str, Any] | None:
        """Return leader, epochs and ISR from the state znode, with its version."""
        found = self._side.znode(f"/brokers/topics/{topic}/partitions/{partition}/state")
        if found is None:
            return None
        node = json.loads(found.data)
        state = {"leader": node["leader"], "isr": sorted(node["isr"])}
        if self.compares_epochs:
            state["epoch"] = node["leader_epoch"]
            state["znode"] = found.version
            state["controller"] = node["controller_epoch"] - self.first_controller_epoch
        if node.get("leader_recovery_state"):
            state["recovery"] = node["leader_recovery_state"]
        return state

    def assignment(self, topic: str) -> dict[int, list[int]]:
        node = self.json_of(f"/brokers/topics/{topic}")
        if not isinstance(node, dict):
            return {}
        return {int(p): replicas for p, replicas in sorted(node["partitions"].items())}

    # -- everything ----------------------------------------------------------------------------

    def look(self, topics: Sequence[str]) -> dict[str, str]:
        """Return the state of the cluster, and of these topics."""
        registered = self.registered()
        seen = {
            "brokers": text(registered),
            "controller": "alive" if self.controller() in registered else "none",
        }
        if self.compares_epochs:
            seen["controller epoch"] = str(self.controller_epoch() - self.first_controller_epoch)
        deleting = self._side.children("/admin/delete_topics")
        if deleting:
            seen["deleting"] = text(deleting)
        for name in ("reassign_partitions", "preferred_replica_election"):
            if self._side.znode(f"/admin/{name}") is not None:
                seen[name] = "is there"
        stored = self._stored(topics)
        for partition, state in stored.items():
            seen[f"{partition} replicas"] = text(state["replicas"])
            shown = {key: value for key, value in state.items() if key != "replicas"}
            seen[partition] = plain(shown)
        seen.update(self._told(topics, stored, registered))
        return seen

    def leads(self, broker: int, topics: Sequence[str]) -> bool:
        """Return True if the broker leads a partition of the topics according to ZooKeeper."""
        return any(state.get("leader") == broker for state in self._stored(topics).values())

    def replicas_catch_up(self, topics: Sequence[str]) -> bool:
        """Return True if a living replica is outside the ISR of a partition."""
        living = set(self.registered())
        return any(
            not living.intersection(state["replicas"]) <= set(state["isr"])
            for state in self._stored(topics).values()
            if state.get("leader", -1) >= 0
        )

    def isrs_are_late(self, topics: Sequence[str]) -> bool:
        """Return True if an ISR contains dead brokers, or metadata has another ISR than
        ZooKeeper."""
        living = set(self.registered())
        stored = self._stored(topics)
        led = {name for name, state in stored.items() if state.get("leader", -1) in living}
        if any(not living.issuperset(stored[name]["isr"]) for name in led):
            return True
        return any(
            "isr" in line
            for broker in sorted(self._side.up - self._side.frozen)
            for name, line in self._metadata(broker, topics, stored, sorted(living)).items()
            if name in led
        )

    def everybody_knows(self, shapes: Mapping[str, int]) -> bool:
        """Return True if the metadata of all brokers has the stored leaders of the topics, given
        with their numbers of partitions."""
        stored = self._stored(list(shapes))
        partitions = [f"{name}-{number}" for name, n in shapes.items() for number in range(n)]
        if any("leader" not in stored.get(partition, ()) for partition in partitions):
            return False
        return all(
            partition in lines and "leader" not in lines[partition]
            for lines in (
                self._metadata(broker, list(shapes), stored, [])
                for broker in sorted(self._side.up - self._side.frozen)
            )
            for partition in partitions
        )

    def _stored(self, topics: Sequence[str]) -> dict[str, Stored]:
        """Return the state of each partition in ZooKeeper."""
        found = {}
        for topic in topics:
            node = self.json_of(f"/brokers/topics/{topic}")
            if not isinstance(node, dict):
                continue
            for partition, replicas in sorted(node["partitions"].items()):
                state = {"replicas": replicas, **(self.state(topic, partition) or {})}
                for kind in ("adding_replicas", "removing_replicas"):
                    if moving := (node.get(kind) or {}).get(partition):
                        state[kind] = moving
                found[f"{topic}-{partition}"] = state
        return found

    def _told(
        self, topics: Sequence[str], stored: Mapping[str, Stored], registered: Sequence[int]
    ) -> dict[str, str]:
        """Return where the brokers' metadata of topics differs from ZooKeeper."""
        told: dict[str, dict[int, str]] = {}
        asked = sorted(self._side.up - self._side.frozen)
        for broker in asked:
            for key, line in self._metadata(broker, topics, stored, registered).items():
                told.setdefault(key, {})[broker] = line
        alike: dict[str, list[str]] = {}
        for key, lines in told.items():
            distinct = set(lines.values())
            if len(distinct) == 1 and len(lines) == len(asked):
                line = distinct.pop()
            else:
                line = "; ".join(f"by {b} {lines.get(b, 'not at all')}" for b in asked)
            alike.setdefault(line, []).append(key)
        alike.pop(_AS_STORED, None)
        return {f"told: {line}": " ".join(sorted(keys)) for line, keys in alike.items()}

    def _metadata(
        self,
        broker: int,
        topics: Sequence[str],
        stored: Mapping[str, Stored],
        registered: Sequence[int],
    ) -> dict[str, str]:
        version = version_of(self._side.kafka_version, "Metadata")
        creates = version < _FIRST_WITHOUT_CREATION
        asked = None if creates else [{"name": name} for name in topics]
        fields = {"topics": asked, "allowAutoTopicCreation": False}
        try:
            client = self._side.connect(broker)
        except Closed:
            return {"cluster": "refused"}
        try:
            tree = client.ask("Metadata", version, fields)
        except Closed:
            return {"cluster": "no answer"}
        finally:
            client.close()
        brokers = sorted(one["nodeId"] for one in tree["brokers"])
        controller = "known" if tree["controllerId"] in registered else "unknown"
        lines = {"cluster": f"brokers {text(brokers)}, controller {controller}"}
        if creates:
            lines |= dict.fromkeys(topics, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name)
        for topic in tree["topics"]:
            name = topic["name"]
            if name not in topics:
                continue
            lines.pop(name, None)
            if topic["errorCode"]:
                lines[name] = ErrorCode(topic["errorCode"]).name
            for partition in topic["partitions"]:
                key = f"{name}-{partition['partitionIndex']}"
                lines[key] = _beside(partition, stored.get(key, {}))
        return lines


def _beside(told: Mapping[str, Any], stored: Mapping[str, Any]) -> str:
    """Return how a broker's metadata of a partition differs from ZooKeeper."""
    words: dict[str, Any] = {}
    if told["errorCode"]:
        words["error"] = ErrorCode(told["errorCode"]).name
    if told["leaderId"] != stored.get("leader"):
        words["leader"] = told["leaderId"]
    if "epoch" in stored and told.get("leaderEpoch", stored["epoch"]) != stored["epoch"]:
        words["epoch"] = told["leaderEpoch"]
    if told["replicaNodes"] != stored.get("replicas"):
        words["replicas"] = told["replicaNodes"]
    if sorted(told["isrNodes"]) != stored.get("isr"):
        words["isr"] = sorted(told["isrNodes"])
    if told.get("offlineReplicas"):
        words["offline"] = sorted(told["offlineReplicas"])
    return plain(words) if words else _AS_STORED


def plain(words: Mapping[str, Any]) -> str:
    """Return names and values on one line."""
    return ", ".join(f"{name} {text(value).strip(chr(34))}" for name, value in words.items())
