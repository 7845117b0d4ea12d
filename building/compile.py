"""``make compiled``: compile the hot cores with mypyc into the folder ``compiled``.

A copy of the source is compiled, and the manifest speaks of that copy: so a file that is edited
meanwhile makes the build stale, as if it had been edited afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from fakekafka import builds
from mypy.version import __version__ as mypy_version

FOLDERS = ("protocol", "election", "zkfake", "replication")
"""What the compiled modules may import: any file of these that changes makes the build stale."""

COMPILED = ("protocol/records", "replication")

INTERPRETED = {
    "replication/log/checkpoint_formats.py": "an error of it is an OSError, too",
}
"""Files of compiled folders that are left alone, with the reason."""

SETTINGS = """[mypy]
strict = True
explicit_package_bases = True
warn_unreachable = True
mypy_path = {source}
"""
"""Of mypy, for the copy; the checkout around it is a package and would take it in."""

PACKAGE = builds.ROOT
WORK = PACKAGE / "build" / "compiled"
TARGET = PACKAGE / "compiled"


def copied_source(source: Path) -> Path:
    """Copy what takes part; returns the folder of the package in the copy."""
    package = source / "fakekafka"
    shutil.rmtree(WORK, ignore_errors=True)
    for folder in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PACKAGE / folder, package / folder, ignore=ignored)
    (package / "__init__.py").write_text("")
    return package


def modules_to_compile(package: Path) -> list[Path]:
    """The files of the compiled folders; ``__init__`` hold no code."""
    return [
        path
        for folder in COMPILED
        for path in sorted((package / folder).rglob("*.py"))
        if path.name != "__init__.py" and path.relative_to(package).as_posix() not in INTERPRETED
    ]


def compile_modules(source: Path, paths: list[Path]) -> None:
    """Leave the compiled modules in ``WORK / "lib"``."""
    from setuptools import setup  # before mypyc, which asks whether it is there
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
    folders = ["--build-lib", str(WORK / "lib"), "--build-temp", str(WORK / "objects")]
    setup(
        name="fakekafka",
        packages=[],
        ext_modules=extensions,
        script_args=["-q", "build_ext", *folders],
    )


def main() -> int:
    """Compile, unless what was compiled last is what there is now."""
    recipe = f"mypyc {mypy_version}, {builds.digest(Path(__file__))}"
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
    compile_modules(source, paths)
    finished = WORK / "finished"
    finished.mkdir()
    for name in (builds.SHARED, *names):
        built = WORK / "lib" / (name.replace(".", "/") + builds.SUFFIX)
        shutil.copy(built, finished / (name + builds.SUFFIX))
    manifest = {
        "recipe": recipe,
        "suffix": builds.SUFFIX,
        "modules": names,
        "sources": sources,
    }
    (finished / "manifest.json").write_text(json.dumps(manifest, indent=1))
    shutil.rmtree(TARGET, ignore_errors=True)
    finished.rename(TARGET)
    print(f"compiled {len(names)} modules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
