"""The faults that may happen next in a test, chosen by the state of its cluster and programs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from ...protocol.errors import UsageError, nearest_names
from ...protocol.names import broker_name
from ...protocol.values import TopicPartition
from .. import cluster_steps as steps
from ..faults import EXPIRY_NOTICED_MS, one_of, zookeepers_down, zookeepers_up
from ..generator import Choices, Choose, Draws, draw
from ..step import Step
from .program_steps import (
    AddProgram,
    CutProgram,
    IsolateProgram,
    KillProgram,
    MovePartition,
    PauseProgram,
    RestartProgram,
    ResumeProgram,
    ShiftClock,
    SlowProgram,
)
from .program_world import ProgramWorld

T = TypeVar("T")
Drawn = Iterator[Step[Any]]

_FIRST_MS = 60
"""Milliseconds before the first fault, in which programs can connect. A service may rightly exit if
it cannot connect at its start."""
_COUNTS = (1, 5)
_PAUSES_MS = (0, 50, 200, 500, 1000, 4000)
_DOWN_MS = (0, 200, 500, 3000, 12_000)
_PAUSED_MS = (1000, 3000, 7000, 9000, 14_000)
_CUT_MS = (300, 1500, 4000, 8000, 12_000)
_LEADER_PROBABILITY = 0.7
_NOTE_PROBABILITY = 0.75
_SHIFTS_MS = (-3_600_000, -5000, 5000, 3_600_000)
_RATES = (0.7, 0.95, 1.05, 1.5)
_NOTE_DISTANCE_MS = (-150, 150)


class Bounds(NamedTuple):
    """Bounds for runs with faults, determined by a run without faults."""

    within_ms: int
    """Milliseconds from the start of the first program until all faults end."""
    records: bool | None
    """None to record as the test requests; False not to record, which is faster."""
    noted_ms: tuple[int, ...] = ()
    """Times of notes by programs, in milliseconds from the start of the first program."""


def _episode(
    pick: Callable[[ProgramWorld, random.Random], T | None],
    begin: Callable[[T], Step[Any]],
    lasts_ms: tuple[int, ...],
    end: Callable[[T], Step[Any]],
    *,
    is_sure: bool = False,
) -> Choose[ProgramWorld]:
    """Return a choice of a fault that ends after a while.

    Unless ``is_sure``, the fault is sometimes left for another step to end.
    """

    def choose(world: ProgramWorld, rng: random.Random) -> Drawn:
        picked = pick(world, rng)
        if picked is not None:
            yield begin(picked)
            if is_sure or rng.random() < 0.8:
                yield steps.Wait(rng.choice(lasts_ms))
                yield end(picked)

    return choose


def _any_of(
    candidates: Callable[[ProgramWorld], Sequence[T]],
) -> Callable[[ProgramWorld, random.Random], T | None]:
    def pick(world: ProgramWorld, rng: random.Random) -> T | None:
        found = candidates(world)
        return rng.choice(found) if found else None

    return pick


def _pick_broker(world: ProgramWorld, rng: random.Random, candidates: list[int]) -> int | None:
    """Return a broker, most often one that leads a partition of the test's topics."""
    leaders = sorted(
        {
            view.leader
            for view in world.partitions()
            if view.leader in candidates and not view.topic.startswith("__")
        }
    )
    if leaders and rng.random() < _LEADER_PROBABILITY:
        return int(rng.choice(leaders))
    return rng.choice(candidates) if candidates else None


def _pick_stoppable_broker(world: ProgramWorld, rng: random.Random) -> int | None:
    return _pick_broker(world, rng, world.stoppable_brokers())


def _heal_network(_what: object) -> Step[Any]:
    return steps.Heal()


def _power_off_broker(world: ProgramWorld, rng: random.Random) -> Drawn:
    broker = _pick_stoppable_broker(world, rng)
    if broker is not None:
        yield steps.Wait(EXPIRY_NOTICED_MS)
        yield steps.PowerOff(broker, rng.random() < 0.5)
        yield steps.Wait(rng.choice((0, 4000)))
        yield steps.Start(broker)


