"""Temporary."""
from __future__ import annotations
from ..protocol.admin import *
from ..protocol.errors import ErrorCode, KafkaError
from ..protocol.values import ReplicaAssignment, TopicPartition
from ..election.assignment import assign_replicas_to_brokers


class AdminManager:
    def __init__(self, *, host, config, behaviour, zk, controller, metadata_cache, wait):
        self.__dict__.update(locals())

    def check_auto_creation(self, name, others):
        return ErrorCode.NONE

    def auto_topic(self, name):
        return NewTopic(name, self.config["num.partitions"], self.config["default.replication.factor"])

    async def create_topics(self, request):
        if not self.controller.is_active:
            return CreateTopicsResponse(tuple(TopicResult(t.name, ErrorCode.NOT_CONTROLLER) for t in request.topics))
        res = []
        for t in request.topics:
            brokers = [(b.id, b.rack) for b in self.metadata_cache.alive_brokers()]
            if t.assignment:
                a = {p: ReplicaAssignment(r) for p, r in t.assignment}
            else:
                n = t.partitions if t.partitions > 0 else 1
                rf = t.replication_factor if t.replication_factor > 0 else 1
                a = {p: ReplicaAssignment(tuple(r)) for p, r in assign_replicas_to_brokers(sorted(brokers), n, rf, rng=self.host.rng).items()}
            await self.zk.set_or_create_entity_configs("topics", t.name, dict(t.config))
            import inspect
            await self.zk.create_topic_assignment(t.name, a)
            res.append((t.name, len(a)))
        ok = await self.wait(lambda: all(
            len([s for s in self.metadata_cache.topic_partitions(n) if s.leader >= 0]) == c for n, c in res), request.timeout_ms)
        return CreateTopicsResponse(tuple(TopicResult(n, ErrorCode.NONE if ok else ErrorCode.REQUEST_TIMED_OUT) for n, c in res))
