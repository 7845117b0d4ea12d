"""Each invariant reports exactly the states that violate it, under its name."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from fakekafka.exploration.history import TARGETS
from fakekafka.exploration.invariants.control import ControllerKnowsZookeeper, LegalTransitions
from fakekafka.exploration.invariants.invariant import (
    Invariant,
    Scene,
    Violation,
    ViolationLog,
    shape_of,
)
from fakekafka.exploration.invariants.replication import (
    AcknowledgedSurvive,
    EpochsRise,
    HighWatermarkRises,
    LeaderInIsr,
    LogMatching,
    OneLeaderAnEpoch,
    StrongIsr,
    TypeOk,
    WeakIsr,
)
from fakekafka.exploration.known import DefectTracker
from fakekafka.exploration.watch import Watch
from fakekafka.exploration.worlds.load import Acknowledged
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import behaviour
from fakekafka.replication.log.log import Log
from fakekafka.tests.support.logs import Tools

WHERE = TopicPartition("main-1", 0)
Case = Callable[["Stage"], object]


class Stage:
    """A watch with one invariant, to which tests report state as actors report to a recorder."""

    def __init__(self, kind: type[Invariant], kafka_version: str = "3.9") -> None:
        self.watch = Watch()
        self.hosted: dict[int, Any] = {}
        self.controller: Any = None
        self.acknowledged: list[Acknowledged] = []
        flags = behaviour(kafka_version)
        world: Any = SimpleNamespace(
            brokers=frozenset({1, 2, 3}),
            main=[],
            simulation=SimpleNamespace(behaviour=flags, records=None),
            hosted=lambda broker, _where: self.hosted.get(broker),
            controller_of=lambda _broker: self.controller,
            has_consumer_protocol=False,
        )
        load: Any = SimpleNamespace(newest_acknowledged=lambda _where: self.acknowledged)
        known = DefectTracker(flags, self.watch, lambda: 0.0)
        self.violation_log = ViolationLog(lambda: 7.0, known)
        kind(Scene(world, self.watch, self.violation_log, known, load)).attach()
        self.zxid = 0
        self._zk: Any = self.watch.state_listener(None, "zk-1")  # type: ignore[arg-type]
        self._tell: dict[int, Any] = {}
        self._moved: dict[int, Any] = {}
        self.logs: dict[int, Log] = {}

    def store(self, leader: int, epoch: int, isr: tuple[int, ...], controller: int = 1) -> None:
        """Report a new leadership in ZooKeeper."""
        self.zxid += 1
        data = {
            "leader": leader, "leader_epoch": epoch, "isr": isr, "controller_epoch": controller
        }  # fmt: skip
        path = "znodes/brokers/topics/main-1/partitions/0/state"
        self._zk(path, None, {"data": json.dumps(data), "zxid": self.zxid})

    def elect(self, controller_epoch: int) -> None:
        self._zk("znodes/controller_epoch", None, {"data": str(controller_epoch), "zxid": 0})

    def delete(self) -> None:
        self._zk("znodes/brokers/topics/main-1", None, None)

    def role(self, broker: int, leader: int, epoch: int, isr: tuple[int, ...] = ()) -> None:
        """Report a broker's role as leader or follower."""
        if broker not in self._tell:
            name = f"broker-{broker}"
            paths = ("main-1-0/log_end_offset", "main-1-0/high_watermark", "main-1-0/start")
            runtime: Any = None
            self._tell[broker] = self.watch.state_listener(runtime, name)
            self._moved[broker] = self.watch.log_listener(runtime, name, paths)
            self.logs[broker] = Tools.log()
        tell = self._tell[broker]
        tell("main-1-0/role", None, "leader" if broker == leader else "follower")
        tell("main-1-0/leader", None, leader)
        tell("main-1-0/leader_epoch", None, epoch)
        tell("main-1-0/isr", None, isr)
        self.hosted[broker] = SimpleNamespace(isr=isr, replicas=(1, 2, 3))
        self.moved(broker)

    def moved(self, broker: int) -> None:
        self._moved[broker](self.logs[broker])

    def append(self, broker: int, count: int, epoch: int = 0, mark: int | None = None) -> None:
        log = Tools.fill(self.logs[broker], count, epoch)
        if mark is not None:
            log.high_watermark = mark
        self.moved(broker)

    def told(self) -> list[Violation]:
        return self.violation_log.violations()


