"""``make wheel``: builds the pure wheel, and the wheel with the compiled modules."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from fakekafka import builds


def pure_wheel(root: Path, target: Path) -> Path:
    """Build the wheel of the source, which runs on every platform."""
    for remains in ("lib", f"bdist.{sysconfig.get_platform()}"):
        shutil.rmtree(root / "build" / remains, ignore_errors=True)  # may hold deleted files
    for old in target.glob("fakekafka-*.whl"):
        old.unlink()
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    command = (sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", target, root)
    subprocess.run(command, check=True)
    # Python would take this folder for a second installation, and pytest would load its plugin.
    shutil.rmtree(root / "fakekafka.egg-info", ignore_errors=True)
    (built,) = target.glob("fakekafka-*-none-any.whl")
    return built


def compiled_wheel(pure: Path, compiled: Path) -> Path:
    """Add the compiled modules to a pure wheel; returns the wheel for this Python and platform."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    with tempfile.TemporaryDirectory() as folder:
        _wheel("unpack", "--dest", folder, pure)
        (unpacked,) = Path(folder).iterdir()
        ignored = shutil.ignore_patterns(builds.SEEN)
        shutil.copytree(compiled, unpacked / "fakekafka" / "compiled", ignore=ignored)
        (said,) = unpacked.glob("*.dist-info/WHEEL")
        text = said.read_text(encoding="utf-8")
        text = text.replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
        text = text.replace("Tag: py3-none-any", f"Tag: {python}-{python}-{platform}")
        said.write_text(text, encoding="utf-8")
        _wheel("pack", "--dest-dir", pure.parent, unpacked)
    (built,) = pure.parent.glob(f"fakekafka-*-{python}-{python}-*.whl")
    return built


def _wheel(*arguments: str | Path) -> None:
    command = (sys.executable, "-m", "wheel", *arguments)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main(root: Path = builds.ROOT) -> int:
    """Build both wheels into ``dist``; returns 1 if there is no current compiled build."""
    manifest = builds.read_manifest(root / "compiled")
    problem = "there is none" if manifest is None else builds.find_problem(root, manifest)
    if problem:
        print(f"no compiled build that could be packed: {problem}", file=sys.stderr)
        return 1
    target = root / "dist"
    target.mkdir(exist_ok=True)
    pure = pure_wheel(root, target)
    for wheel in (pure, compiled_wheel(pure, root / "compiled")):
        print(wheel.relative_to(root))
    return 0


if __name__ == "__main__":
    sys.exit(main())
