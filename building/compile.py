"""``make compiled``: compiles the hot cores with mypyc into the folder ``compiled``.

A copy of the source is compiled, and the manifest describes that copy: a file edited during the
build makes it stale, as if it had been edited afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fakekafka import builds
from fakekafka.building import compiler_source
from fakekafka.building.compiler_source import (
    with_awaits_after_errors,
    with_final_constants,
    with_native_messages,
    with_unchecked_arguments,
    with_whole_numbers,
)
from mypy.version import __version__ as mypy_version

FOLDERS = (
    "protocol",
    "election",
    "zkfake",
    "replication",
    "statemachines",
    "coordinators",
    "actors",
    "tracing",
    "wire",
    "programs",
    "testing",
    "scenarios",
    "debugger",
    "spark_bench",
)
"""Folders that compiled modules may import from: a change of any file in them makes the build
stale."""

COMPILED = (
    "protocol",
    "replication",
    "actors",
    "tracing/fingerprint.py",
    "tracing/packing.py",
    "tracing/recording",
    "tracing/story/outages.py",
    "wire/kafka/api.py",
    "wire/kafka/apis/fetch.py",
    "wire/kafka/apis/produce.py",
    "wire/kafka/backend.py",
    "wire/kafka/codec.py",
    "wire/kafka/connection.py",
    "wire/kafka/exchange.py",
    "wire/kafka/gateway.py",
    "wire/kafka/messages/varints.py",
    "wire/kafka/operations.py",
    "wire/kafka/paced_queue.py",
    "wire/kafka/repetitions.py",
    "wire/kafka/response_errors.py",
    "wire/kafka/service.py",
    "wire/kafka/topic_names.py",
    "wire/kafka/topics.py",
    "wire/request_memory.py",
    "programs",
    "scenarios/workload.py",
    "spark_bench/measuring/histogram.py",
    "spark_bench/measuring/meter.py",
    "spark_bench/measuring/sink.py",
)
"""Compiled folders; of other folders, the files on the hot path of records and events."""

INTERPRETED = {
    "actors/clients/assignment_change.py": "has an old name, of which type checkers are told",
    "protocol/declaring/deprecation.py": "says one thing to type checkers and does another",
    "protocol/declaring/methods.py": "makes classes",
    "protocol/declaring/native.py": "says nothing where nothing is compiled",
    "protocol/versions.py": "asks for the slots of a class",
    "protocol/security/configuration.py": "settings as users hold them, checked when they are made",
    "protocol/releases/behaviour.py": "asks for the code of a constructor",
    "protocol/errors.py": "two errors are a ValueError or an OSError, too",
    "replication/log/checkpoint_formats.py": "an error of it is an OSError, too",
    "tracing/recording/locked_recorder.py": "takes a lock around what another class does",
    "tracing/recording/recorder.py": "is referred to weakly",
    "programs/acts.py": "looks at frames of the interpreter",
    "programs/environment.py": "replaces functions and methods of modules",
    "programs/brokers.py": "its listener has slots",
    "programs/disposal.py": "writes into objects of the interpreter",
    "programs/calls.py": "handles of asyncio have slots",
    "programs/c_functions.py": "writes what functions of C point to",
    "programs/c_clocks.py": "makes a class from one that it finds",
    "programs/errors.py": "its errors are those of asyncio, too",
    "programs/places.py": "looks at frames of the interpreter",
    "programs/running.py": "what is running is kept in a class",
    "programs/tasks.py": "tasks and futures are those of asyncio's C code",
    "programs/watchdog.py": "looks at frames of the interpreter",
}
"""Files of compiled folders that are not compiled, with the reason."""

SETTINGS = """[mypy]
strict = True
explicit_package_bases = True
warn_unreachable = True
mypy_path = {source}
follow_imports = silent
disable_error_code = import-untyped

