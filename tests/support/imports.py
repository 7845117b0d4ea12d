"""The imports between the package's modules, read from their source."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from fakekafka.building.compile import FOLDERS as COMPILED_FROM

FLOORS = (*COMPILED_FROM, "control", "exploration", "cli")
"""Top folders from the ground up; a folder imports only itself and folders before it."""

ImportGraph = Mapping[str, Mapping[str, int]]
"""Imported modules of the package by module, each with the line of its first import."""


def in_package(path: str) -> bool:
    """Return True if a file is in one of the package's folders."""
    return path.endswith(".py") and path.split("/")[0] in FLOORS


def module_name(path: str) -> str:
    """Return a file's module name, as ``replication.log.log``; an ``__init__`` has its folder's."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported_modules(path: str, tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Return (line, module, name) of every import from inside the package, at any depth.

    ``name`` is imported from the module, or empty if the module itself is imported.
    """
    package = path.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first, _, rest = alias.name.partition(".")
                if first == "fakekafka" and rest:
                    yield node.lineno, rest, ""
        elif isinstance(node, ast.ImportFrom):
            module = node.module.split(".") if node.module else []
            if node.level > 0:
                source = package[: len(package) - (node.level - 1)] + module
            elif module and module[0] == "fakekafka":
                source = module[1:]
            else:
                continue
            for alias in node.names:
                yield node.lineno, ".".join(source), alias.name


def import_graph(texts: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """Return the imports between the package's modules, including those for annotations."""
    modules = {module_name(path): path for path in texts if in_package(path)}
    graph: dict[str, dict[str, int]] = {}
    for module, path in modules.items():
        found: dict[str, int] = {}
        for line, source, name in imported_modules(path, ast.parse(texts[path])):
            inner = f"{source}.{name}" if source else name
            target = inner if inner in modules else source
            if target in modules and target != module:
                found.setdefault(target, line)
        graph[module] = found
    return graph


def import_circles(graph: ImportGraph) -> list[list[str]]:
    """Return sorted groups of modules that import each other, directly or indirectly."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    circles: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        path.append(module)
        for target in graph[module]:
            if target not in order:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in path:
                lowest[module] = min(lowest[module], order[target])
        if lowest[module] == order[module]:
            start = path.index(module)
            if len(path) - start > 1:
                circles.append(sorted(path[start:]))
            del path[start:]

    for module in graph:
        if module not in order:
            visit(module)
    return sorted(circles)
