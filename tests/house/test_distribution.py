"""The wheel and the source distribution contain the package and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from fakekafka.building.wheels import pure_wheel
from fakekafka.tests.support.paths import NOT_SOURCE
from fakekafka.tests.support.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("distribution")]

NOT_PACKAGES = {"benchmarks", "building", "docs", "examples", "tests"}
ASSETS = {".css", ".html", ".j2", ".js", ".json", ".properties", ".svg", ".toml", ".tsv"}
START_CPU_S_MAX = 2.0
BACKEND = {
    "building/backend.py",
    "building/compile.py",
    "building/compiler_source.py",
    "building/wheels.py",
}
"""The files of the build backend that pyproject.toml names."""

BUILD_SDIST = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"


def _run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def source(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, as building leaves files behind that do not belong in the checkout."""
    copy = tmp_path_factory.mktemp("source") / "fakekafka"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*NOT_SOURCE, "compiled"))
    return copy


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pure_wheel(source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("sdist")
    _run(sys.executable, "-c", BUILD_SDIST, target, cwd=source)
    (built,) = target.glob("*.tar.gz")
    return built


def package_files(root: Path) -> set[str]:
    """Return every file that an installation needs, relative to the root."""
    folders = [path.parent for path in root.glob("*/__init__.py")]
    found = {"__init__.py", "__main__.py", "builds.py", "py.typed", "version.py"}
    for folder in folders:
        if folder.name not in NOT_PACKAGES:
            found |= {
                path.relative_to(root).as_posix()
                for path in folder.rglob("*")
                if path.suffix == ".py" or path.suffix in ASSETS
            }
    # What `fakekafka run NAME` plays lies where readers of the repository look for it.
    return found | {f"examples/scenarios/{p.name}" for p in root.glob("examples/scenarios/*.toml")}


def test_every_package_folder_is_declared(root: Path) -> None:
    """pyproject.toml declares every folder of the package."""
    config = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    declared = set(config["tool"]["setuptools"]["packages"])
    inits = [path for path in package_files(root) if path.endswith("__init__.py")]
    present = {".".join(["fakekafka", *Path(path).parent.parts]) for path in inits}
    assert declared == present


def test_the_wheel_holds_the_package_and_nothing_else(source: Path, wheel: Path) -> None:
    """It has all modules, all assets and py.typed; no tests, documents, benchmarks or
    build files.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {f"fakekafka/{path}" for path in package_files(source)}


def test_the_wheel_declares_its_entry_points_and_licence(root: Path, wheel: Path) -> None:
    """The console script, the pytest plugin, the licence and the extras are in the metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        points = next(name for name in names if name.endswith("entry_points.txt"))
        entry_points = archive.read(points).decode()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        message = message_from_bytes(archive.read(metadata))
    assert "fakekafka = fakekafka.cli.main:main" in entry_points
    assert "fakekafka = fakekafka.testing.pytest_plugin" in entry_points
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert message["License-Expression"] == "Apache-2.0"
    config = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    extras = set(config["project"]["optional-dependencies"])
    assert set(message.get_all("Provides-Extra", [])) == extras >= {"spark", "fast", "security"}


def test_the_description_stands_alone(wheel: Path) -> None:
    """A package index resolves no relative link and shows no picture of the repository."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        message = message_from_bytes(archive.read(metadata))
    text = message.get_payload()
    assert message["Description-Content-Type"] == "text/markdown"
    assert isinstance(text, str)
    assert re.findall(r"\]\((?!https?:)[^)]*\)", text) == []
    _, _, text = text.partition("-->\n")
    assert text.startswith("\n# fakekafka\n")
    assert "with Cluster(brokers=3) as cluster:" in text
    assert "docs/" not in text
    assert "make " not in text


def test_the_source_distribution_builds_the_same_wheel(source: Path, sdist: Path) -> None:
    """It has the package and what a build needs; no tests, documents or CI files."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if "/" in name}
    files = {name for name in names if Path(name).suffix or name in ("LICENSE", "PKG-INFO")}
    files = {name for name in files if ".egg-info" not in name}
    needed = package_files(source) | BACKEND
    needed |= {"pyproject.toml", "README.md", "LICENSE", "DESCRIPTION.md", "CHANGELOG.md"}
    assert files - needed <= {"PKG-INFO", "setup.cfg", "MANIFEST.in"}
    assert needed <= files


def install(wheel: Path, where: Path, *options: str) -> Path:
    """Install the wheel in a fresh environment and return the folder of its commands."""
    environment = where / "venv"
    _run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=where)
    python = environment / "bin" / "python"
    packages = Path(_run(python, "-c", SITE_PACKAGES, cwd=where).strip())
    _run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"),
        *("--no-index", "--disable-pip-version-check", *(options or (wheel,))),
        cwd=where,
    )
    # The libraries come from this environment: nothing is downloaded.
    own = Path(_run(sys.executable, "-c", SITE_PACKAGES, cwd=where).strip())
    (packages / "libraries.pth").write_text(str(own))
    return environment / "bin"


