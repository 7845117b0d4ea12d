"""Comparison of two runs of a simulation with programs, and the code that made them differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...programs.acts import Act
from ...protocol.errors import FakeKafkaError
from ...tracing.diff import Difference, first_difference
from ...tracing.text import format_event, format_time
from ...tracing.trace_file import TraceReader
from ..recording import hash_seed

if TYPE_CHECKING:
    from ...tracing.events import Event
    from ...tracing.trace import StoredTrace
    from ..simulation import Simulation

_TRACE, _ACTS = "again.fktrace", "acts.json"


class RunsDiffer(FakeKafkaError, AssertionError):
    """Two runs of one seed differ: something that does not follow from the seed affects them."""


class Recorded(NamedTuple):
    """The recording of a run, for comparison."""

    trace: StoredTrace
    acts: list[Act]
    """What the programs did, in order."""
    hash_seed: int | None

    @classmethod
    def of(cls, simulation: Simulation) -> Recorded:
        """Return the run of a simulation that has kept its programs' acts from the first on."""
        acts = simulation.running.acts
        assert acts is not None
        return cls(simulation.trace().stored, acts.all, hash_seed.of_this_process())

    @classmethod
    def load(cls, folder: Path, seed: int) -> Recorded | None:
        """Return the run that another process has saved in a folder; None if it saved none."""
        if not (folder / _ACTS).exists():
            return None
        acts = [Act(*fields) for fields in json.loads((folder / _ACTS).read_text("utf-8"))]
        return cls(TraceReader(folder / _TRACE), acts, seed)


def save(simulation: Simulation, folder: Path) -> None:
    """Save a run for another process that compares it."""
    acts = simulation.running.acts
    simulation.save(folder / _TRACE)
    (folder / _ACTS).write_text(json.dumps([] if acts is None else acts.all), "utf-8")


class _Divergence(NamedTuple):
    """The point at which two runs diverge."""

    event: Difference | None
    acts: tuple[Act | None, Act | None] | None
    """The first acts that differ, one of each run; None for a run that has no more."""


def require_same(first: Recorded, run_again: Callable[[int], Recorded], seed: int) -> None:
    """Repeat a run in another process, and raise ``RunsDiffer`` if it differs.

    The other process has another hash seed, unless this process runs under a pinned one.
    ``run_again`` is called with the hash seed of the other process.
    """
    pinned = hash_seed.pinned()
    other_seed = _other_hash_seed(first.hash_seed) if pinned is None else pinned
    second = run_again(other_seed)
    divergence = _find_divergence(first, second)
    if divergence is None:
        return
    if pinned is not None:
        reason = f"both processes have the hash seed {pinned}, so no order of strings is the reason"
    elif _find_divergence(second, run_again(other_seed)) is None:
        reason = (
            "two processes with one hash seed agree, so the order of a set of strings is the "
            "reason: sort it there, or have all runs under one hash seed, by "
            "`fakekafka.pin_hash_seed()` at the start of the script or kafka_hash_seed = 0 in the "
            "ini file of pytest"
        )
    else:
        reason = (
            "two processes with one hash seed differ, too, so the order of strings is not the only "
            "reason: it may be an address (a set of objects, id()), a file, a process id, C code "
            "that asks the system for time or chance, or a generator made before the run"
        )
    raise RunsDiffer("\n".join(_describe_divergence(first, second, divergence, seed, reason)))


def _other_hash_seed(seed: int | None) -> int:
    return 1 if seed is None else seed + 1 if seed < 1000 else seed - 1


def _find_divergence(first: Recorded, second: Recorded) -> _Divergence | None:
    event = None
    if first.trace.fingerprint != second.trace.fingerprint:
        event = first_difference(first.trace, second.trace)
    acts = next(
        (pair for pair in zip_longest(first.acts, second.acts) if not _is_same(*pair)), None
    )
    return None if event is None and acts is None else _Divergence(event, acts)


def _is_same(first: Act | None, second: Act | None) -> bool:
    return first is not None and second is not None and first.is_same_as(second)


def _describe_divergence(
    first: Recorded, second: Recorded, divergence: _Divergence, seed: int, reason: str
) -> Iterable[str]:
    event, acts = divergence
    names = _process_label(first.hash_seed), _process_label(second.hash_seed)
    width = max(map(len, names)) + 1
    if event is None:
        yield f"two runs of seed {seed} give the same events, but their programs act differently"
    else:
        yield f"two runs of seed {seed} are the same up to event #{event.seq}"
        for name, row in zip(names, (event.left, event.right), strict=True):
            yield f"  {name + ':':<{width}} {_describe_event(row)}"
        if event.columns:
            yield f"  {event.describe()}"
    if acts is None or (event is not None and _acts_diverge_after(acts, event)):
        yield (
            "  no program acted differently before: a function of the test, such as a fault, "
            "causes the difference"
        )
    else:
        yield "the first action of a program that differs:"
        for name, act in zip(names, acts, strict=True):
            yield f"  {name + ':':<{width}} {_describe_act(act)}"
    yield reason


def _process_label(seed: int | None) -> str:
    return "this process, hash seed random" if seed is None else f"hash seed {seed}"


def _describe_event(event: Event | None) -> str:
    return "the run has ended" if event is None else format_event(event)


def _describe_act(act: Act | None) -> str:
    if act is None:
        return "nothing more"
    return f"at {format_time(act.time_us)} s {act.program} {act.what}, at {act.place}"


def _acts_diverge_after(acts: tuple[Act | None, Act | None], event: Difference) -> bool:
    """Return whether the programs began to differ only after the event."""
    begins_us = min(act.time_us for act in acts if act is not None)
    seen_us = [one.time_us for one in (event.left, event.right) if one is not None]
    return bool(begins_us > max(seen_us))
