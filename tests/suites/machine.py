"""The machine that suites run on: its tools, downloads, processes and the served cluster."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 20.0


class SuiteError(Exception):
    """A suite could not be run at all."""


@dataclass(frozen=True, slots=True)
class Served:
    """The addresses of a served cluster."""

    bootstrap: str
    """``bootstrap.servers`` of the first listener."""
    listeners: Mapping[str, str]
    """The same of each listener by name."""
    ca_path: str | None = None
    """What clients trust where a listener has TLS."""
    control_url: str | None = None


def cache_folder(name: str) -> Path:
    """Return the folder in which downloads stay, outside of the repository."""
    chosen = os.environ.get("FAKEKAFKA_SUITES_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(chosen or Path(home) / "fakekafka" / "suites") / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def require_tools(tools: Sequence[str]) -> None:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        raise SuiteError(f"this machine lacks {', '.join(missing)}")


def prepare(command: Sequence[str | Path], folder: Path, **environment: str) -> None:
    """Run a step of the preparation; its output is shown where it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise SuiteError(f"{command[0]} {command[1]} failed:\n{done.stdout[-3000:]}")


def output(
    command: Sequence[str | Path],
    folder: Path,
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Return what a program wrote until its end, or until its time was over."""
    with tempfile.TemporaryFile("w+", errors="replace") as written:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdout=written,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            written.write(f"\nstopped after {timeout_s:.0f} s\n")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        written.seek(0)
        return written.read()


@contextmanager
def served(arguments: Sequence[str]) -> Generator[Served]:
    """Serve a cluster in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="fakekafka-suite-") as folder:
        ready = Path(folder) / "ready.json"
        command = [sys.executable, "-m", "fakekafka", "serve", "--log", "off"]
        command += ["--ready-file", str(ready)]
        process = subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + _START_TIMEOUT_S
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SuiteError(f"`fakekafka serve {' '.join(arguments)}` does not start")
                time.sleep(0.05)
            told = json.loads(ready.read_text())
            listeners = told["listeners"]
            yield Served(told["bootstrap_servers"], listeners, told["ca_path"], told["control_url"])
            if process.poll() is not None:
                raise SuiteError(f"the cluster ended by itself with {process.returncode}")
        finally:
            process.terminate()
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
