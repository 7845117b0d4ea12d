"""Running of a ``ScenarioSpec`` in virtual time, with its faults and expectations.

Actions that wait (a controlled shutdown, an election) start at their time and are awaited in
virtual time before the next action. The conditions of faults are checked after every event.
"""

from __future__ import annotations

import functools
import itertools
import math
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from ..actors.runtime.runtime import VIRTUAL_EPOCH_MS
from ..protocol.errors import FakeKafkaError, UsageError
from ..protocol.values import TopicPartition
from ..replication.log.segment import Segment
from ..testing.checks import fully_replicated
from ..testing.parameters.toml_values import toml_text
from ..testing.running import WaitTimeout
from ..testing.simulation import Simulation
from ..tracing.header import build_header
from .actions import ACTIONS
from .coordinated_clients import CoordinatedClients
from .file import parse_scenario
from .spec import ExpectSpec, FaultSpec, ScenarioSpec, WorkloadSpec
from .story.play import StoryRun
from .verdict import ScenarioResult, judge
from .workload import Meter, Workload


class ScenarioRun:
    """A run of a scenario; ``run`` runs it to its end and judges it."""

    def __init__(
        self,
        spec: ScenarioSpec,
        seed: int | None = None,
        recorder: Any = None,
        meter: Meter | None = None,
    ) -> None:
        """``recorder`` stores the events; ``meter`` measures every record of the workloads."""
        self.spec = spec
        self._meter = meter
        self.seed: int = spec.seed if seed is None else seed
        cluster = spec.cluster
        self.simulation: Simulation = Simulation(
            cluster.brokers,
            seed=self.seed,
            kafka_version=cluster.release,
            config=cluster.config,
            zookeepers=cluster.zookeepers,
            racks=cluster.racks,
            restart_delay_ms=cluster.restart_delay_ms,
            costs=spec.costs,
            behaviour=cluster.behaviour(),
            recorder=recorder,
            trace=recorder is not None,
            start=False,
        )
        self.result: ScenarioResult = ScenarioResult(spec.name, self.seed)
        self.workloads: list[Workload] = []
        self.coordinated: CoordinatedClients = CoordinatedClients(self.simulation, spec)
        self._begun_us = 0
        self._is_running = False  # True between the start and the stop of the scenario
        self.begun_us: int | None = None
        """Virtual time in microseconds at which the scenario's own time starts; None before."""
        self.expired: dict[str, set[bytes | None]] = {t.name: set() for t in cluster.topics}
        """Values deleted by retention or with their topic, by topic."""
        self.has_settled: bool = False
        """True if the cluster recovered at the end, so that it can be judged."""
        for process in self.simulation.processes.values():
            process.spec.disk.watch_expiry(self._expire)
        self._scheduled: list[tuple[float, int, Callable[[], None]]] = []
        self._conditional_faults: list[tuple[FaultSpec, float]] = []

    # -- the run -------------------------------------------------------------------------------

    def run(self) -> ScenarioResult:
        """Run to the end and judge the run; errors of the emulation itself are raised."""
        if self.spec.story is None:
            self.play()
            for expectation in [e for e in self.spec.expect if e.at_ms is None]:
                self._expect(expectation.that, expectation.within_ms, expectation.message)
            expired = self.expired if self.has_settled else None
            judge(self.spec, self.simulation, self.workloads, expired, self.result)
            if self.has_settled:
                self.result.problems += self.coordinated.problems()
        else:
            self.set_up()
            for at_ms, _, act in self._scheduled:
                at_us = self._begun_us + _round_up_to_us(at_ms)
                self.simulation.running.interrupt(at_us, act)
            story = StoryRun(
                self.simulation,
                self.spec.story,
                self.spec.cluster.kafka_version,
                self.create_topic,
                lambda: self.elapsed_ms,
            )
            self.result.problems += story.play()
            self.result.story = story.result
        self.result.virtual_ms = self.simulation.now_ms
        if self.simulation.recorder is not None:
            self.result.fingerprint = self.simulation.fingerprint
        self.simulation.stop()
        return self.result

    def play(self) -> None:
        """Set up and run a scenario without a story, then let the cluster settle.

        Only expectations with a time are checked.
        """
        self.set_up()
        self._is_running = True
        self._run_until_stop()
        self._is_running = False
        self._settle()

    def set_up(self) -> None:
        """Start the cluster, create the topics, and schedule everything that has a time."""
        spec, simulation = self.spec, self.simulation
        simulation.network.latency(**spec.network.latency)
        simulation.start()
        for topic in spec.cluster.topics:
            if spec.story is None or not spec.story.creates_topic(topic.name):
                self.create_topic(topic.name)
        # Loss starts only now, as it might keep the cluster from starting at all.
        if spec.network.loss:
            simulation.network.drop(spec.network.loss)
        if spec.network.bandwidth_mb_per_s is not None:
            simulation.network.bandwidth(spec.network.bandwidth_mb_per_s)
        for link in spec.network.links:
            ends: dict[str, Any] = {"source": link.source, "target": link.target}
            if link.latency is not None:
                simulation.network.latency(**link.latency, **ends)
            if link.loss is not None:
                simulation.network.drop(link.loss, **ends)
            if link.bandwidth_mb_per_s is not None:
                simulation.network.bandwidth(link.bandwidth_mb_per_s, **ends)
        self._begun_us = self.begun_us = simulation.runtime.now_us()
        for workload in spec.workloads:
            self._schedule_workload(workload)
        for group in self.coordinated.groups:
            for number in range(group.spec.members):
                at_ms = group.spec.start_ms + number * group.spec.join_every_ms
                self._schedule(at_ms, functools.partial(group.join, number))
        for transformer in self.coordinated.transformers:
            self._schedule(transformer.spec.start_ms, transformer.start)
        for fault in spec.faults:
            if fault.when is not None:
                self._conditional_faults.append((fault, fault.at_ms))
            else:
                for number in range(fault.times):
                    self._schedule(fault.at_ms + number * fault.every_ms, self._fault_action(fault))
        for expectation in spec.expect:
            if expectation.at_ms is not None:
                self._schedule(expectation.at_ms, self._expectation_check(expectation))

    def create_topic(self, name: str) -> None:
        """Create a topic as the scenario describes it."""
        topic = next(t for t in self.spec.cluster.topics if t.name == name)
        self.simulation.create_topic(
            topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            config=topic.config,
            assignment=dict(enumerate(topic.assignment)) if topic.assignment else None,
        )

    def _schedule_workload(self, spec: WorkloadSpec) -> None:
        topic = next(t for t in self.spec.cluster.topics if t.name == spec.topic)
        count = len(topic.assignment) or topic.partitions
        workload = Workload(self.simulation, spec, count, self._meter)
        self.workloads.append(workload)
        self._schedule(spec.start_ms, workload.start)
        if spec.stop_ms is not None:
            self._schedule(spec.stop_ms, workload.stop)

    def _schedule(self, at_ms: float, action: Callable[[], None]) -> None:
        self._scheduled.append((at_ms, len(self._scheduled), action))
        self._scheduled.sort(key=lambda entry: entry[:2])

    @property
    def elapsed_ms(self) -> float:
        """Virtual milliseconds since the scenario's own time started."""
        return (self.simulation.runtime.now_us() - self._begun_us) / 1000

    def _run_until_stop(self) -> None:
        stop = self.spec.stop
        while self.elapsed_ms < stop.at_ms:
            if stop.when is not None and stop.when.holds(self.simulation):
                return
            if self._remaining_events() <= 0:
                self._problem(
                    f"stopped after {stop.max_handled:,} messages and timers, the limit of "
                    "stop.max_handled"
                )
                return
            if self._scheduled and self._scheduled[0][0] <= self.elapsed_ms:
                self._scheduled.pop(0)[2]()
                continue
            until_ms = min(stop.at_ms, self._scheduled[0][0] if self._scheduled else stop.at_ms)
            self._run_to(until_ms)
        self._run_due_actions()

    def _remaining_events(self) -> float:
        limit = self.spec.stop.max_handled
        return math.inf if limit is None else limit - self.simulation.runtime.handled

    def _run_due_actions(self) -> None:
        while self._scheduled and self._scheduled[0][0] <= self.elapsed_ms:
            self._scheduled.pop(0)[2]()

    def _run_to(self, until_ms: float) -> None:
        """Run up to a time, or until the condition of a fault or of the stop holds."""
        simulation = self.simulation
        # At least one whole microsecond: a fraction would never move the clock.
        elapsed_us = simulation.runtime.now_us() - self._begun_us
        span_ms = max(_round_up_to_us(until_ms) - elapsed_us, 1) / 1000
        stop_when = self.spec.stop.when
        remaining_events = self._remaining_events()
        if stop_when is None and remaining_events == math.inf:
            # No condition can hold before the earliest time from which one is watched.
            unwatched_us = min(
                (_round_up_to_us(from_ms) - 1 for _, from_ms in self._conditional_faults),
                default=math.inf,
            )
            unwatched_ms = min(span_ms, (unwatched_us - elapsed_us) / 1000)
            if unwatched_ms > 0:
                simulation.run_for(unwatched_ms)
                return
        calls = itertools.count()  # counts the calls: at the start and after every event

        def must_stop() -> bool:
            return (
                next(calls) >= remaining_events
                or self._triggered_fault() is not None
                or (stop_when is not None and stop_when.holds(simulation))
            )

        try:
            simulation.run_until(must_stop, span_ms)
        except WaitTimeout:
            return
        triggered = self._triggered_fault()
        if triggered is not None:
            self._conditional_faults.remove(triggered)
            fault = triggered[0]
            for number in range(fault.times):
                at_ms = self.elapsed_ms + fault.after_ms + number * fault.every_ms
                self._schedule(at_ms, self._fault_action(fault))

    def _triggered_fault(self) -> tuple[FaultSpec, float] | None:
        for entry in self._conditional_faults:
            fault, from_ms = entry
            assert fault.when is not None
            if self.elapsed_ms >= from_ms and fault.when.holds(self.simulation):
                return entry
        return None

    # -- faults --------------------------------------------------------------------------------

    def _fault_action(self, fault: FaultSpec) -> Callable[[], None]:
        def act() -> None:
            try:
                self._perform_fault(fault)
            except (FakeKafkaError, KeyError) as error:
                self._problem(f"{fault.action}: {error}")
            for condition in fault.expect:
                self._expect(condition, fault.expect_within_ms, f"after {fault.action}")

        return act

    def _perform_fault(self, fault: FaultSpec) -> None:
        arguments = dict(fault.arguments)
        if fault.broker is not None:
            arguments["broker"] = fault.broker.resolve(self.simulation.running)
            if arguments["broker"] is None:
                raise UsageError(f"no broker has the role {fault.broker.text!r} now")
        runtime = self.simulation.runtime
        before = runtime.current_step
        runtime.current_step = " ".join([fault.action, *map(str, arguments.values())])
        try:
            ACTIONS[fault.action].perform(self.simulation, arguments)
        finally:
            runtime.current_step = before
        if fault.action == "delete_topic":
            for workload in self.workloads:
                if workload.spec.topic == arguments["name"]:
                    self.expired[workload.spec.topic].update(workload.acknowledged)

    def _expire(self, partition: TopicPartition, segments: Sequence[Segment]) -> None:
        """Note the values in segments that retention deletes from a replica."""
        expired = self.expired.get(partition.topic)
        if expired is not None:
            for segment in segments:
                for batch in segment.walk(0):
                    expired.update(record.value for record in batch.records())

    # -- expectations --------------------------------------------------------------------------

    def _expectation_check(self, expectation: ExpectSpec) -> Callable[[], None]:
        def check() -> None:
            self._expect(expectation.that, expectation.within_ms, expectation.message)

        return check

    def _expect(self, condition: Any, within_ms: float, prefix: str) -> None:
        simulation = self.simulation
        span_ms, end_ms = within_ms, self.elapsed_ms + within_ms
        while True:
            next_ms = self._scheduled[0][0] if self._scheduled and self._is_running else math.inf
            if next_ms < end_ms:
                elapsed_us = simulation.runtime.now_us() - self._begun_us
                span_ms = max(_round_up_to_us(next_ms) - elapsed_us, 1) / 1000
            try:
                simulation.run_until(lambda: condition.holds(simulation), span_ms)
                return
            except WaitTimeout:
                if next_ms >= end_ms:
                    break
            if next_ms <= self.elapsed_ms:  # due actions do not wait for the expectation
                self._scheduled.pop(0)[2]()
            span_ms = max(end_ms - self.elapsed_ms, 0.0)
        text = f"{prefix + ': ' if prefix else ''}{condition.text} does not hold"
        self._problem(text + (f" within {within_ms:g} ms" if within_ms else ""))

    def _problem(self, text: str) -> None:
        self.result.problems.append(f"at {self.elapsed_ms:g} ms: {text}")

    # -- the end -------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Heal the network, start what is down, and wait until everything is fully replicated."""
        simulation, stop = self.simulation, self.spec.stop
        for workload in self.workloads:
            workload.stop()
        if not stop.settle:
            return
        simulation.network.heal()
        simulation.network.release()
        for server in simulation.zookeepers.values():
            if not server.is_alive:
                server.start()
        for broker_id in simulation.broker_ids:
            handle = simulation.broker(broker_id)
            if handle.is_paused:
                handle.resume()
            if not handle.is_alive:
                handle.start(wait=False)
        topics = [topic.name for topic in self.spec.cluster.topics]

        def has_settled() -> bool:
            return (
                simulation.running.is_settled
                and not any(workload.unfinished for workload in self.workloads)
                and fully_replicated(simulation, topics)
                and self.coordinated.have_settled
            )

        try:
            simulation.run_until(has_settled, stop.settle_timeout_ms, every_ms=20)
            self.has_settled = True
        except WaitTimeout:
            self._problem(f"the cluster did not recover within {stop.settle_timeout_ms:g} ms")


