"""Construction of operations by section, including those that perform an action of scenarios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Concatenate

from ..protocol.values import frozen
from ..scenarios.actions import ACTIONS
from ..testing.parameters.parameter import Parameter
from .operation import Arguments, Operation, Run, ServedCluster

_Maker = Callable[Concatenate["Section", str, str, Run, ...], Operation]


def _maker_of(method: str) -> _Maker:
    def make(
        self: Section, path: str, summary: str, run: Run, *parameters: Parameter, **more: Any
    ) -> Operation:
        return Operation(method, path, self.tag, summary, run, parameters, **more)

    return make


@frozen
class Section:
    """Makes operations with one tag; see ``Operation`` for the arguments."""

    tag: str

    get: ClassVar[_Maker] = _maker_of("GET")
    post: ClassVar[_Maker] = _maker_of("POST")
    put: ClassVar[_Maker] = _maker_of("PUT")
    delete: ClassVar[_Maker] = _maker_of("DELETE")

    def act(
        self,
        path: str,
        name: str,
        *,
        method: str = "POST",
        names: Mapping[str, str] | None = None,
        run: Run | None = None,
    ) -> Operation:
        """Return an operation that performs an action, with its summary and parameters.

        Parameters in the path have their names in scenario files; ``names`` maps others to their
        names in this API. ``run`` replaces the plain call of the action.
        """
        action = ACTIONS[name]
        api_names = {one.name: _name(one, path, names or {}) for one in action.parameters}

        def act(served: ServedCluster, arguments: Arguments) -> Any:
            given = {
                one: arguments[api_name]
                for one, api_name in api_names.items()
                if api_name in arguments
            }
            return action.perform(served.cluster, given)

        parameters = (replace(one, name=api_names[one.name]) for one in action.parameters)
        in_body = tuple(one for one in parameters if f"{{{one.name}}}" not in path)
        return Operation(
            method, path, self.tag, action.summary, run or act, in_body, action.answer_description
        )


def _name(parameter: Parameter, path: str, names: Mapping[str, str]) -> str:
    if parameter.key and f"{{{parameter.key}}}" in path:
        return parameter.key
    return names.get(parameter.name, parameter.name)
