"""Playing of a story: its steps run in order on a simulated cluster, with a check after each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...protocol.errors import FakeKafkaError, UsageError
from ...protocol.values import TopicPartition
from ...testing.handles.message_gate import MessageGate
from ...testing.running import WaitTimeout
from ..spec import OutcomeExpect, StateExpect, StepSpec, StorySpec
from .actions import perform
from .clients import StoryClients
from .logs import LogRecord
from .state import StoryState, differences, read_state

if TYPE_CHECKING:
    from ...testing.simulation import Simulation


@dataclass(frozen=True, slots=True)
class StepResult:
    """A step that was played, and the state of the partition after it."""

    name: str
    at_ms: float
    """Virtual milliseconds since the start of the story."""
    state: StoryState
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run, derived from its last state."""

    lost: tuple[str, ...]
    """Acknowledged values that the leader does not hold, in the order of their answers."""
    duplicated: tuple[str, ...]
    """Values that the leader holds more than once."""
    differ_at: int | None
    """First offset at which two replicas hold different records."""
    sentences: tuple[str, ...]


@dataclass
class StoryResult:
    """All steps of a run and its outcome."""

    story: StorySpec
    kafka_version: str
    steps: list[StepResult] = field(default_factory=list)
    outcome: Outcome | None = None
    """Outcome after the last step; None if a step failed."""


class StoryRun:
    """A run of a story in a simulation that is already set up."""

    def __init__(
        self,
        simulation: Simulation,
        story: StorySpec,
        kafka_version: str,
        create_topic: Callable[[str], None],
        elapsed_ms: Callable[[], float],
    ) -> None:
        self.simulation = simulation
        self.story: StorySpec = story
        self.where: TopicPartition = TopicPartition(story.topic, story.partition)
        self.clients: StoryClients = StoryClients(
            simulation, story, lambda: self.read_state().leader
        )
        self.gate: MessageGate = MessageGate(simulation.running)
        self.result: StoryResult = StoryResult(story, kafka_version)
        self._create_topic = create_topic
        self._elapsed_ms = elapsed_ms

    def play(self) -> list[str]:
        """Play the steps up to the first that fails; return the problems."""
        for number, step in enumerate(self.story.steps):
            problems = self._play_step(step)
            state = self.read_state()
            problems = problems or differences(step.expect, state, self.story)
            self.result.steps.append(
                StepResult(step.name, self._elapsed_ms(), state, tuple(problems))
            )
            if problems:
                where = f"kafka_version {self.result.kafka_version}, step {number} ({step.name})"
                return [f"{where}: {problem}" for problem in problems]
        outcome = self.result.outcome = outcome_of(
            self.result.steps[-1].state, self.clients.promised
        )
        problems = outcome_differences(self.story.outcome, outcome)
        return [f"kafka_version {self.result.kafka_version}, outcome: {text}" for text in problems]

    def _play_step(self, step: StepSpec) -> list[str]:
        runtime = self.simulation.runtime
        for action in step.actions:
            runtime.current_step = f"{action.action}: {step.name}"
            try:
                perform(self, action)
            except WaitTimeout as error:
                return [str(error)]
            except (FakeKafkaError, KeyError) as error:
                return [f"{action.action}: {error}"]
            finally:
                runtime.current_step = None
        return []

    def read_state(self) -> StoryState:
        """Return the current state of the partition."""
        return read_state(self.simulation, self.story, self.clients.answers)

    # -- used by actions -----------------------------------------------------------------------

    def advance(
        self, for_ms: float | None = None, until: StateExpect | None = None, within_ms: float = 0.0
    ) -> None:
        """Run for a span of time, or until the partition is in a state."""
        if until is None:
            self.simulation.run_for(for_ms or 0.0)
            return
        missing: list[str] = []

        def is_reached() -> bool:
            nonlocal missing
            missing = differences(until, self.read_state(), self.story)
            return not missing

        try:
            self.simulation.run_until(is_reached, within_ms)
        except WaitTimeout:
            raise WaitTimeout(
                f"not reached within {within_ms:g} virtual ms: {'; '.join(missing)}"
            ) from None

    def flush(self, broker_id: int) -> None:
        """Flush a broker's log of the partition to its disk, so that it survives a power loss."""
        broker = self.simulation.processes[broker_id].broker
        hosted = None if broker is None else broker.replica_manager.hosted.partition(self.where)
        if hosted is None or hosted.log is None:
            raise UsageError(f"broker {broker_id} has no log of {self.where} open")
        hosted.log.flush()

    def create_topic(self) -> None:
        self._create_topic(self.story.topic)


# -- the outcome -------------------------------------------------------------------------------


def outcome_of(state: StoryState, promised: Mapping[str, int]) -> Outcome:
    """Return what the replicas show to be lost, duplicated, or different between replicas."""
    leader = state.replicas.get(state.leader)
    held = [record.value for record in leader.records] if leader is not None else []
    lost = tuple(value for value in promised if value not in held)
    duplicated = tuple(value for value in dict.fromkeys(held) if held.count(value) > 1)
    logs = [replica.records for replica in state.replicas.values() if replica.role != "off"]
    differ_at = first_difference(logs)
    if leader is None:
        return Outcome((), (), differ_at, ("the partition has no leader",))
    sentences = [_loss_sentence(lost, promised)]
    if duplicated:
        sentences.append(f"{_join_values(duplicated)} stands in the log more than once")
    if differ_at is not None:
        sentences.append(f"logs differ at offset {differ_at}")
    elif len(logs) > 1:
        sentences.append("the logs are the same")
    return Outcome(lost, duplicated, differ_at, tuple(sentences))


def first_difference(logs: Iterable[Sequence[LogRecord]]) -> int | None:
    """Return the first offset at which two logs hold different records, if any."""
    found: list[int] = []
    all_logs = list(logs)
    for index, log in enumerate(all_logs):
        for other in all_logs[index + 1 :]:
            pairs = zip(log, other, strict=False)
            differing = (offset for offset, (one, two) in enumerate(pairs) if one != two)
            found += [offset for offset in [next(differing, -1)] if offset >= 0]
    return min(found, default=None)


def outcome_differences(expected: OutcomeExpect, actual: Outcome) -> list[str]:
    """Return every difference between an outcome and the expected one."""
    pairs: Mapping[str, tuple[Any, Any]] = {
        "lost": (sorted(expected.lost), sorted(actual.lost)),
        "duplicated": (sorted(expected.duplicated), sorted(actual.duplicated)),
        "differ_at": (expected.differ_at, actual.differ_at),
    }
    return [
        f"{name}: expected {wanted!r}, is {value!r}"
        for name, (wanted, value) in pairs.items()
        if wanted != value
    ]


def _loss_sentence(lost: Sequence[str], promised: Mapping[str, int]) -> str:
    if not lost:
        return "nothing acknowledged was lost"
    were, are = ("were", "are") if len(lost) > 1 else ("was", "is")
    if all(promised[value] == 1 for value in lost):
        return f"{_join_values(lost)}, acknowledged with acks=1, {are} lost"
    return f"{_join_values(lost)} {were} acknowledged and {are} lost"


def _join_values(values: Sequence[str]) -> str:
    return " and ".join([*[", ".join(values[:-1])] * (len(values) > 1), *values[-1:]])
