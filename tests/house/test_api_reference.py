"""docs/reference/api.md names the public face: all of it, and nothing that does not exist."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable

import fakekafka
import pytest
from fakekafka import Cluster, Simulation
from fakekafka.actors.clients.consumer import SimulatedConsumer
from fakekafka.actors.clients.group_consumer import SimulatedGroupConsumer
from fakekafka.actors.clients.producer import ProducerSettings, SimulatedProducer
from fakekafka.actors.clients.transactional_producer import SimulatedTransactionalProducer
from fakekafka.actors.clients.transformer import SimulatedTransformer
from fakekafka.scenarios.replay import Replay
from fakekafka.testing import checks
from fakekafka.testing.handles.broker import BrokerHandle
from fakekafka.testing.handles.controller import ControllerHandle
from fakekafka.testing.handles.injection import Injection
from fakekafka.testing.handles.network import Hold, NetworkHandle
from fakekafka.testing.handles.program import ProgramHandle
from fakekafka.testing.handles.zookeeper import ZooKeeperHandle, ZooKeeperServerHandle
from fakekafka.testing.security import ClusterSecurity
from fakekafka.testing.views import (
    ConsumerRecord,
    GroupMemberView,
    GroupView,
    PartitionView,
    ReplicaView,
)
from fakekafka.tests.support.paths import ROOT
from fakekafka.tracing.events import Event
from fakekafka.tracing.reading.causes import Effect
from fakekafka.tracing.reading.reader import Trace
from fakekafka.tracing.reading.state_history import State, StateChange

PAGE = (ROOT / "docs" / "reference" / "api.md").read_text()
CLASSES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Cluster,
        Simulation,
        ProgramHandle,
        BrokerHandle,
        ControllerHandle,
        ZooKeeperHandle,
        NetworkHandle,
        Hold,
        PartitionView,
        ReplicaView,
        GroupView,
        GroupMemberView,
        ConsumerRecord,
        Injection,
        ClusterSecurity,
        SimulatedProducer,
        SimulatedConsumer,
        SimulatedGroupConsumer,
        SimulatedTransactionalProducer,
        SimulatedTransformer,
        Trace,
        Replay,
        Event,
        State,
        StateChange,
        Effect,
    )
}
INTERNAL = {
    "behaviour",
    "broker_ids",
    "attach",
    "authority",
    "call",
    "create_initial_topics",
    "create_shaped_topic",
    "create_users",
    "guard",
    "end_session",
    "kafka_version",
    "listener_security",
    "processes",
    "remove_files",
    "restore",
    "require_server",
    "running",
    "runtime",
    "usual_latency",
    "stored",
    "zookeepers",
}
"""Public to the package's own modules only."""
PARTLY = {
    "SimulatedProducer",
    "SimulatedConsumer",
    "SimulatedGroupConsumer",
    "SimulatedTransactionalProducer",
    "SimulatedTransformer",
}
"""Actors: most of their methods are for the runtime, the page has the rest."""


def sections(text: str) -> dict[str, set[str]]:
    """Heading to the names in the first column of its tables."""
    found: dict[str, set[str]] = {}
    for part in text.split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        cells = re.findall(r"^\| (`[^|]*) \|", body, re.MULTILINE)
        found[title] = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    return found


def members(kind: type) -> set[str]:
    """Public methods, properties and fields, and attributes set by ``__init__``."""
    names = {name for name in dir(kind) if not name.startswith("_")}
    if dataclasses.is_dataclass(kind):
        names |= {field.name for field in dataclasses.fields(kind)}
    names |= set(getattr(kind, "_fields", ())) if issubclass(kind, tuple) else set()
    names |= set(getattr(kind, "__slots__", ()))
    own = kind.__dict__.get("__init__")
    if inspect.isfunction(own) and not dataclasses.is_dataclass(kind):
        names |= set(re.findall(r"self\.([a-z]\w*)\b[^=\n(]* = ", inspect.getsource(own)))
    return {name for name in names if not name.startswith("_")}


DOCUMENTED = sections(PAGE)


def test_the_public_names_of_the_package_are_listed() -> None:
    """All of ``__all__``, and nothing else."""
    assert {n for n in fakekafka.__all__ if n != "__version__"} == DOCUMENTED["The package"]
    assert all(hasattr(fakekafka, name) for name in DOCUMENTED["The package"])


@pytest.mark.parametrize("name", CLASSES)
def test_every_name_of_a_section_exists(name: str) -> None:
    """A row that names nothing is a promise that is not kept."""
    assert sorted(DOCUMENTED[name] - members(CLASSES[name])) == []


@pytest.mark.parametrize("name", ["Cluster", "Simulation"])
def test_what_both_have_is_on_both(name: str) -> None:
    """The shared part of the page is true of either."""
    assert sorted(DOCUMENTED["On both"] - members(CLASSES[name])) == []


@pytest.mark.parametrize("name", [name for name in CLASSES if name not in PARTLY])
def test_every_public_method_is_listed(name: str) -> None:
    """What a user can call is on the page, or in the table of what is internal."""
    kind = CLASSES[name]
    public = {member for member in dir(kind) if not member.startswith("_")} - INTERNAL
    public -= {member for member in public if inspect.isclass(getattr(kind, member))}
    shared = DOCUMENTED["On both"] if name in ("Cluster", "Simulation") else set()
    missing = public - DOCUMENTED[name] - shared - {"count", "index"}
    assert sorted(missing) == []


@pytest.mark.parametrize("kind", [Cluster, Simulation])
def test_every_argument_is_listed(kind: Callable[..., object]) -> None:
    """Arguments of the two constructors, in either direction for their own tables."""
    given = set(inspect.signature(kind).parameters)
    assert sorted(given - DOCUMENTED["Arguments"]) == []
    both = {*inspect.signature(Cluster).parameters, *inspect.signature(Simulation).parameters}
    assert sorted(DOCUMENTED["Arguments"] - both) == []


def test_checks_server_handles_and_producer_settings_are_as_described() -> None:
    """The sections that are not about one class."""
    assert all(callable(getattr(checks, name)) for name in DOCUMENTED["Checks"])
    assert {"kill", "start", "is_alive"} <= members(ZooKeeperServerHandle)
    for field in dataclasses.fields(ProducerSettings):
        assert f"`{field.name}`" in PAGE, field.name


def test_a_made_up_name_is_found() -> None:
    """The reader of the page sees each name of a row."""
    page = "# T\n\n## Replay\n\n| name | what |\n|---|---|\n| `trace`, `made_up` | `no` |\n"
    assert sections(page) == {"Replay": {"trace", "made_up"}}
    assert sections(page)["Replay"] - members(Replay) == {"made_up"}
