"""The pytest plugin: clusters and simulations as fixtures, and the mark that configures them.

``@pytest.mark.kafka(brokers=3, topics={"orders": 3}, config={...})`` gives arguments of
``Cluster`` or ``Simulation`` for a test, a class or a module. The ini file and the fixture
``kafka_arguments`` give those of the whole session. When a test fails, its report describes each
cluster or simulation that is the value of one of its fixtures, including fixtures of the user.
``recording`` makes the report and keeps the trace.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .arguments import nearest
from .programs import async_tests, explored, verified
from .recording import hash_seed
from .recording.kept_traces import KEPT_EVENTS, Emulated, cluster_report

if TYPE_CHECKING:
    from .cluster import Cluster
    from .emulated_cluster import EmulatedCluster
    from .simulation import Simulation

_MARKS = (
    "kafka(**arguments): arguments of the test's Cluster or Simulation; marks of a module, a "
    "class and a test are combined; seeds=range(20) runs a test with kafka_simulation for each",
    "kafka_program(timeout_s=3600, verify=False): an async def test runs in virtual time, as a "
    "program of its kafka_simulation; verify=True compares it with a run in another process",
    "kafka_explore(only=None, without=()): faults that `fakekafka explore` tries with the test",
    "kafka_faults(director, case=None): faults that a director injects into the test",
)
_INI: dict[str, tuple[Any, str]] = {
    "kafka_brokers": ("string", "number of brokers of a cluster, or their ids, such as 0,1,2"),
    "kafka_version": ("string", "the emulated release, such as 2.8"),
    "kafka_zookeepers": ("string", "how many ZooKeeper servers"),
    "kafka_runtime": ("string", "live or threaded"),
    "kafka_config": ("linelist", "broker configuration, a line such as num.partitions=4 each"),
    "kafka_topics": ("linelist", "topics of every test, a line such as orders=3 each"),
}
_HASH_SEED = "kafka_hash_seed"

_SEEDS_RENAMED = "--fakekafka-seeds is called --kafka-seeds now; the old name goes in fakekafka 0.4"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fakekafka")
    group.addoption(
        "--kafka-trace",
        choices=("failed", "always", "never"),
        default="failed",
        help="when to keep the traces of clusters and simulations (default: of failed tests)",
    )
    group.addoption(
        "--kafka-seeds",
        type=int,
        metavar="N",
        help="run each test with the mark kafka_program under the seeds 1 to N",
    )
    group.addoption("--fakekafka-seeds", type=int, metavar="N", help=_SEEDS_RENAMED)
    group.addoption(
        "--kafka-verify",
        action="store_true",
        help="run each test with the mark kafka_program a second time in another process with "
        "another hash seed, and fail if that is not the same run",
    )
    for name, (kind, text) in _INI.items():
        parser.addini(name, f"fakekafka: {text}", type=kind, default=None)
    parser.addini(
        _HASH_SEED,
        "fakekafka: the hash seed of the process that runs the tests; it is started again under it",
        type="string",
        default=None,
    )


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """Restart pytest under its hash seed, before it does more than read its arguments."""
    if early_config.getini(_HASH_SEED):
        hash_seed.pin_hash_seed(_parse_whole_number(_HASH_SEED, early_config.getini(_HASH_SEED)))
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    seeds = config.getoption("--fakekafka-seeds")
    if seeds is not None:
        config.issue_config_time_warning(DeprecationWarning(_SEEDS_RENAMED), stacklevel=2)
        if config.option.kafka_seeds is None:
            config.option.kafka_seeds = seeds
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)
    _reject_unknown_options(config)


def _reject_unknown_options(config: pytest.Config) -> None:
    """Raise ``UsageError`` for an unknown ini option kafka_..., for which pytest only warns."""
    known = [*_INI, _HASH_SEED]
    given = [text.partition("=")[0] for text in config.getoption("override_ini") or ()]
    for name in (*_ini_names(config.inipath), *given):
        if name.startswith("kafka_"):
            try:
                config.getini(name)
            except ValueError:
                raise pytest.UsageError(
                    f"the ini file has an unknown option {name!r} (there are "
                    f"{', '.join(known)}){nearest(name, known)}"
                ) from None


def _ini_names(path: Path | None) -> list[str]:
    """Return the options that pytest's ini file sets, as pytest's own list of them is private."""
    if path is None:
        return []
    if path.suffix == ".toml":
        import tomllib

        read = tomllib.loads(path.read_text(encoding="utf-8"))
        table = read.get("pytest") or read.get("tool", {}).get("pytest", {})
        return [*table, *table.get("ini_options", {})]
    import iniconfig

    sections = iniconfig.IniConfig(str(path)).sections
    return [name for title in ("pytest", "tool:pytest") for name in sections.get(title, {})]


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> None:
    """Replace tests that are programs before other plugins see them."""
    async_tests.prepare(collector, name, obj)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the other cases of tests that were written for one case."""
    explored.leave_out_other_cases(config, items)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a program."""
    return async_tests.run(pyfuncitem) or None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that ignores a failure inside its cluster or in an observer."""
    for value in getattr(item, "funcargs", {}).values():
        if _is_emulated(value):
            _remember(item, value)
    try:
        result = yield
    finally:
        verified.save(item)
    for emulated in item.stash.get(_EMULATED, ()):
        emulated.raise_failure()
    verified.verify(item)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    mode = item.config.getoption("--kafka-trace")
    if report.when == "call" and (report.failed or mode == "always"):
        every = item.stash.get(_EMULATED, [])
        for number, emulated in enumerate(every, 1):
            name_suffix = f"-{number}" if len(every) > 1 else ""
            text = cluster_report(item, emulated, report.failed, mode, name_suffix)
            if text:
                report.sections.append((f"fakekafka{name_suffix}", text))
    return report


