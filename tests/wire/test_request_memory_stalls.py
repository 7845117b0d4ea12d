"""Connections that are cut, or not, while the memory of unprocessed requests stays full."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
from fakekafka.wire.request_memory import STALL_S, RequestMemory


class Loop:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> object:
        self.calls.append((self.now_s + delay_s, callback))
        return object()

    def advance(self, duration_s: float) -> None:
        end_s = self.now_s + duration_s
        while due := [call for call in self.calls if call[0] <= end_s]:
            call = min(due, key=lambda one: one[0])
            self.calls.remove(call)
            self.now_s = max(self.now_s, call[0])
            call[1]()
        self.now_s = end_s


class Connection:
    """A connection that holds bytes until it is refused."""

    def __init__(self, memory: RequestMemory) -> None:
        self._memory = memory
        self.reason: str | None = None
        self.asked = 0

    def update_reading(self) -> None:
        self.asked += 1

    def refuse(self, reason: str) -> None:
        self.reason = reason
        self._memory.note(self, 0)


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def memory(loop: Loop) -> RequestMemory:
    return RequestMemory(cast(asyncio.AbstractEventLoop, loop), 100)


def test_a_connection_that_waits_a_second_without_progress_is_refused(
    loop: Loop, memory: RequestMemory
) -> None:
    one, other = Connection(memory), Connection(memory)
    memory.note(one, 60)
    memory.note(other, 60)
    loop.advance(STALL_S * 0.99)
    assert (one.reason, other.reason) == (None, None)
    loop.advance(STALL_S * 0.02)
    assert one.reason is not None
    assert "hold 120 bytes" in one.reason
    assert memory.total == 0


def test_progress_of_any_connection_allows_all_another_second(
    loop: Loop, memory: RequestMemory
) -> None:
    """If requests of any connection were processed, the memory is full but not stuck."""
    one, other = Connection(memory), Connection(memory)
    memory.note(one, 110)
    memory.note(other, 60)
    loop.advance(STALL_S * 0.9)
    memory.note(other, 20)
    loop.advance(STALL_S * 0.9)
    assert (one.reason, other.reason) == (None, None)
    loop.advance(STALL_S * 0.2)
    assert one.reason is not None


def test_a_connection_that_has_just_started_waiting_is_kept(
    loop: Loop, memory: RequestMemory
) -> None:
    one, late = Connection(memory), Connection(memory)
    memory.note(one, 110)
    loop.advance(STALL_S * 0.5)
    memory.note(late, 120)
    loop.advance(STALL_S * 0.6)
    assert one.reason is not None
    assert late.reason is None
    loop.advance(STALL_S)
    assert late.reason is not None


def test_memory_that_is_no_longer_full_refuses_no_connection(
    loop: Loop, memory: RequestMemory
) -> None:
    one = Connection(memory)
    memory.note(one, 110)
    memory.note(one, 90)
    assert one.asked == 2
    loop.advance(10 * STALL_S)
    assert one.reason is None
    assert not loop.calls


def test_the_next_oldest_connection_reads_when_the_oldest_closes(memory: RequestMemory) -> None:
    connections = [Connection(memory) for _ in range(3)]
    for connection in connections:
        memory.note(connection, 110)
    first, second, third = connections
    assert [memory.may_read(one) for one in connections] == [True, False, False]
    asked = second.asked
    memory.note(first, 0)
    assert second.asked == asked + 1
    assert [memory.may_read(one) for one in (second, third)] == [True, False]