def _round_up_to_us(time_ms: float) -> int:
    """Convert milliseconds to whole microseconds, rounding so as not to be earlier."""
    time_us = round(time_ms * 1000)
    return time_us if time_us / 1000 >= time_ms else time_us + 1


def header_of(run: ScenarioRun) -> dict[str, Any]:
    """Return the header of a recorded run, with all that is needed to run it again."""
    spec = run.spec
    return build_header(
        mode="sim",
        kafka_version=spec.cluster.kafka_version,
        seed=run.seed,
        config=spec.cluster.config,
        scenario=spec.text,
        scenario_name=spec.name,
        parameters=spec.parameters,
        virtual_epoch_ms=VIRTUAL_EPOCH_MS,
        reproduce=reproduce(run),
    )


def reproduce(run: ScenarioRun) -> str:
    """Return the command that repeats this run."""
    spec = run.spec
    command = f"fakekafka run {shlex.quote(spec.source)} --seed {run.seed}"
    for key, value in spec.parameters.items():
        if key == "cluster.kafka_version":
            command += f" --kafka-version {value}"
        else:
            command += f" --set {shlex.quote(f'{key}={toml_text(value)}')}"
    return command


def run_of_header(header: dict[str, Any], recorder: Any) -> ScenarioRun:
    """Return the run that a trace's header describes, not started, with another recorder."""
    spec = parse_scenario(
        header["scenario"], header.get("scenario_name", "<trace>"), header.get("parameters") or {}
    )
    return ScenarioRun(spec, header["seed"], recorder)


def run_from_header(header: dict[str, Any], recorder: Any) -> ScenarioResult:
    """Repeat the run that a trace's header describes, with another recorder.

    The header must have a scenario, which ``tracing.verify.refusal`` checks.
    """
    return run_of_header(header, recorder).run()