def _deposed(stage: Stage) -> None:
    """Have an active controller believe in a leader other than ZooKeeper's."""
    info = SimpleNamespace(leader_and_isr=SimpleNamespace(leader=1, leader_epoch=3))
    topics = SimpleNamespace(partition_leadership_info=lambda _where: info)
    stage.controller = SimpleNamespace(
        is_active=True, epoch=1, context=SimpleNamespace(topics=topics)
    )
    stage.elect(1)
    tell: Any = stage.watch.state_listener(None, "controller-1")  # type: ignore[arg-type]
    stage.store(1, 3, (1, 2))
    tell("event", None, None)
    assert stage.told() == []
    stage.store(2, 4, (1, 2))
    tell("queue_length", None, 1)
    tell("event", None, None)
    assert stage.told() == [], "something waits"
    tell("queue_length", None, 0)
    tell("event", None, None)


def _behind(stage: Stage) -> None:
    """Raise a leader's high watermark beyond the log of an ISR member."""
    stage.store(1, 0, (1, 2))
    stage.role(1, 1, 0, (1, 2))
    stage.role(2, 1, 0)
    stage.append(2, 3)
    stage.append(1, 4, mark=3)
    stage.logs[2].truncate_to(2)
    stage.moved(2)


def _joins_behind(stage: Stage) -> None:
    stage.store(1, 0, (1,))
    stage.role(1, 1, 0, (1,))
    stage.role(2, 1, 0)
    stage.append(2, 3)
    stage.append(1, 4, mark=4)
    assert stage.told() == []
    stage.store(1, 0, (1, 2))


def _goes_on(stage: Stage) -> None:
    stage.role(1, 1, 2, (1,))
    stage.role(2, 1, 2)
    stage.append(1, 2, epoch=0)
    stage.append(1, 2, epoch=2)
    stage.append(2, 2, epoch=0)
    assert stage.told() == []
    stage.append(2, 1, epoch=1)
    stage.role(2, 1, 3)
    stage.append(2, 1, epoch=2)


def _two_leaders(stage: Stage) -> None:
    for broker in (1, 2):
        stage.role(broker, broker, 4, (1, 2))
        stage.append(broker, 1)


def _missing(stage: Stage) -> None:
    stage.acknowledged = [Acknowledged(118, b"v", 2, 4, None)]
    stage.role(1, 1, 5, (1,))


def _states(what: str, *steps: tuple[str, str]) -> Case:
    def tell(stage: Stage) -> None:
        name = "broker-1" if "/" in what and not what.startswith("main") else "controller-1"
        listener: Any = stage.watch.state_listener(None, name)  # type: ignore[arg-type]
        for old, new in steps:
            listener(what, old, new)

    return tell


def _falls(stage: Stage) -> None:
    stage.role(1, 1, 0, (1,))
    stage.append(1, 4, mark=3)
    stage.logs[1].high_watermark = 2
    stage.moved(1)


def _impossible(stage: Stage) -> None:
    stage.role(1, 1, 0, (1,))
    stage.append(1, 2, mark=3)


def _then(*acts: Case) -> Case:
    def one_by_one(stage: Stage) -> None:
        for act in acts:
            act(stage)

    return one_by_one


def _another_epoch(stage: Stage) -> None:
    for broker in (1, 2):
        stage.role(broker, broker, broker, (1,))
        stage.append(broker, 1)


def _again(stage: Stage) -> None:
    stage.store(1, 5, (1,))
    stage.zxid = 0
    stage.store(1, 4, (1,))


