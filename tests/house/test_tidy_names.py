"""Names of classes are unique in the package, so that a class is found by its name."""

from __future__ import annotations

import ast
from collections import defaultdict

from fakekafka.tests.support.imports import in_package

SHARED: dict[str, str] = {
    "BrokerChannels": "the controller's channels, and the protocol of what its batches ask of them",
    "ControlledShutdown": "Kafka's name of the controller's event and of the election it asks for",
    "Expire": "a step of a history is called by its verb, and an event of the controller",
    "Outcome": "how an experiment, a story and a history ended; none is imported elsewhere",
    "Reassign": "a step of a history is called by its verb, and Kafka's election strategy",
    "ReplicaState": "the controller's state of a replica, and a line of a story about one",
    "ReplicaView": "Kafka's name of what a selector chooses from, and a view for tests",
    "Stop": "a step of a history is called by its verb, and where a debugger stands",
    "Task": "asyncio's name, and what runs a coroutine of an actor",
    "Work": "a batch's table of run numbers, and what a program has to do with its input",
    "Wait": "a step of a history is called by its verb, and what an admin request waits with",
}
"""Names of several classes, with the reason."""


def shared_names(texts: dict[str, str]) -> dict[str, list[str]]:
    """Return names of top-level classes that several files of the package define."""
    files: dict[str, list[str]] = defaultdict(list)
    for path, text in texts.items():
        if in_package(path) and path.endswith(".py"):
            for node in ast.parse(text).body:
                if isinstance(node, ast.ClassDef):
                    files[node.name].append(path)
    return {name: paths for name, paths in files.items() if len(paths) > 1}


def test_no_two_classes_share_a_name(texts: dict[str, str]) -> None:
    """Exceptions are in the table with a reason."""
    found = shared_names(texts)
    assert {name: paths for name, paths in found.items() if name not in SHARED} == {}


def test_a_shared_name_is_found() -> None:
    """The two files may be in any folders."""
    texts = {
        "zkfake/a.py": "class A: ...",
        "wire/b.py": "class A: ...\nclass B: ...",
        "tests/c.py": "class B: ...",
    }
    assert shared_names(texts) == {"A": ["zkfake/a.py", "wire/b.py"]}
