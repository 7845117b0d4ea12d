"""Suites: experiments that are repeated over parameters and seeds.

A suite is a module of the package or a Python file with ``def scenario(run, ...)``, or a scenario
file in TOML. Engines send its text to workers, which need no files of the driver.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...protocol.errors import UsageError
from ...scenarios.file import parse_scenario
from ...scenarios.run import ScenarioRun
from ...scenarios.spec import ScenarioSpec
from ..measuring.budget import Budget
from ..measuring.parameters import SuiteParameter, check_values, hint, parameters_of
from ..measuring.run import Run

Matrix = tuple[dict[str, tuple[Any, ...]], ...]
"""Tables of parameter to values, each of which spans a grid of its own."""

SUITES: tuple[str, ...] = (
    "failover",
    "controlled-shutdown",
    "controller-failover",
    "rolling-restart",
    "isr-churn",
    "produce-latency",
    "unclean",
    "rebalance",
    "reassignment",
    "kafka-5642",
    "old-vs-new",
    "clients",
)
"""Suites that come with the package: the names of their modules, with hyphens."""


@dataclass(frozen=True, slots=True)
class SuiteSource:
    """The origin of a suite: ``package`` and a name, or ``python`` or ``toml`` and the text."""

    kind: str
    name: str
    text: str = ""
    path: str = ""
    """The argument that names the suite on the command line."""


@dataclass(frozen=True)
class Suite:
    """An experiment: its parameters, and a function that carries out one run."""

    name: str
    about: str
    parameters: Mapping[str, SuiteParameter]
    """Parameters by name; empty for a scenario file, of which any key can be set."""
    play: Callable[[Run, Mapping[str, Any]], None]
    matrix: Matrix = ()
    runs: int = 20
    """Number of seeds for each configuration."""
    budget: Budget = field(default_factory=Budget)
    measures: Mapping[str, str] = field(default_factory=dict)
    """The suite's own columns and histograms, with their meanings."""
    headline: str = ""
    """The column that the report shows first."""
    published: tuple[Mapping[str, Any], ...] = ()
    """Measurements published by others, for the report: see ``docs/guides/benchmarks.md``."""
    check: Callable[..., None] | None = None
    """Called with parameters; raises ``UsageError`` for values that are incompatible."""
    cost: Callable[..., float] | None = None
    """Called with parameters; returns about how many seconds one run takes."""
    spec: ScenarioSpec | None = None
    """The parsed scenario file; None for a Python suite."""

    def checked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return all parameters with these values; raise ``UsageError`` if they cannot be run."""
        if self.spec is not None:
            self._spec_with_values(values)
            return dict(values)
        values_with_defaults = check_values(self.name, self.parameters, values)
        if self.check is not None:
            call_with_accepted(self.check, values_with_defaults)
        return values_with_defaults

    def _spec_with_values(self, values: Mapping[str, Any]) -> ScenarioSpec:
        assert self.spec is not None
        all_values = {**self.spec.parameters, **values, "matrix": {}}
        return parse_scenario(self.spec.text, self.spec.source, all_values)


def call_with_accepted(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Call a function of a suite with the parameters that it accepts."""
    accepted = inspect.signature(function).parameters
    return function(**{name: value for name, value in values.items() if name in accepted})


def find_source(name: str) -> SuiteSource:
    """Return the source of a suite, given by its name or file.

    Raises ``UsageError`` if there is none.
    """
    if name in SUITES:
        return SuiteSource("package", name, path=name)
    path = Path(name)
    if path.suffix in (".toml", ".py") and not path.is_dir():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"{name} cannot be read: {reason}") from None
        return SuiteSource("toml" if path.suffix == ".toml" else "python", path.stem, text, name)
    if path.is_dir():
        raise UsageError(
            f"{name} is a directory: name a suite's file in it, .toml or .py, or one of the "
            "suites that fakekafka bench list prints"
        )
    near = hint(name, SUITES)
    raise UsageError(f"there is no suite {name!r}{near}; or name a file, .toml or .py")


