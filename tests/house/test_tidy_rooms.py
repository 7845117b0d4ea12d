"""The rooms inside the folders as a test: order, circles, size, and use of private names."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
from fakekafka.tests.support.imports import (
    import_circles,
    import_graph,
    imported_modules,
    in_package,
)

ROOMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "replication": (
        ("log",),
        ("disk",),
        ("waiting",),
        ("partition",),
        ("byte_rate",),
        ("replication_quotas",),
        ("leader", "follower"),
        ("storage_failures", "log_dirs"),
        ("role_changes", "upkeep"),
        ("replica_manager",),
    ),
    "statemachines": (
        ("zookeeper",),
        ("machines",),
        ("controller",),
        ("broker",),
        ("admin", "security"),
    ),
    "actors": (
        ("clock", "delivery", "silence"),
        ("interfaces",),
        ("network", "state_changes", "causes"),
        ("port",),
        ("node",),
        ("runtime", "session_node"),
        ("broker", "zookeeper", "clients"),
    ),
    "tracing": (("*",), ("story",), ("reading",), ("debugger", "web")),
    "wire": (("*",), ("kafka", "zookeeper")),
    "zkfake": (("*",), ("server", "client")),
    "testing": (
        ("api_names", "condition_text", "foreign_pages", "views"),
        ("parameters",),
        ("arguments",),
        ("running",),
        ("handles",),
        ("*",),
    ),
    "scenarios": (("*",), ("questions",)),
    "control": (("page",), ("*",)),
    "spark_bench": (
        ("measuring",),
        ("suites",),
        ("planning",),
        ("engines", "tables"),
        ("reports",),
        ("*",),
    ),
    "exploration": (
        ("step", "watch"),
        ("world",),
        ("cluster_steps",),
        ("generator",),
        ("faults",),
        ("worlds", "known"),
        ("invariants",),
        ("targets",),
        ("*",),
    ),
}
"""The rooms of each folder, from the lowest up. A room imports itself and rooms of earlier groups;
rooms of one group do not import each other. ``*`` stands for every file beside the rooms.
"""

FILES_MAX = 20
CROWDED: dict[str, str] = {"wire/kafka/apis": "one file per API of Kafka"}
"""Folders that may have more than ``FILES_MAX`` Python files side by side, with the reason."""

PUBLIC = frozenset(("_replace", "_asdict", "_make", "_fields"))
"""Methods of named tuples, which are public in spite of their underscore."""

KNOWN = frozenset(Path(__file__).with_name("still_open.txt").read_text().splitlines())
"""Known findings. None may be added, and fixed ones have to be removed from the list."""

_PYKKA = "Pykka's seam for runtimes of its actors; it has no public name"
_LOOP = "asyncio's seam for event loops; it has no public name"
_SESSION = "pytest has no other way to keep a session open between two runs of a test"
REACHES_IN: dict[tuple[str, str], str] = {
    ("actors/runtime/runtime.py", "_handle_receive"): _PYKKA,
    ("actors/runtime/threaded.py", "_actor_loop_running"): _PYKKA,
    ("actors/runtime/threaded.py", "_create_actor_inbox"): _PYKKA,
    ("actors/runtime/threaded.py", "_create_future"): _PYKKA,
    ("exploration/programs/explored_test.py", "_do_configure"): _SESSION,
    ("exploration/programs/explored_test.py", "_ensure_unconfigure"): _SESSION,
    ("exploration/programs/explored_test.py", "_setupstate"): _SESSION,
    ("programs/environment.py", "_get_running_loop"): _LOOP,
    ("programs/environment.py", "_set_running_loop"): _LOOP,
    ("programs/loop.py", "_get_running_loop"): _LOOP,
    ("programs/loop.py", "_set_running_loop"): _LOOP,
    ("programs/program_loop.py", "_app_transport"): "asyncio's own loops read it so",
    ("programs/watchdog.py", "_current_frames"): "sys._current_frames has no other name",
}
"""The reason why a file uses a private name of another file, by (path, name)."""


def room_violations(graph: dict[str, dict[str, int]]) -> list[str]:
    """Return imports that go up inside a folder, or across to a room of the same group."""
    found = []
    for module, targets in graph.items():
        folder, _, rest = module.partition(".")
        if folder not in ROOMS or not rest:
            continue
        for target in targets:
            target_folder, _, target_rest = target.partition(".")
            if target_folder != folder or not target_rest:
                continue
            here, there = rest.split(".")[0], target_rest.split(".")[0]
            if here == there:
                continue
            heights = {room: height for height, group in enumerate(ROOMS[folder]) for room in group}
            height = heights.get(here, heights.get("*"))
            target_height = heights.get(there, heights.get("*"))
            if height is None or target_height is None:
                unknown = here if height is None else there
                found.append(f"{module}: {folder}/{unknown} has no place in ROOMS")
            elif target_height > height:
                found.append(f"{module}: imports {target}, which stands above it")
            elif target_height == height and here in heights:
                found.append(f"{module}: imports {target}, which stands beside it")
    return found


def crowded_folders(paths: list[str]) -> list[str]:
    """Return folders with too many files to find one."""
    counts = Counter(
        path.rpartition("/")[0]
        for path in paths
        if in_package(path) and not path.endswith("__init__.py")
    )
    return [
        f"{folder}: {count} Python files side by side, at most {FILES_MAX}"
        for folder, count in sorted(counts.items())
        if count > FILES_MAX and folder not in CROWDED
    ]


def own_names(tree: ast.Module) -> set[str]:
    """Return private names that a file defines: functions, methods, attributes, slots, fields."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)  # a slot
    return names