_EMULATED: pytest.StashKey[list[Emulated]] = pytest.StashKey()


def _is_emulated(value: object) -> bool:
    module = sys.modules.get(f"{__package__}.emulated_cluster")
    return module is not None and isinstance(value, module.EmulatedCluster)


def _remember(item: Any, cluster: EmulatedCluster) -> None:
    known = item.stash.setdefault(_EMULATED, [])
    if not any(emulated.cluster is cluster for emulated in known):
        known.append(Emulated(cluster))


def forget(item: pytest.Item) -> None:
    """Forget the clusters of a test that is about to be repeated."""
    if _EMULATED in item.stash:
        del item.stash[_EMULATED]


@pytest.fixture
def kafka_watch(request: pytest.FixtureRequest) -> Callable[[EmulatedCluster], EmulatedCluster]:
    """Function that takes a ``Cluster`` or ``Simulation`` made by the test itself, and returns it.

    If the test fails, the report describes the cluster like one of a fixture, and keeps its trace.
    """

    def watch(cluster: EmulatedCluster) -> EmulatedCluster:
        if not _is_emulated(cluster):
            raise pytest.UsageError(f"kafka_watch takes a Cluster or a Simulation, not {cluster!r}")
        _remember(request.node, cluster)
        return cluster

    return watch


# -- the arguments of a cluster -------------------------------------------------------------------


def _ini_arguments(config: pytest.Config) -> dict[str, Any]:
    """Return the arguments of a cluster that the ini file gives."""
    found: dict[str, Any] = {}
    for key in _INI:
        value = config.getini(key)
        if not value:
            continue
        name = key if key == "kafka_version" else key.removeprefix("kafka_")
        read = _INI_READERS.get(name)
        found[name] = value if read is None else read(key, value)
    return found


