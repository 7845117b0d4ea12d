"""All scenarios, found in the folder ``scenarios``."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from fakekafka.tests.fidelity import scenarios
from fakekafka.tests.fidelity.stage.declaring import Scenario


@functools.cache
def all_scenarios() -> dict[str, Scenario]:
    """Return all scenarios by name, in the order of modules and of definition."""
    found: dict[str, Scenario] = {}
    for module in sorted(pkgutil.iter_modules(scenarios.__path__), key=lambda m: m.name):
        loaded = importlib.import_module(f"{scenarios.__name__}.{module.name}")
        for scenario in getattr(loaded, "SCENARIOS", ()):
            if scenario.name in found:
                raise ValueError(f"two scenarios are called {scenario.name}")
            found[scenario.name] = scenario
    return found


def chosen(kafka_version: str, names: tuple[str, ...] = ()) -> list[Scenario]:
    """Return the scenarios that run with a release and whose names contain one of the words."""
    return [
        scenario
        for scenario in all_scenarios().values()
        if kafka_version in scenario.versions
        and (not names or any(word in scenario.name for word in names))
    ]