BREAKS: dict[str, tuple[type[Invariant], Case, str]] = {
    "a leader that is no broker": (TypeOk, lambda s: s.store(9, 0, (1,)), "9 is not a broker"),
    "an empty ISR": (TypeOk, lambda s: s.store(1, 0, ()), "the stored ISR is ()"),
    "a member twice": (TypeOk, lambda s: s.store(1, 0, (1, 1)), "the stored ISR is (1, 1)"),
    "a negative epoch": (TypeOk, lambda s: s.store(1, -1, (1,)), "the stored leadership is"),
    "a mark beyond the end": (TypeOk, _impossible, "log start 0, high watermark 3, end 2"),
    "a leader out of sync": (LeaderInIsr, lambda s: s.store(1, 0, (2,)), "not in the ISR (2,)"),
    "a member cuts": (WeakIsr, _behind, "high watermark 3, and broker 2 of its ISR ends at 2"),
    "a stored member cuts": (StrongIsr, _behind, "broker 2 of the stored ISR ends at 2"),
    "a member joins too early": (StrongIsr, _joins_behind, "of the stored ISR ends at 3"),
    "a follower with other records": (LogMatching, _goes_on, "their logs differ from offset 2 on"),
    "two leaders": (OneLeaderAnEpoch, _two_leaders, "brokers 1 and 2 both appended records"),
    "a stored epoch falls": (
        EpochsRise,
        _then(lambda s: s.store(1, 5, (1,)), lambda s: s.store(1, 4, (1,))),
        "the stored leader_epoch went from 5 to 4",
    ),
    "an older controller stores": (
        EpochsRise,
        _then(lambda s: s.store(1, 5, (1,), 3), lambda s: s.store(1, 6, (1,), 2)),
        "the stored controller_epoch went from 3 to 2",
    ),
    "a leader in the same epoch": (
        EpochsRise,
        _then(lambda s: s.store(1, 5, (1, 2)), lambda s: s.store(2, 5, (1, 2))),
        "leader 2 takes the place of 1 in the same epoch 5",
    ),
    "a broker goes back": (
        EpochsRise,
        _then(lambda s: s.role(1, 2, 5), lambda s: s.role(1, 2, 4)),
        "broker 1 went from leader epoch 5 to 4",
    ),
    "a mark falls": (HighWatermarkRises, _falls, "fell from 3 to 2"),
    "a record is missing": (
        AcknowledgedSurvive,
        _missing,
        "acknowledged at offset 118 by broker 2 in epoch 4, missing at broker 1, which leads in "
        "epoch 5",
    ),
    "a partition": (
        LegalTransitions,
        _states("main-1-0/state", ("NewPartition", "NonExistentPartition")),
        "main-1-0 went from NewPartition to NonExistentPartition",
    ),
    "a replica": (
        LegalTransitions,
        _states("main-1-0/replica-2/state", ("NewReplica", "NonExistentReplica")),
        "main-1-0/replica-2 went from NewReplica to NonExistentReplica",
    ),
    "a group": (
        LegalTransitions, _states("groups/g/state", ("Empty", "Stable")), "group g went from Empty"
    ),
    "a transaction": (
        LegalTransitions,
        _states("transaction/t", ("Empty", "CompleteCommit")),
        "transaction t went from Empty to CompleteCommit",
    ),
    "a controller that missed something": (
        ControllerKnowsZookeeper, _deposed, "ZooKeeper has leader 2 in epoch 4"
    ),
}  # fmt: skip

KEEPS: dict[str, tuple[type[Invariant], Case]] = {
    "no leader": (LeaderInIsr, lambda s: s.store(-1, 0, (2,))),
    "a topic that was deleted begins anew": (
        EpochsRise,
        _then(lambda s: s.store(1, 5, (1,)), Stage.delete, lambda s: s.store(1, 0, (1,))),
    ),
    "another epoch": (OneLeaderAnEpoch, _another_epoch),
    "states of the tables": (
        LegalTransitions,
        _states(
            "main-1-0/state",
            ("NonExistentPartition", "NewPartition"),
            ("NewPartition", "OnlinePartition"),
        ),
    ),
    "what another server tells again": (EpochsRise, _again),
}


@pytest.mark.parametrize("what", BREAKS)
def test_a_broken_promise_is_reported_once(what: str) -> None:
    """A broken promise is reported once, with its name and what was seen."""
    kind, happens, text = BREAKS[what]
    stage = Stage(kind)
    happens(stage)
    (violation,) = stage.told()
    assert violation.promise == kind.__name__
    assert text in violation.text
    assert violation.at_ms == 7.0


@pytest.mark.parametrize("what", KEEPS)
def test_a_kept_promise_is_not_reported(what: str) -> None:
    kind, happens = KEEPS[what]
    stage = Stage(kind)
    happens(stage)
    assert stage.told() == []


@pytest.mark.parametrize(
    ("version", "name"), [("0.10", "KIP-320"), ("1.1", "KIP-320"), ("3.9", "")]
)
def test_a_known_defect_of_a_release_is_named(version: str, name: str) -> None:
    """A follower that appends after diverging records is a known defect named by the KIP that fixed
    it; in a release with the fix it has no name.
    """
    stage = Stage(LogMatching, version)
    _goes_on(stage)
    assert [violation.known for violation in stage.told()] == [name]


def test_divergence_below_the_high_watermark_of_0_10_has_another_name() -> None:
    """In 0.10 divergence below the high watermark is KIP-101: truncation stops there."""
    stage = Stage(LogMatching, "0.10")
    stage.role(2, 1, 2)
    stage.append(2, 3, epoch=1, mark=3)
    stage.role(1, 1, 2, (1,))
    stage.append(1, 4, epoch=2)
    stage.append(2, 1, epoch=2)
    assert [violation.known for violation in stage.told()] == ["KIP-101 (divergence)"]