def _parse_whole_number(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise pytest.UsageError(f"{key} must be a whole number, not {text!r}") from None


def _parse_brokers(key: str, text: str) -> int | list[int]:
    if "," not in text:
        return _parse_whole_number(key, text)
    return [_parse_whole_number(key, part.strip()) for part in text.split(",") if part.strip()]


def _parse_pairs(key: str, lines: list[str]) -> dict[str, str]:
    found = {}
    for line in lines:
        name, separator, value = line.partition("=")
        if not separator:
            example = "orders=3" if key == "kafka_topics" else "num.partitions=4"
            raise pytest.UsageError(f"{key}: write a line such as {example}, not {line!r}")
        found[name.strip()] = value.strip()
    return found


def _parse_topics(key: str, lines: list[str]) -> dict[str, int]:
    return {
        name: _parse_whole_number(f"{key}: {name}", count)
        for name, count in _parse_pairs(key, lines).items()
    }


_INI_READERS: dict[str, Any] = {
    "brokers": _parse_brokers,
    "zookeepers": _parse_whole_number,
    "config": _parse_pairs,
    "topics": _parse_topics,
}


def _merged(overriding: dict[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two sets of arguments, ``config`` and ``topics`` key by key."""
    found = dict(base)
    if {"seed", "seeds"} & overriding.keys():
        found.pop("seed", None)
        found.pop("seeds", None)
    for name, value in overriding.items():
        if name in ("config", "topics") and isinstance(value, Mapping) and found.get(name):
            value = {**found[name], **value}
        found[name] = value
    return found


def _mark_arguments(node: Any) -> dict[str, Any]:
    """Return the merged arguments of all marks of a test, its class and its module."""
    found: dict[str, Any] = {}
    for mark in node.iter_markers("kafka"):  # the nearest first
        if mark.args:
            raise pytest.UsageError("the kafka mark takes keyword arguments only, as Cluster does")
        if {"seed", "seeds"} <= mark.kwargs.keys():
            raise pytest.UsageError("the kafka mark takes seed or seeds, not both")
        found = _merged(found, mark.kwargs)
    return found


def _parameter_names(kind: type[Any]) -> list[str]:
    return [name for name in inspect.signature(kind).parameters if name != "self"]


def _all_parameter_names() -> list[str]:
    from .cluster import Cluster
    from .simulation import Simulation

    return [*_parameter_names(Cluster), *_parameter_names(Simulation)]


def _checked_arguments(
    request: pytest.FixtureRequest, kind: type[Any], session: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of ``kind`` that the session and the marks give.

    A session, a class or a module may have arguments of the other kind; a test's own mark may not.
    """
    known = _parameter_names(kind)
    all_known = {*_all_parameter_names(), "seeds"}
    own = {name for m in request.node.own_markers if m.name == "kafka" for name in m.kwargs}
    merged = _merged(_mark_arguments(request.node), session)
    for name in merged:
        if name not in all_known or (name in own and name not in (*known, "seeds")):
            hint = nearest(name, known)
            raise pytest.UsageError(
                f"the kafka mark gives {request.fixturename} an unknown argument {name!r}{hint}"
            )
    return {name: value for name, value in merged.items() if name in known}


@pytest.fixture(scope="session")
def kafka_arguments() -> dict[str, Any]:
    """Arguments of every cluster and simulation of the session; override it in a conftest.

    They take precedence over the ini file, and marks take precedence over them.
    """
    return {}


@pytest.fixture(scope="session")
def _session_arguments(
    pytestconfig: pytest.Config, kafka_arguments: Mapping[str, Any]
) -> dict[str, Any]:
    known = _all_parameter_names()
    if not isinstance(kafka_arguments, Mapping):
        raise pytest.UsageError(
            f"the fixture kafka_arguments must give a dict of arguments, not {kafka_arguments!r}"
        )
    for name in kafka_arguments:
        if name not in known:
            raise pytest.UsageError(
                f"the fixture kafka_arguments gives an unknown argument {name!r}"
                f"{nearest(name, known)}"
            )
    return _merged(dict(kafka_arguments), _ini_arguments(pytestconfig))


# -- clusters --------------------------------------------------------------------------------------


def _make_cluster(request: pytest.FixtureRequest, session: Mapping[str, Any]) -> Cluster:
    """Create the cluster of a fixture, which records, with the arguments of the fixture's scope."""
    from .cluster import Cluster

    arguments = _checked_arguments(request, Cluster, session)
    _keep_last_events(request.config, arguments)
    return Cluster(**arguments)


@pytest.fixture
def kafka_cluster(
    request: pytest.FixtureRequest, _session_arguments: dict[str, Any]
) -> Generator[Cluster, None, None]:
    """A new cluster for this test alone."""
    with _make_cluster(request, _session_arguments) as cluster:
        _remember(request.node, cluster)
        yield cluster


@pytest.fixture(scope="class")
def class_kafka_cluster(
    request: pytest.FixtureRequest, _session_arguments: dict[str, Any]
) -> Generator[Cluster, None, None]:
    """A cluster for the tests of a class, with the arguments of its marks; it is never reset."""
    with _make_cluster(request, _session_arguments) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def module_kafka_cluster(
    request: pytest.FixtureRequest, _session_arguments: dict[str, Any]
) -> Generator[Cluster, None, None]:
    """A cluster for the tests of a module, with the arguments of its marks; it is never reset."""
    with _make_cluster(request, _session_arguments) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def session_kafka_cluster(
    request: pytest.FixtureRequest, _session_arguments: dict[str, Any]
) -> Generator[Cluster, None, None]:
    """A cluster for all tests, with the arguments of the session; it is never reset."""
    with _make_cluster(request, _session_arguments) as cluster:
        yield cluster


def _keep_last_events(config: pytest.Config, arguments: dict[str, Any]) -> None:
    """Let a cluster record to memory, unless the test sets ``trace`` or no trace is to be kept."""
    if config.getoption("--kafka-trace") != "never":
        arguments.setdefault("trace", KEPT_EVENTS)


class _Shared:
    """The cluster that tests share, replaced by a new one when it could not be reset."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._arguments = arguments
        self._cluster: Cluster | None = None

    def acquire(self) -> Cluster:
        from .cluster import Cluster

        if self._cluster is None:
            self._cluster = Cluster(**self._arguments).start()
        return self._cluster

    def release(self) -> None:
        if self._cluster is None:
            return
        if not self._cluster.is_started:
            self._cluster = None
            pytest.fail(
                "the test stopped the cluster that it shares; the next test gets another "
                "(kafka_cluster is a cluster of its own)",
                pytrace=False,
            )
        try:
            self._cluster.reset()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            cluster.stop()


@pytest.fixture(scope="session")
def _shared_cluster(
    pytestconfig: pytest.Config, _session_arguments: dict[str, Any]
) -> Generator[_Shared, None, None]:
    from .cluster import Cluster

    known = _parameter_names(Cluster)
    shape = {name: value for name, value in _session_arguments.items() if name in known}
    shape.pop("topics", None)
    _keep_last_events(pytestconfig, shape)
    shared = _Shared(shape)
    yield shared
    shared.stop()


@pytest.fixture
def shared_kafka_cluster(
    request: pytest.FixtureRequest, _shared_cluster: _Shared, _session_arguments: dict[str, Any]
) -> Generator[Cluster, None, None]:
    """The session's cluster, reset after every test.

    The ``kafka`` mark may give only ``topics``, as everything else is the same for all tests.
    """
    arguments = _mark_arguments(request.node)
    given = arguments.keys() - {"topics", "seed", "seeds"}
    if given:
        raise pytest.UsageError(
            f"shared_kafka_cluster takes only topics, not {', '.join(sorted(given))}; "
            "use kafka_cluster for a cluster of its own"
        )
    topics = _merged(arguments, _session_arguments).get("topics") or {}
    try:
        cluster = _shared_cluster.acquire()
        for name, shape in topics.items():
            cluster.create_shaped_topic(name, shape)
        _remember(request.node, cluster)
        yield cluster
    finally:
        _shared_cluster.release()


_WIDER_SCOPES = ("class_kafka_cluster", "module_kafka_cluster", "session_kafka_cluster")


@pytest.fixture
def kafka_bootstrap_servers(request: pytest.FixtureRequest) -> str:
    """Bootstrap servers of the cluster that the test has as a fixture.

    If the test has no cluster, it gets ``shared_kafka_cluster``, or ``kafka_cluster`` if its mark
    gives arguments other than topics.
    """
    needs_own_cluster = bool(_mark_arguments(request.node).keys() - {"topics", "seed", "seeds"})
    present = [name for name in ("kafka_cluster", *_WIDER_SCOPES) if name in request.fixturenames]
    fixture = (*present, "kafka_cluster" if needs_own_cluster else "shared_kafka_cluster")[0]
    return str(request.getfixturevalue(fixture).bootstrap_servers)


# -- simulations -----------------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each seed that its marks or the command line give."""
    if explored.decides_seeds(metafunc):
        return
    try:
        seeds = _mark_arguments(metafunc.definition).get("seeds")
    except pytest.UsageError:
        return  # the fixture reports the error
    own = [m for m in metafunc.definition.own_markers if m.name == "kafka" and "seeds" in m.kwargs]
    if "kafka_simulation" not in metafunc.fixturenames:
        if own:
            raise pytest.Collector.CollectError(
                f"{metafunc.definition.nodeid}: the kafka mark gives seeds, but the test has no "
                "kafka_simulation; only simulations have a seed"
            )
        return
    if seeds is None:
        seeds = async_tests.seeds_of(metafunc)
    if seeds is None:
        return
    if isinstance(seeds, (str, Mapping)) or not isinstance(seeds, Iterable):
        example = f"range({seeds})" if isinstance(seeds, int) else "range(20)"
        raise pytest.Collector.CollectError(
            f"{metafunc.definition.nodeid}: seeds must be whole numbers, such as {example}, "
            f"not {seeds!r}"
        )
    each = list(seeds)
    names = [f"seed{seed}" for seed in each]
    metafunc.parametrize("kafka_simulation", each, indirect=True, ids=names)


@pytest.fixture
def kafka_simulation(
    request: pytest.FixtureRequest, _session_arguments: dict[str, Any]
) -> Generator[Simulation, None, None]:
    """A simulated cluster, whose trace is kept if the test fails."""
    from .simulation import Simulation

    arguments = _checked_arguments(request, Simulation, _session_arguments)
    if hasattr(request, "param"):
        arguments["seed"] = request.param
    director = explored.director_of(request.node)
    if director is not None:
        arguments.update(director.arguments)
    with Simulation(**arguments) as simulation:
        _remember(request.node, simulation)
        verified.prepare(request.node, simulation)
        if director is not None:
            director.begin(simulation)
        yield simulation
