"""A Spark session for batches: its settings, its start, and why it did not start, in one line."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...protocol.errors import UsageError

_LOGGING = (Path(__file__).parent.absolute() / "log4j2.properties").as_uri()
"""Given to the JVM at its start: it would greet with a screen of its own before any setting."""
_JVM_OPTIONS = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j.configurationFile={_LOGGING}"
"""The JVM does little here, and its workers want every core: so no second compiler and no
collector on threads beside theirs."""

LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
}
SETTINGS = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.speculation": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "10",
}
"""Workers over Unix sockets, which saves 20 ms a task; no second copy of a run that is slow; a
short memory of what was done, which the driver keeps also without a user interface."""

_CONNECT_S = 5.0
"""A master that takes longer to accept a connection counts as one that is not there."""
_THROWN = re.compile(r"^(?:.*?[: \"])?(?:[a-z]\w*\.)+\w+(?:Exception|Error): (.+)")
"""What Java prints of an exception, also as the cause of another one or behind a thread's name."""
_NOT_TOLD = ("WARNING", "Warning", "Using ", "\t", " ")


def first_line(error: BaseException) -> str:
    """Return what an exception of Spark says, without Java's and Python's stacks."""
    return _reason(str(error)) or type(error).__name__


def _reason(text: str) -> str:
    """The first exception in what Java printed, and what caused it; else the first line."""
    lines = text.strip().splitlines()
    # A Python worker's own stack ends with its exception, the first line that is not indented.
    for number, line in enumerate(lines):
        if line.startswith("Traceback (most recent call last)"):
            ends = (one for one in lines[number + 1 :] if one and not one.startswith(" "))
            return next(ends, line)
    thrown = [found for line in lines if (found := _THROWN.match(line))]
    if thrown:
        causes = [found[1] for found in thrown if found[0].startswith("Caused by: ")]
        is_whole = not causes or causes[-1] in thrown[0][1]
        return thrown[0][1] if is_whole else f"{thrown[0][1]} ({causes[-1]})"
    return next((line for line in lines if not line.startswith(_NOT_TOLD)), "")


@contextlib.contextmanager
def refusing_to_start(master: str | None) -> Iterator[None]:
    """Any error of Spark becomes a ``UsageError`` of one line."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        reason = first_line(error)
        if master is not None and "stopped SparkContext" in reason:
            # It gave up in a thread of its own, and says no more than that it has.
            reason = f"{master} has not taken this application: is it Spark {_release()}?"
        raise UsageError(f"the spark engine cannot start: {reason}") from None


def _release() -> str:
    import pyspark

    return str(pyspark.__version__)


def start_session(
    session_class: Any, workers: int | None, master: str | None, conf: Mapping[str, str]
) -> Any:
    """A session with the settings that batches need; ``conf`` goes before them.

    Raises ``UsageError`` when it does not start.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    is_local = master is None or master.startswith("local")
    settings = dict(SETTINGS)
    if is_local:
        # Workers of this machine are this interpreter, whatever PATH says.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= LOCAL_SETTINGS
    if master is not None:
        require_master(master)
    own_logging = "SPARK_CONF_DIR" in os.environ
    if not own_logging:
        settings["spark.driver.extraJavaOptions"] = _JVM_OPTIONS
    builder = session_class.builder.master(master or f"local[{workers or '*'},4]")
    for name, value in {"spark.app.name": "fakekafka", **settings, **conf}.items():
        builder = builder.config(name, value)
    with contextlib.nullcontext() if own_logging else _jvm_apart():
        return builder.getOrCreate()


def require_master(master: str) -> None:
    """Raise ``UsageError`` when no host of ``spark://host:port,host:port`` accepts a connection.

    Spark itself would try in silence for a minute and a half. Other kinds of masters, and what is
    no host with a port, are left to Spark.
    """
    scheme, _, places = master.partition("://")
    if scheme != "spark":
        return
    refusals = []
    for place in places.split(","):
        host, _, port = place.rpartition(":")
        if not host or not port.isdigit():
            return
        try:
            with socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S):
                return
        except (OSError, OverflowError) as error:
            refusals.append(f"{place}: {getattr(error, 'strerror', None) or error}")
    raise UsageError(
        f"the spark engine cannot start: no master accepts a connection ({'; '.join(refusals)})"
    )


@contextlib.contextmanager
def _jvm_apart() -> Iterator[None]:
    """A JVM started in here does not share our standard error.

    What it has to say arrives as a Python exception. On its own it writes warnings at its start,
    and stack traces when workers go at its end. If it ends before it can be asked, the reason is
    in its output only.
    """
    with tempfile.TemporaryFile() as words:
        sys.stderr.flush()
        ours = os.dup(2)
        os.dup2(words.fileno(), 2)
        try:
            yield
        except Exception as error:
            words.seek(0)
            told = words.read().decode(errors="replace")
            asked = hasattr(error, "java_exception")
            reason = first_line(error) if asked else _reason(told) or first_line(error)
            raise UsageError(f"the spark engine cannot start: {reason}") from None
        finally:
            os.dup2(ours, 2)
            os.close(ours)
