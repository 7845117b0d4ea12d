"""Fixtures that run actor tests on every runtime."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from fakekafka.actors.runtime.live import LiveRuntime
from fakekafka.actors.runtime.runtime import Runtime
from fakekafka.actors.runtime.threaded import ThreadedRuntime
from fakekafka.actors.runtime.virtual import VirtualRuntime
from fakekafka.tests.support.runtimes import Settle


@pytest.fixture(params=["virtual", "live", "threaded"])
def runtime(request: pytest.FixtureRequest) -> Iterator[Runtime]:
    """Yield each runtime; no handler may have failed unless the test clears the failures."""
    made: Runtime
    if request.param == "virtual":
        made = VirtualRuntime(seed=1)
    elif request.param == "live":
        made = LiveRuntime(seed=1)
    else:
        made = ThreadedRuntime(seed=1)
    yield made
    made.stop()
    assert made.failures == []


@pytest.fixture
def settle(runtime: Runtime) -> Settle:
    """Return a function that runs until a condition holds, in virtual or in real time."""

    def until(condition: Callable[[], object], timeout_s: float = 5) -> None:
        if isinstance(runtime, VirtualRuntime):
            limit = runtime.now_us() + int(timeout_s * 1e6)
            if not condition():
                runtime.run(limit, until=condition)
            assert condition(), "the condition did not come true in virtual time"
            return
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true"
            time.sleep(0.0005)

    return until