[mypy-fakekafka.wire.*]
disable_error_code = type-var
"""
"""Settings of mypy for the copy. Package bases are explicit, or the copy would belong to the
checkout around it, which is a package. In the copy mypy does not see messages as dataclasses, but
``dataclasses.replace`` accepts them. No errors are reported for modules that are not compiled."""

DIRECT_CALLS = ["-fno-semantic-interposition"]
DIRECT_LINKS = ["-Wl,-Bsymbolic"]
"""Options for direct calls within the library, as no other library replaces its functions. Only
Linux needs them: on other platforms such calls are direct anyway."""

PACKAGE = builds.ROOT
WORK = PACKAGE / "build" / "compiled"
TARGET = PACKAGE / "compiled"


def copied_source(source: Path) -> Path:
    """Copy the source of ``FOLDERS``; returns the folder of the package in the copy."""
    package = source / "fakekafka"
    shutil.rmtree(WORK, ignore_errors=True)
    for folder in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PACKAGE / folder, package / folder, ignore=ignored)
    (package / "__init__.py").write_text("")
    return package


def prepare(package: Path) -> None:
    """Rewrite the copy into the form that the compiler needs."""
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for prepared in (
            with_unchecked_arguments,
            with_whole_numbers,
            with_final_constants,
            with_native_messages,
            with_awaits_after_errors,
        ):
            text = prepared(text)
        path.write_text(text, encoding="utf-8")


def modules_to_compile(package: Path) -> list[Path]:
    """Return the files to compile; the ``__init__`` files hold no code."""
    return [
        path
        for folder in COMPILED
        for path in _files_of(package / folder)
        if path.name != "__init__.py" and path.relative_to(package).as_posix() not in INTERPRETED
    ]


def _files_of(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def compile_modules(source: Path, paths: list[Path]) -> None:
    """Compile modules into ``WORK / "lib"``."""
    from setuptools import setup  # before mypyc, which asks whether it is there
    from setuptools.command.build_ext import build_ext
    from mypyc.build import mypycify  # isort: skip

    settings = WORK / "mypy.ini"
    settings.write_text(SETTINGS.format(source=source))
    os.chdir(source)
    extensions = mypycify(
        [f"--config-file={settings}", *(str(path.relative_to(source)) for path in paths)],
        opt_level="2",
        debug_level="0",
        multi_file=True,
        target_dir=str(WORK / "c"),
        group_name=builds.SHARED.removesuffix("__mypyc"),
    )
    if sys.platform == "linux":
        for extension in extensions:
            extension.extra_compile_args += DIRECT_CALLS
            extension.extra_link_args += DIRECT_LINKS

    class SideBySide(build_ext):  # type: ignore[misc]
        """Compiles the files of the library in parallel, one per processor."""

        def build_extensions(self) -> None:
            compiler = self.compiler
            compile_one = compiler._compile
            pool = ThreadPoolExecutor(os.cpu_count())
            begun: list[Future[None]] = []
            try:
                compiler._compile = lambda *said: begun.append(pool.submit(compile_one, *said))
                link = compiler.link

                def link_when_done(*said: Any, **more: Any) -> None:
                    for one in begun:
                        one.result()
                    link(*said, **more)

                compiler.link = link_when_done
                super().build_extensions()
            finally:
                pool.shutdown(cancel_futures=True)

    folders = ["--build-lib", str(WORK / "lib"), "--build-temp", str(WORK / "objects")]
    setup(
        name="fakekafka",
        packages=[],
        ext_modules=extensions,
        cmdclass={"build_ext": SideBySide},
        script_args=["-q", "build_ext", *folders],
    )


def main() -> int:
    """Compile the modules, unless the existing build is current."""
    recipes = ", ".join(builds.digest(Path(file)) for file in (__file__, compiler_source.__file__))
    recipe = f"mypyc {mypy_version}, {recipes}"
    manifest = builds.read_manifest(TARGET)
    if manifest is not None and manifest["recipe"] == recipe:
        problem = builds.find_problem(PACKAGE, manifest)
    else:
        problem = "there is no build of this recipe"
    if not problem:
        print("compiled/ is up to date")
        return 0
    source = WORK / "source"
    package = copied_source(source)
    paths = modules_to_compile(package)
    names = [".".join(path.relative_to(source).with_suffix("").parts) for path in paths]
    files = sorted(package.rglob("*/**/*.py"))
    sources = {path.relative_to(package).as_posix(): builds.digest(path) for path in files}
    prepare(package)
    compile_modules(source, paths)
    finished = WORK / "finished"
    finished.mkdir()
    for name in (builds.SHARED, *names):
        built = WORK / "lib" / (name.replace(".", "/") + builds.SUFFIX)
        shutil.copy(built, finished / (name + builds.SUFFIX))
    manifest = {"recipe": recipe, "suffix": builds.SUFFIX, "modules": names, "sources": sources}
    (finished / "manifest.json").write_text(json.dumps(manifest, indent=1))
    shutil.rmtree(TARGET, ignore_errors=True)
    finished.rename(TARGET)
    print(f"compiled {len(names)} modules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