def _fail_log_dir(world: ProgramWorld, rng: random.Random) -> Drawn:
    running = [broker for broker in world.stoppable_brokers() if broker in world.running()]
    broker = _pick_broker(world, rng, running)
    if broker is not None:
        disk = world.simulation.processes[broker].spec.disk
        yield steps.FailLogDir(broker, rng.randrange(len(disk.directories)))
        yield steps.Wait(rng.choice((1000, 4000, 10_000)))
        yield steps.Start(broker, True)


def _stop_broker(world: ProgramWorld, rng: random.Random) -> Drawn:
    running = [broker for broker in world.stoppable_brokers() if broker in world.running()]
    broker = _pick_broker(world, rng, running)
    if broker is not None:
        yield steps.Stop(broker)


def _cut_brokers(world: ProgramWorld, rng: random.Random) -> Drawn:
    if len(world.brokers) > 1:
        one, other = map(broker_name, rng.sample(world.simulation.broker_ids, 2))
        yield steps.Cut((one,), (other,), rng.random() < 0.5)
        yield steps.Wait(rng.choice(_CUT_MS))
        yield steps.Heal()


def _cut_program(world: ProgramWorld, rng: random.Random) -> Drawn:
    names = world.attackable_programs()
    broker = _pick_broker(world, rng, list(world.simulation.broker_ids))
    if names and broker is not None:
        direction = rng.choice(("to", "from", "from", "both"))
        yield CutProgram(rng.choice(names), broker_name(broker), direction)
        yield steps.Wait(rng.choice(_CUT_MS))
        yield steps.Heal()


def _slow_program(world: ProgramWorld, rng: random.Random) -> Drawn:
    names = world.attackable_programs()
    broker = _pick_broker(world, rng, list(world.simulation.broker_ids))
    if names and broker is not None:
        ms = rng.choice((20, 200, 1000))
        yield SlowProgram(rng.choice(names), broker_name(broker), ms)


def _shift_clock(world: ProgramWorld, rng: random.Random) -> Drawn:
    names = world.stoppable_programs()
    if names:
        yield ShiftClock(rng.choice(names), rng.choice(_SHIFTS_MS))


def _shift_broker_clock(world: ProgramWorld, rng: random.Random) -> Drawn:
    broker = rng.choice(world.simulation.broker_ids)
    yield steps.ShiftBrokerClock(broker, rng.choice(_SHIFTS_MS))


def _set_broker_clock_rate(world: ProgramWorld, rng: random.Random) -> Drawn:
    broker = rng.choice(world.simulation.broker_ids)
    yield steps.SetClockRate(broker, rng.choice(_RATES))
    yield steps.Wait(rng.choice(_PAUSED_MS))
    yield steps.SetClockRate(broker, 1.0)


def _move_partition(world: ProgramWorld, rng: random.Random) -> Drawn:
    """Reassign a partition to other brokers, or to the same brokers in another order."""
    views = [view for view in world.partitions() if not view.topic.startswith("__")]
    if views:
        view = rng.choice(views)
        replicas = tuple(rng.sample(world.simulation.broker_ids, len(view.replicas)))
        where = TopicPartition(view.topic, view.partition)
        yield MovePartition(where, replicas)


def _elect(_world: ProgramWorld, _rng: random.Random) -> Drawn:
    yield steps.ElectPreferred()


def _heal(world: ProgramWorld, _rng: random.Random) -> Drawn:
    if world.has_network_faults:
        yield steps.Heal()


def _resign(world: ProgramWorld, _rng: random.Random) -> Drawn:
    if world.is_calm():
        yield steps.Resign()


def _paused(world: ProgramWorld) -> list[str]:
    return [name for name, program in world.programs.items() if program.is_paused]