@functools.lru_cache(maxsize=8)
def load_suite(source: SuiteSource) -> Suite:
    """Load a suite; raise ``UsageError`` for a file that is not a suite."""
    if source.kind == "toml":
        return _scenario_file_suite(source)
    if source.kind == "package":
        module = importlib.import_module(f"..suites.{source.name.replace('-', '_')}", __package__)
    else:
        module = types.ModuleType(f"fakekafka_suite_{re.sub(r'[^A-Za-z0-9]', '_', source.name)}")
        module.__file__ = source.path
        try:
            exec(compile(source.text, source.path, "exec", dont_inherit=True), module.__dict__)
        except Exception as error:
            raise UsageError(
                f"{source.path} cannot be run: {type(error).__name__}: {error}"
            ) from error
    return _module_suite(source, module)


def _module_suite(source: SuiteSource, module: types.ModuleType) -> Suite:
    scenario = getattr(module, "scenario", None)
    origin = source.path or source.name
    if not callable(scenario):
        raise UsageError(f"{origin} has no function scenario; write def scenario(run, ...)")
    parameters = parameters_of(scenario, origin)

    def play(run: Run, values: Mapping[str, Any]) -> None:
        scenario(run, **values)

    suite = Suite(
        name=source.name,
        about=next(iter((module.__doc__ or "").strip().splitlines()), "").rstrip("."),
        parameters=parameters,
        play=play,
        matrix=_checked_matrix(origin, getattr(module, "MATRIX", ())),
        runs=getattr(module, "RUNS", 20),
        budget=Budget().changed(getattr(module, "BUDGET", {})),
        measures=dict(getattr(module, "MEASURES", {})),
        headline=getattr(module, "HEADLINE", ""),
        published=tuple(getattr(module, "PUBLISHED", ())),
        check=getattr(module, "check", None),
        cost=getattr(module, "cost", None),
    )
    for table in suite.matrix:
        for name, values in table.items():
            if name not in parameters:
                raise UsageError(f"{origin}: MATRIX has {name!r}{hint(name, parameters)}")
            for value in values:
                parameters[name].check(value)
    return suite


def _checked_matrix(origin: str, matrix: Any) -> Matrix:
    """Check one table or several; raise ``UsageError`` for one that is not a table of lists."""
    tables: Iterable[Any] = [matrix] if isinstance(matrix, Mapping) else matrix
    checked = []
    for table in tables:
        if not isinstance(table, Mapping):
            raise UsageError(f"{origin}: MATRIX must be a table of lists, not {table!r}")
        for name, values in table.items():
            if not isinstance(values, (list, tuple)) or not values:
                raise UsageError(f"{origin}: MATRIX {name!r} must be a list, not {values!r}")
        checked.append({name: tuple(values) for name, values in table.items()})
    return tuple(checked)


def _scenario_file_suite(source: SuiteSource) -> Suite:
    spec = parse_scenario(source.text, source.path)
    if spec.story is not None:
        raise UsageError(f"{source.path} is a story, which is the same with every seed: run it "
                         "with fakekafka run")  # fmt: skip

    def play(run: Run, values: Mapping[str, Any]) -> None:
        _play_file(run, suite._spec_with_values(values))

    suite = Suite(
        name=spec.name,
        about=spec.description or f"the scenario {source.path}",
        parameters={},
        play=play,
        matrix=(dict(spec.matrix),) if spec.matrix else (),
        runs=spec.batch.runs,
        budget=Budget().changed(
            {k: int(v) if k == "events" else v for k, v in spec.batch.budget.items()}
        ),
        measures={
            "lost": "acknowledged records that cannot be read at the end",
            "lost_promised": "those of them that were acknowledged by all in-sync replicas",
            "duplicated": "records that are there twice at the end",
        },
        headline="unavailable_ms",
        spec=spec,
    )
    return suite


_FIGURES = (
    "acknowledged",
    "failed",
    "retries",
    "lost",
    "lost_promised",
    "expired",
    "duplicated",
    "duplicated_promised",
)
"""Figures of a scenario's verdict that are columns of a row."""


def _play_file(run: Run, spec: ScenarioSpec) -> None:
    scenario = ScenarioRun(spec, run.seed, run.sink, run.meter)
    run.adopt(scenario.simulation)
    run.meter.from_us = int(spec.batch.warm_up_ms * 1000)
    result = scenario.run()
    run.problems += result.problems
    for name in _FIGURES:
        if name in result.metrics:
            run.value(name, result.metrics[name])