def test_an_isr_member_that_has_just_joined_is_a_known_defect_until_2_6() -> None:
    """Until 2.6 a leader uses its old ISR while ZooKeeper is written, a defect (KIP-497)."""
    named = {}
    for version in ("2.6", "2.7"):
        stage = Stage(StrongIsr, version)
        _joins_behind(stage)
        named[version] = [violation.known for violation in stage.told()]
    assert named == {"2.6": ["KIP-497"], "2.7": [""]}


@pytest.mark.parametrize(("follows", "known"), [(False, "missed leader"), (True, "")])
def test_a_leader_that_does_not_know_its_successor_is_a_known_defect(
    follows: bool, known: str
) -> None:
    """A leader that missed its successor is a known defect: it leads again with outdated offsets of
    its followers. A leader that has followed meanwhile has discarded them.
    """
    stage = Stage(StrongIsr)
    stage.store(1, 0, (1, 2, 3))
    stage.role(1, 1, 0, (1, 2, 3))
    stage.role(2, 1, 0)
    stage.append(2, 1)
    stage.append(1, 3, mark=1)
    stage.store(3, 1, (1, 2, 3))
    stage.store(-1, 2, (1, 2))
    stage.store(1, 3, (1, 2))
    if follows:
        stage.role(1, 3, 1)
        stage.role(1, 1, 3, (1, 2))
    stage.logs[1].high_watermark = 3
    stage.moved(1)
    assert [violation.known for violation in stage.told()] == [known]


def test_such_a_leader_in_a_later_epoch_is_no_known_defect() -> None:
    stage = Stage(StrongIsr)
    stage.store(3, 7, (1, 2, 3))
    stage.role(1, 1, 0, (1, 2))
    stage.role(2, 1, 0)
    stage.append(2, 1)
    stage.append(1, 3, mark=1)
    stage.store(1, 8, (1, 2))
    stage.role(1, 1, 9, (1, 2))
    stage.logs[1].high_watermark = 3
    stage.moved(1)
    assert [violation.known for violation in stage.told()] == [""]


def test_an_invariant_reports_only_its_first_violations() -> None:
    """An invariant reports only its first violations."""
    stage = Stage(LeaderInIsr)
    for epoch in range(20):
        stage.store(1, epoch, (2,))
    assert len(stage.told()) == 8


def test_violations_of_one_kind_have_one_signature() -> None:
    """A signature omits numbers, partitions and values; a known defect's name replaces the text."""
    one = Violation("TypeOk", "main-1-0: the stored ISR is (1, 1)", 5.0)
    other = Violation("TypeOk", "main-2-3: the stored ISR is (4, 4)", 9.5)
    assert one.signature == other.signature == "TypeOk: *: the stored ISR is (#, #)"
    assert one._replace(known="KIP-101").signature == "TypeOk: KIP-101"
    assert str(one) == "TypeOk, at 5 ms: main-1-0: the stored ISR is (1, 1)"
    assert shape_of("b'producer-1:0000012' comes after b'x'") == "* comes after *"


@pytest.mark.parametrize("name", TARGETS)
def test_every_promise_of_a_target_has_a_docstring(name: str) -> None:
    """Every promise of a target has a docstring of its own that ends with a full stop."""
    for promise in TARGETS[name].promises:
        assert (promise.__doc__ or "").strip().endswith("."), promise
        assert promise.__doc__ != Invariant.__doc__


def test_a_promise_can_be_watched_alone() -> None:
    """With ``only``, the other promises report nothing."""
    target = TARGETS["cluster"]("3.9", 1, only={"TypeOk"})
    assert [invariant.name() for invariant in target.invariants] == ["TypeOk"]
    target.report_unmet("IsrWhole", "not asked for")
    assert target.violation_log.violations() == []
    target.world.simulation.stop()


def test_a_watched_run_equals_an_unwatched_one() -> None:
    """A watched or recorded run equals an unwatched one, to the microsecond."""
    ends = set()
    for trace, only in ((False, None), (True, None), (False, ())):
        target = TARGETS["cluster"]("3.9", 3, trace, only)
        target.world.simulation.run_for(3000)
        target.world.simulation.broker(2).kill()
        target.world.simulation.run_for(9000)
        ends.add((target.world.simulation.runtime.handled, str(target.figures())))
        target.world.simulation.stop()
    assert len(ends) == 1
