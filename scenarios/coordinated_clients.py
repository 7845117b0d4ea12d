"""Consumer groups and transactional applications of a scenario, and the checks on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..protocol.data import READ_COMMITTED
from ..protocol.values import TopicPartition
from .spec import GroupSpec, ScenarioSpec, TransformerSpec

if TYPE_CHECKING:
    from ..actors.clients.group_consumer import SimulatedGroupConsumer
    from ..testing.simulation import Simulation


class GroupMembers:
    """The members of one ``GroupSpec``, which join one after another."""

    def __init__(self, simulation: Simulation, spec: GroupSpec, partitions: int) -> None:
        self._simulation = simulation
        self._partitions = partitions
        self.spec = spec
        self.members: list[SimulatedGroupConsumer] = []

    def join(self, number: int) -> None:
        """Start the member with this number, which joins the group."""
        spec, name = self.spec, self.spec.member_names[number]
        self.members.append(
            self._simulation.group_consumer(
                spec.group_id,
                spec.topics,
                name,
                assignor=spec.assignor,
                session_timeout_ms=spec.session_timeout_ms,
                heartbeat_interval_ms=spec.heartbeat_interval_ms,
                auto_commit_interval_ms=spec.auto_commit_interval_ms,
                group_instance_id=name if spec.is_static else None,
            )
        )

    @property
    def has_settled(self) -> bool:
        """True if the group is stable, every partition has an owner, and all offsets are committed.

        During a cooperative handover (KIP-429), a group can be stable while the partitions being
        moved are unassigned until the next rebalance.
        """
        view = self._simulation.group(self.spec.group_id)
        assigned = Counter(partition for member in view.members for partition in member.assignment)
        return (
            view.state == "Stable"
            and len(view.members) == len(self.members)
            and len(assigned) == self._partitions
            and assigned == self._owner_counts()
            and not any(view.lag.values())
        )

    def _owner_counts(self) -> Counter[TopicPartition]:
        return Counter(partition for member in self.members for partition in member.owned)

    def problems(self) -> Iterable[str]:
        """Yield problems with partitions of a settled group that have no owner, or two."""
        owner_counts = self._owner_counts()
        duplicates = [str(partition) for partition, count in owner_counts.items() if count > 1]
        if duplicates:
            yield f"group {self.spec.group_id}: two members own {', '.join(duplicates)}"
        if self.members and len(owner_counts) < self._partitions:
            missing = self._partitions - len(owner_counts)
            yield f"group {self.spec.group_id}: no member owns {missing} of its partitions"


class Transformation:
    """The clients of a ``TransformerSpec``, which copy its input to its output in transactions."""

    def __init__(self, simulation: Simulation, spec: TransformerSpec, counts: dict[str, int]):
        self._simulation = simulation
        self.spec = spec
        self._inputs = [(spec.input, number) for number in range(counts[spec.input])]
        self._outputs = [(spec.output, number) for number in range(counts[spec.output])]

    def start(self) -> None:
        spec = self.spec
        self._simulation.transformer(
            spec.transactional_id,
            self._inputs,
            self._outputs,
            spec.name,
            group_id=spec.consumer_group,
            transaction_timeout_ms=spec.transaction_timeout_ms,
        )

    @property
    def has_settled(self) -> bool:
        """True if the committed offsets have reached the end of the input."""
        lag = self._simulation.group(self.spec.consumer_group).lag
        written = [
            TopicPartition(*key)
            for key in self._inputs
            if self._simulation.partition(*key).high_watermark > 0
        ]
        return all(lag.get(key) == 0 for key in written)

    def problems(self) -> Iterable[str]:
        """Yield problems with records that a read_committed consumer does not find exactly once."""
        output_counts = Counter(self._read(self._outputs))
        input_counts = Counter(self._read(self._inputs))
        where = f"transformer {self.spec.name}"
        lost = input_counts - output_counts
        doubled = sum(max(0, output_counts[value] - count) for value, count in input_counts.items())
        unmatched = sum(
            count for value, count in output_counts.items() if value not in input_counts
        )
        if lost:
            yield f"{where}: {lost.total()} records of {self.spec.input} were not copied"
        if doubled:
            yield f"{where}: {doubled} records of {self.spec.output} are duplicates"
        if unmatched and not self._has_deleted_input():
            yield (
                f"{where}: {unmatched} records of {self.spec.output} match "
                f"no record of {self.spec.input}"
            )

    def _has_deleted_input(self) -> bool:
        """Return whether input records were deleted, so that only their copies remain."""
        return any(self._simulation.partition(*key).log_start_offset > 0 for key in self._inputs)

    def _read(self, partitions: list[tuple[str, int]]) -> list[bytes | None]:
        found: list[bytes | None] = []
        simulation = self._simulation
        consumer = simulation.consumer(partitions, isolation_level=READ_COMMITTED)
        consumer.on_batch = lambda _, batch, __: found.extend(r.value for r in batch.records())

        def has_read_all() -> bool:
            return all(
                consumer.positions.get(TopicPartition(*key), -1)
                >= simulation.partition(*key).high_watermark
                for key in partitions
            )

        simulation.run_until(has_read_all, every_ms=20)
        consumer.unassign(list(consumer.positions))
        return found


class CoordinatedClients:
    """All groups and transactional applications of a scenario."""

    def __init__(self, simulation: Simulation, spec: ScenarioSpec) -> None:
        counts = {t.name: len(t.assignment) or t.partitions for t in spec.cluster.topics}
        self.groups: list[GroupMembers] = [
            GroupMembers(simulation, group, sum(counts[topic] for topic in group.topics))
            for group in spec.groups
        ]
        self.transformers: list[Transformation] = [
            Transformation(simulation, transformer, counts) for transformer in spec.transformers
        ]

        self._all: list[GroupMembers | Transformation] = [*self.groups, *self.transformers]

    @property
    def have_settled(self) -> bool:
        return all(one.has_settled for one in self._all)

    def problems(self) -> list[str]:
        """Return every broken promise, for a cluster that has settled."""
        return [text for one in self._all for text in one.problems()]
