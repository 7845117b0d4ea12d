"""The build backend of the package: the one of setuptools, extended to build compiled wheels.

``pip wheel . -C compiled=yes`` builds the wheel with the compiled modules, for the Python and the
platform that it runs on. Every other call is passed on to ``setuptools.build_meta``.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (  # part of the interface (PEP 517, PEP 660)
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parent.parent
COMPILED_EXTRAS = ("fast", "programs", "security")
"""Extras with packages that compiled modules import if they are installed."""
Settings = Mapping[str, Any] | None


def is_compiled(settings: Settings) -> bool:
    """Return whether the compiled wheel is requested; ValueError for values but yes and no."""
    wanted = (settings or {}).get("compiled", "no")
    if wanted not in ("yes", "no"):
        raise ValueError(f"the setting compiled is {wanted!r}; it can be yes or no")
    return bool(wanted == "yes")


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Return the requirements for building a wheel, with the compiler if the wheel is compiled."""
    needed: list[str] = build_meta.get_requires_for_build_wheel(_known(config_settings))
    return [*needed, *compiler_requirements()] if is_compiled(config_settings) else needed


def compiler_requirements() -> list[str]:
    """Return the compiler and all that compiled modules may import, as it needs their types."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    compiler = [one for one in extras["dev"] if one.startswith("mypy")]
    imported = [one for extra in COMPILED_EXTRAS for one in extras[extra]]
    return [*compiler, "wheel", *project["dependencies"], *imported]


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """Build the pure or the compiled wheel, and return its file name."""
    settings = _known(config_settings)
    if not is_compiled(config_settings):
        name: str = build_meta.build_wheel(wheel_directory, settings, metadata_directory)
        return name
    _make_importable()
    from fakekafka.building import compile as compiler
    from fakekafka.building import wheels

    # The pure wheel is built in a temporary folder, as the target may hold one that has to stay;
    # and before the modules are compiled, as compiling changes the current folder.
    with tempfile.TemporaryDirectory() as folder:
        pure = Path(folder) / build_meta.build_wheel(folder, settings, metadata_directory)
        compiler.main()
        compiled = wheels.compiled_wheel(pure, compiler.TARGET)
        shutil.copy(compiled, wheel_directory)
    return compiled.name


def _known(settings: Settings) -> dict[str, Any]:
    """Return the settings that setuptools knows."""
    return {name: value for name, value in (settings or {}).items() if name != "compiled"}


def _make_importable() -> None:
    """Make the checkout importable as ``fakekafka``, whatever the name of its folder."""
    if "fakekafka" in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(
        "fakekafka", ROOT / "__init__.py", submodule_search_locations=[str(ROOT)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["fakekafka"] = package
    spec.loader.exec_module(package)
