"""The definition of an operation of the control API, and the state on which operations work."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..protocol.errors import UsageError
from ..testing.parameters.cluster_kinds import BROKER, SERVER
from ..testing.parameters.kinds import COUNT, INDEX, SHOWN_CHARACTERS, STRING, Context
from ..testing.parameters.parameter import Parameter, read, required

if TYPE_CHECKING:
    from ..testing.cluster import Cluster
    from ..testing.handles.injection import Injection
    from ..testing.handles.network import Hold
    from .watching.events import EventFeed

T = TypeVar("T")

PATH_KINDS = {
    "broker": BROKER,
    "partition": INDEX,
    "server": SERVER,
    "injection": COUNT,
    "hold": COUNT,
}
"""Kinds of parameters in paths; all other parameters are strings."""


class JsonContext(Context):
    """Reads values in request bodies, without checking that brokers and topics exist."""

    has_text_keys = True

    def write(self, value: Any) -> str:
        return json.dumps(_beginning(value), ensure_ascii=False)


def _beginning(value: Any) -> Any:
    """Truncate a value of any size to what a message may show."""
    if isinstance(value, str):
        return value[: SHOWN_CHARACTERS + 1]
    if isinstance(value, list):
        return [_beginning(item) for item in value[:SHOWN_CHARACTERS]]
    if isinstance(value, dict):
        kept = list(value.items())[:SHOWN_CHARACTERS]
        return {str(key)[: SHOWN_CHARACTERS + 1]: _beginning(item) for key, item in kept}
    return value


JSON = JsonContext()


class NotReady(Exception):
    """Raised while the cluster does not serve; ``state`` describes its state."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        super().__init__("the cluster does not serve now")
        self.state = state


class FaultRegistry(Generic[T]):
    """The injections or holds that were requested over HTTP, by id."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._ids = itertools.count(1)
        self._faults: dict[int, T] = {}

    def add(self, fault: T) -> int:
        """Keep a fault and return its new id."""
        number = next(self._ids)
        self._faults[number] = fault
        return number

    def put(self, number: int, fault: T) -> None:
        """Keep a fault that already has an id."""
        self._faults[number] = fault

    def get(self, number: int) -> T:
        """Return a fault by its id; raise ``UsageError`` with the known ids if there is none."""
        try:
            return self._faults[number]
        except KeyError:
            known = list(self._faults)
            raise UsageError(f"there is no {self._kind} {number}; ids are {known}") from None

    def remove(self, number: int) -> T:
        fault = self.get(number)
        self._faults.pop(number, None)
        return fault

    def items(self) -> list[tuple[int, T]]:
        return list(self._faults.items())

    def clear(self) -> None:
        self._faults.clear()


@dataclass(frozen=True)
class RequestedFault(Generic[T]):
    """An injection or hold, with the request that started it."""

    handle: T
    request: Mapping[str, Any]


@dataclass(frozen=True)
class ServedCluster:
    """The served cluster, with its event feed and the injections and holds requested over HTTP."""

    cluster: Cluster
    feed: EventFeed
    injections: FaultRegistry[RequestedFault[Injection]] = field(
        default_factory=lambda: FaultRegistry("injection")
    )
    holds: FaultRegistry[RequestedFault[Hold]] = field(
        default_factory=lambda: FaultRegistry("hold")
    )


class Arguments(dict[str, Any]):
    """The parsed values of a request; ``given`` has the original values."""

    given: Mapping[str, Any] = MappingProxyType({})


Run = Callable[[ServedCluster, Arguments], Any]


@dataclass(frozen=True)
class Operation:
    """An operation of the control API."""

    method: str
    path: str
    """Path, with ``{name}`` for each parameter in it."""
    tag: str
    summary: str
    run: Run
    parameters: tuple[Parameter, ...] = ()
    """Fields of the body, or for GET and DELETE parameters of the query."""
    gives: str = "null"
    """Description of the answer."""
    is_stream: bool = False
    """True if the answer is an endless stream of events."""
    gives_bytes: bool = False
    """True if the answer is raw bytes instead of JSON."""

    @property
    def takes_body(self) -> bool:
        return self.method in ("POST", "PUT")

    @property
    def in_path(self) -> list[Parameter]:
        """Parameters in the path, in order."""
        names = [part[1:-1] for part in self.path.split("/") if part.startswith("{")]
        return [required(name, PATH_KINDS.get(name, STRING)) for name in names]

    def read(self, path: Mapping[str, str], given: Mapping[str, Any]) -> Arguments:
        """Read the values of the path and of a body or query; those of path and query are texts.

        Raises ``BadArgument`` with the name of the invalid parameter.
        """
        values = given
        if not self.takes_body:
            kinds = {parameter.name: parameter.kind for parameter in self.parameters}
            values = {n: kinds[n].parse_text(t) if n in kinds else t for n, t in given.items()}
        arguments = Arguments(read(self.parameters, values, JSON))
        for parameter in self.in_path:
            name, kind = parameter.name, parameter.kind
            arguments[name] = kind.read_at(name, kind.parse_text(path[name]), JSON)
        arguments.given = given
        return arguments
