"""The garbage collector skips a recorder's objects until the end of the run."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator

import pytest
from fakekafka import Simulation
from fakekafka.actors.runtime import garbage as module
from fakekafka.actors.runtime import virtual

pytestmark = pytest.mark.pure  # replaces attributes that compiled code does not look up


@pytest.fixture(autouse=True)
def _unfrozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(virtual, "_SHORT_RUN_EVENTS_MAX", 10)
    monkeypatch.setattr(virtual, "garbage", module._Garbage())
    gc.unfreeze()  # objects frozen by an unfinished run of another test
    yield
    gc.unfreeze()


def test_objects_of_a_recorded_run_are_frozen_until_it_ends() -> None:
    """The objects of a recorded run are frozen until it ends; without a recorder none are."""
    with Simulation(1, trace=False) as simulation:
        simulation.run_for(1000)
        assert not gc.get_freeze_count()
    with Simulation(1) as simulation:
        simulation.run_for(1000)
        assert gc.get_freeze_count()
    assert not gc.get_freeze_count()


def test_objects_that_a_program_froze_stay_frozen() -> None:
    """Objects that the program itself froze stay frozen."""
    gc.freeze()
    before = gc.get_freeze_count()
    with Simulation(1) as simulation:
        simulation.run_for(1000)
    assert gc.get_freeze_count() >= before - 100


def test_a_disabled_collector_stays_disabled() -> None:
    """If the collector is disabled, its thresholds and objects are not changed."""
    before = gc.get_threshold()
    gc.disable()
    try:
        with Simulation(1) as simulation:
            simulation.run_for(1000)
            assert not gc.get_freeze_count()
    finally:
        gc.enable()
    assert gc.get_threshold() == before


def test_garbage_of_a_long_run_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frozen objects are collected at intervals, as dead brokers are garbage."""
    collected = _looks(monkeypatch, [0.0, 20.0, 20.1, 30.2, 30.3], objects=1000)
    garbage = module._Garbage()
    garbage.freeze()
    garbage.freeze()
    assert len(collected) == 1
    garbage.freeze()
    assert len(collected) == 2


def test_a_collection_waits_longer_the_more_objects_are_frozen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A collection waits the longer the more objects are frozen, to keep its share of time."""
    collected = _looks(monkeypatch, [0.0, 20.0, 29.0, 31.0, 31.3], objects=300_000)
    garbage = module._Garbage()
    for _ in range(3):
        garbage.freeze()
    assert not collected
    garbage.freeze()
    assert len(collected) == 1


def _looks(monkeypatch: pytest.MonkeyPatch, times_s: list[float], objects: int) -> list[None]:
    """Return a list that grows with each collection; the clock shows the given times."""
    clock = iter(times_s)
    collected: list[None] = []
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    monkeypatch.setattr(gc, "collect", lambda: collected.append(None))
    set_aside = itertools.chain([0], itertools.repeat(objects))  # none before the first time
    monkeypatch.setattr(gc, "get_freeze_count", lambda: next(set_aside))
    return collected