def private_access(path: str, text: str) -> list[tuple[int, str]]:
    """Return (line, name) of private names that belong to another file."""
    tree = ast.parse(text)
    own = own_names(tree)
    found = [
        (line, name)
        for line, _, name in imported_modules(path, tree)
        if name.startswith("_") and not name.startswith("__")
    ]
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
            and node.attr not in own
            and node.attr not in PUBLIC
            and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "super"))
        ):
            found.append((node.lineno, node.attr))
    return found


def check(found: list[str]) -> None:
    new = sorted(set(found) - KNOWN)
    assert new == [], "\n" + "\n".join(new)


@pytest.fixture(scope="module")
def graph(texts: dict[str, str]) -> dict[str, dict[str, int]]:
    """The imports between the modules of the package."""
    return import_graph(texts)


@pytest.fixture(scope="module")
def reaches_in(texts: dict[str, str]) -> list[tuple[str, str]]:
    """The uses of private names of other files in the package, as (path, name)."""
    return [
        (path, name)
        for path, text in texts.items()
        if in_package(path)
        for _, name in private_access(path, text)
    ]


def test_known_findings_still_exist(
    graph: dict[str, dict[str, int]], reaches_in: list[tuple[str, str]]
) -> None:
    """A fixed finding is removed from the list."""
    found = set(room_violations(graph))
    found |= {f"{member} is in a circle" for circle in import_circles(graph) for member in circle}
    found |= {f"{path}: {name} is private to another file" for path, name in reaches_in}
    assert sorted(KNOWN - found) == []


def test_rooms_import_only_what_stands_below_them(graph: dict[str, dict[str, int]]) -> None:
    """Every import, also for annotations, follows the order in ``ROOMS``."""
    check(room_violations(graph))


def test_no_files_import_each_other(graph: dict[str, dict[str, int]]) -> None:
    """Imports have no circles, even with those for annotations."""
    circles = import_circles(graph)
    check([f"{member} is in a circle" for circle in circles for member in circle])


def test_no_folder_is_crowded(texts: dict[str, str]) -> None:
    """A folder has at most 20 Python files side by side."""
    found = crowded_folders(list(texts))
    assert found == [], "\n" + "\n".join(found)


def test_no_file_uses_the_private_names_of_another(reaches_in: list[tuple[str, str]]) -> None:
    """A name that starts with an underscore is used only in its own file, or listed with
    a reason.
    """
    found = [
        f"{path}: {name} is private to another file"
        for path, name in reaches_in
        if (path, name) not in REACHES_IN
    ]
    check(found)


@pytest.mark.parametrize(
    ("module", "target", "findings"),
    [
        ("replication.log.log", "replication.partition.replica", 1),
        ("replication.leader.fetch", "replication.follower.fetcher", 1),
        ("replication.partition.partition", "replication.log.log", 0),
        ("replication.log.log", "replication.log.segment", 0),
        ("replication.cellar.rack", "replication.log.log", 1),
        ("testing.cluster", "testing.views", 0),
        ("testing.handles.broker", "testing.cluster", 1),
        ("scenarios.run", "scenarios.spec", 0),
        ("scenarios.run", "scenarios.questions.probe", 1),
        ("scenarios.run", "testing.cluster", 0),
    ],
)
def test_an_import_that_goes_up_or_across_is_found(module: str, target: str, findings: int) -> None:
    """Single imports are checked."""
    assert len(room_violations({module: {target: 1}, target: {}})) == findings


def test_a_circle_is_named_whole() -> None:
    """The message has every member of a circle and no other module."""
    texts = {
        "zkfake/a.py": "from .b import B",
        "zkfake/b.py": "from . import c",
        "zkfake/c.py": "if TYPE_CHECKING:\n    from .a import A\nfrom .d import D",
        "zkfake/d.py": "",
    }
    assert import_circles(import_graph(texts)) == [["zkfake.a", "zkfake.b", "zkfake.c"]]


def test_a_crowded_folder_is_found() -> None:
    """Twenty files are fine, twenty-one are not."""
    files = [f"zkfake/f{number}.py" for number in range(FILES_MAX)]
    assert crowded_folders([*files, "zkfake/__init__.py"]) == []
    assert len(crowded_folders([*files, "zkfake/more.py"])) == 1


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from .a import _hidden", ["_hidden"]),
        ("x._hidden()", ["_hidden"]),
        ("self._mine = 1\nother._mine", []),
        ("self._inherited", []),
        ("x.__class__", []),
        ("x._replace(y=1)", []),
        ("def _f(): ...\nx._f", []),
    ],
)
def test_a_private_name_of_another_file_is_found(text: str, names: list[str]) -> None:
    """Attributes and imports are checked; names that the file defines are its own."""
    assert [name for _, name in private_access("zkfake/a.py", text)] == names