@pytest.mark.serial
def test_an_installation_in_a_fresh_environment_answers(wheel: Path, tmp_path: Path) -> None:
    """With its dependencies in place the wheel can be imported, and the command prints
    its version.
    """
    commands = install(wheel, tmp_path)
    python = commands / "python"
    packages = Path(_run(python, "-c", SITE_PACKAGES, cwd=tmp_path).strip())
    imported = _run(python, "-c", "import fakekafka as f; print(f.__file__)", cwd=tmp_path)
    assert Path(imported.strip()) == packages / "fakekafka" / "__init__.py"
    assert _run(python, "-c", "import fakekafka.protocol.values", cwd=tmp_path) == ""
    before = os.times()
    version = _run(commands / "fakekafka", "--version", cwd=tmp_path)
    used = os.times()
    assert version.startswith("fakekafka ")
    # CPU time, as another program may have the processor meanwhile.
    used_s = used.children_user + used.children_system
    assert used_s - before.children_user - before.children_system < START_CPU_S_MAX


SITE_PACKAGES = "import sysconfig; print(sysconfig.get_path('purelib'))"


def dockerfile(root: Path) -> list[tuple[str, str]]:
    """Return (instruction, rest) of every line, with continued lines joined."""
    text = (root / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, " ".join(rest.split())) for name, _, rest in (x.partition(" ") for x in lines)]


def instruction(root: Path, name: str) -> str:
    """Return the rest of the last instruction of a name."""
    return [rest for found, rest in dockerfile(root) if found == name][-1]


def test_the_image_follows_the_rules_of_docker(root: Path) -> None:
    """There are two stages; the second has only the wheels, an unprivileged user and the ports it
    serves.
    """
    names = [name for name, _ in dockerfile(root)]
    assert [name for name in names if name == "FROM"] == ["FROM", "FROM"]
    assert set(names) <= {
        "FROM", "COPY", "RUN", "USER", "WORKDIR", "EXPOSE", "ENTRYPOINT", "HEALTHCHECK",
    }  # fmt: skip
    assert instruction(root, "COPY") == ". /source"
    assert instruction(root, "USER") == "fakekafka"
    assert instruction(root, "EXPOSE") == "9092-9094 8080"
    runs = [rest for name, rest in dockerfile(root) if name == "RUN"]
    config = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    extras = {extra for run in runs for extra in re.findall(r"\[([a-z,]+)\]", run)}
    assert extras == {"control,fast,security"}
    assert set(extras.pop().split(",")) <= set(config["project"]["optional-dependencies"])
    ignored = set((root / ".dockerignore").read_text(encoding="utf-8").split())
    packages = {path.partition("/")[0] for path in package_files(root)}
    needed = packages | {"pyproject.toml", "DESCRIPTION.md", "LICENSE", "building"}
    assert ignored & needed == set()


@pytest.mark.serial
def test_the_commands_of_the_image_serve_and_pass_the_health_check(
    root: Path, wheel: Path, tmp_path: Path
) -> None:
    """The image's commands are run in a fresh environment in place of a container: the second
    installation, the entry point with other ports appended, the health check, and the end by a
    signal.
    """
    (step,) = [
        rest.partition("pip install")[2].split(" && ")[0]
        for name, rest in dockerfile(root)
        if name == "RUN" and "pip install" in rest
    ]
    options = step.replace("/wheels", str(wheel.parent)).replace('"', "").split()
    commands = install(wheel, tmp_path, *options)
    ports = {"--port": "0", "--control-port": str(free_port())}
    entry = json.loads(instruction(root, "ENTRYPOINT"))
    assert entry[:2] == ["fakekafka", "serve"]
    command = [str(commands / entry[0]), *entry[1:]]
    command += [word for pair in ports.items() for word in pair]
    check = json.loads(instruction(root, "HEALTHCHECK").partition("CMD ")[2])
    check = [word.replace("8080", ports["--control-port"]) for word in check]
    check[0] = str(commands / check[0])
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        try:
            assert run.stdout is not None
            said = next(line for line in run.stdout if line.startswith("bootstrap"))
            assert said.count("localhost:") == 3
            assert subprocess.run(check, capture_output=True, timeout=20).returncode == 0
            run.send_signal(signal.SIGTERM)
            assert run.wait(20) == 0
        finally:
            run.kill()