_pick_stoppable_program = _any_of(ProgramWorld.stoppable_programs)
FAULTS: Choices = {
    "kill_program": (12, _episode(_pick_stoppable_program, KillProgram, _DOWN_MS, RestartProgram)),
    "pause_program": (
        8,
        _episode(_pick_stoppable_program, PauseProgram, _PAUSED_MS, ResumeProgram),
    ),
    "isolate_program": (
        4,
        _episode(_any_of(ProgramWorld.attackable_programs), IsolateProgram, _CUT_MS, _heal_network),
    ),
    "cut_program": (4, _cut_program),
    "slow_program": (1, _slow_program),
    "shift_clock": (1, _shift_clock),
    "add_program": (2, one_of(ProgramWorld.scalable_programs, AddProgram)),
    "kill_broker": (
        6,
        _episode(_pick_stoppable_broker, steps.Kill, (1000, 4000, 10_000), steps.Start),
    ),
    "freeze_broker": (
        1,
        _episode(_pick_stoppable_broker, steps.Freeze, _PAUSED_MS, steps.Thaw, is_sure=True),
    ),
    "stop_broker": (2, _stop_broker),
    "isolate_broker": (
        1,
        _episode(
            _pick_stoppable_broker,
            lambda broker: steps.Isolate(broker_name(broker)),
            _CUT_MS,
            _heal_network,
            is_sure=True,
        ),
    ),
    "cut_brokers": (1, _cut_brokers),
    "power_off_broker": (2, _power_off_broker),
    "fail_log_dir": (1, _fail_log_dir),
    "shift_broker_clock": (1, _shift_broker_clock),
    "kill_zookeeper": (
        1,
        _episode(
            _any_of(zookeepers_up), steps.KillZookeeper, (200, 3000, 10_000), steps.StartZookeeper
        ),
    ),
    "expire_session": (1, one_of(ProgramWorld.alive, steps.Expire)),
    "move_controller": (1, _resign),
    "restart_program": (2, one_of(lambda world: sorted(world.killed), RestartProgram)),
    "resume_program": (1, one_of(_paused, ResumeProgram)),
    "start_broker": (2, one_of(ProgramWorld.down, lambda broker: steps.Start(broker, True))),
    "start_zookeeper": (1, one_of(zookeepers_down, steps.StartZookeeper)),
    "thaw_broker": (1, one_of(lambda world: sorted(world.paused), steps.Thaw)),
    "heal": (1, _heal),
    "set_broker_clock_rate": (1, _set_broker_clock_rate),
    "move_partition": (2, _move_partition),
    "elect_preferred": (1, _elect),
}
"""Every fault, with its weight. New ones are added at the end, so that plans in which they are off
do not change."""
_RECOVERIES = frozenset(
    {"restart_program", "resume_program", "start_broker", "start_zookeeper", "thaw_broker", "heal"}
)
KINDS: tuple[str, ...] = tuple(name for name in FAULTS if name not in _RECOVERIES)
"""Names of the faults that do harm, which a test can select or exclude."""


def _first_ms(bounds: Bounds, rng: random.Random) -> int:
    """Draw the time in milliseconds at which a plan begins.

    It is close to a note of the run without faults, or early, as most work is done soon after the
    programs were started.
    """
    latest_ms = max(bounds.within_ms // 2, _FIRST_MS)
    if bounds.noted_ms and rng.random() < _NOTE_PROBABILITY:
        near_ms = rng.choice(bounds.noted_ms) + rng.randint(*_NOTE_DISTANCE_MS)
        return min(max(near_ms, _FIRST_MS), latest_ms)
    return round(math.exp(rng.uniform(math.log(_FIRST_MS), math.log(latest_ms))))


def chosen_kinds(only: Collection[str] | None, without: Collection[str]) -> frozenset[str]:
    """Return the kinds of faults for a test whose mark ``kafka_explore`` has these arguments.

    Raises ``UsageError`` for the name of an unknown fault, or if no fault is left.
    """
    for name in (*(only or ()), *without):
        if name not in KINDS:
            raise UsageError(
                f"the mark kafka_explore names {name!r}, which is not a fault"
                f"{nearest_names(name, KINDS, len(KINDS))}"
            )
    chosen = frozenset(KINDS if only is None else only) - frozenset(without)
    if not chosen:
        raise UsageError("the mark kafka_explore excludes every fault")
    return chosen


def drawn_faults(
    world: ProgramWorld, seed: int, bounds: Bounds, kinds: frozenset[str]
) -> Iterator[Step[Any]]:
    """Yield the steps of a plan; the caller must do each step before it asks for the next."""
    rng = random.Random(f"faults-{seed}")
    yield steps.Wait(_first_ms(bounds, rng))
    choices = {name: choice for name, choice in FAULTS.items() if name in kinds | _RECOVERIES}
    yield from draw(Draws(choices, _COUNTS, _PAUSES_MS, _RECOVERIES), world, rng)
