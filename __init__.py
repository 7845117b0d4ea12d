"""fakekafka: an Apache Kafka cluster of the ZooKeeper era inside one Python process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import builds as builds  # before any module that may be compiled
from .version import __version__

if TYPE_CHECKING:
    from .protocol.errors import FakeKafkaError, KafkaError, NotThereYet, UsageError
    from .protocol.security.configuration import ListenerSpec, SecurityConfig
    from .scenarios.replay import Replay, replay
    from .testing.cluster import Cluster
    from .testing.defaults import kafka_defaults
    from .testing.programs.sameness import RunsDiffer
    from .testing.programs.simulate import simulate
    from .testing.recording.hash_seed import pin_hash_seed
    from .testing.running import WaitTimeout
    from .testing.simulation import Simulation
    from .testing.views import ConsumerRecord
    from .tracing.events import Event, TraceError
    from .tracing.reading.reader import Trace, open_trace

_PUBLIC = {
    "Cluster": "testing.cluster",
    "ConsumerRecord": "testing.views",
    "Event": "tracing.events",
    "FakeKafkaError": "protocol.errors",
    "KafkaError": "protocol.errors",
    "ListenerSpec": "protocol.security.configuration",
    "NotThereYet": "protocol.errors",
    "SecurityConfig": "protocol.security.configuration",
    "Simulation": "testing.simulation",
    "Replay": "scenarios.replay",
    "RunsDiffer": "testing.programs.sameness",
    "Trace": "tracing.reading.reader",
    "TraceError": "tracing.events",
    "UsageError": "protocol.errors",
    "WaitTimeout": "testing.running",
    "kafka_defaults": "testing.defaults",
    "open_trace": "tracing.reading.reader",
    "pin_hash_seed": "testing.recording.hash_seed",
    "replay": "scenarios.replay",
    "simulate": "testing.programs.simulate",
}

__all__ = [
    "Cluster",
    "ConsumerRecord",
    "Event",
    "FakeKafkaError",
    "KafkaError",
    "ListenerSpec",
    "NotThereYet",
    "Replay",
    "RunsDiffer",
    "SecurityConfig",
    "Simulation",
    "Trace",
    "TraceError",
    "UsageError",
    "WaitTimeout",
    "__version__",
    "kafka_defaults",
    "open_trace",
    "pin_hash_seed",
    "replay",
    "simulate",
]


if not TYPE_CHECKING:  # otherwise every misspelt name would have the type Any

    def __getattr__(name: str) -> Any:
        """Import a public name on first use, as ``fakekafka --version`` needs none of them."""
        module = _PUBLIC.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(f".{module}", __name__), name)
        globals()[name] = value
        return value
