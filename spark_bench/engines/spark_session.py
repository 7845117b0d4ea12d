"""A Spark session for batches: its settings, its start, and one-line reasons if it fails."""

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
"""Logging configuration, passed to the JVM at its start: it logs before it reads any setting."""
_JVM_OPTIONS = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j.configurationFile={_LOGGING}"
"""Options that leave the cores to the workers, as the JVM itself does little: no second compiler
and no garbage collector on threads of its own."""

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
"""Settings of every session: Unix sockets to the workers, which save 20 ms per task; no second copy
of a slow run; a short history of jobs, which the driver keeps even without a user interface."""

_CONNECT_S = 5.0
"""Seconds after which a master that has not accepted a connection counts as absent."""
_EXCEPTION_LINE = re.compile(r"^(?:.*?[: \"])?(?:[a-z]\w*\.)+\w+(?:Exception|Error): (.+)")
"""Matches the line that Java prints for an exception, also for a cause or after a thread's name."""
_NOISE_PREFIXES = ("WARNING", "Warning", "Using ", "\t", " ")


def first_line(error: BaseException) -> str:
    """Return the message of an exception of Spark, without Java's and Python's stack traces."""
    return _reason(str(error)) or type(error).__name__


def _reason(text: str) -> str:
    """Return the first exception in Java's output with its cause; else the first line."""
    lines = text.strip().splitlines()
    # The traceback of a Python worker ends with its exception, the first line without indent.
    for number, line in enumerate(lines):
        if line.startswith("Traceback (most recent call last)"):
            ends = (
                following
                for following in lines[number + 1 :]
                if following and not following.startswith(" ")
            )
            return next(ends, line)
    exceptions = [match for line in lines if (match := _EXCEPTION_LINE.match(line))]
    if exceptions:
        causes = [match[1] for match in exceptions if match[0].startswith("Caused by: ")]
        has_cause = not causes or causes[-1] in exceptions[0][1]
        return exceptions[0][1] if has_cause else f"{exceptions[0][1]} ({causes[-1]})"
    return next((line for line in lines if not line.startswith(_NOISE_PREFIXES)), "")


@contextlib.contextmanager
def reporting_start_errors(master: str | None) -> Iterator[None]:
    """Turn any error of Spark into a ``UsageError`` of one line."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        reason = first_line(error)
        if master is not None and "stopped SparkContext" in reason:
            # Spark gave up in a thread of its own, so that this error does not name the reason.
            reason = (
                f"{master} did not accept this application: does it run Spark {_spark_version()}?"
            )
        raise UsageError(f"the spark engine cannot start: {reason}") from None


def _spark_version() -> str:
    import pyspark

    return str(pyspark.__version__)


def start_session(
    session_class: Any, workers: int | None, master: str | None, conf: Mapping[str, str]
) -> Any:
    """Start a session with the settings that batches need; ``conf`` takes precedence over them.

    Raises ``UsageError`` if the session does not start.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    is_local = master is None or master.startswith("local")
    settings = dict(SETTINGS)
    if is_local:
        # Local workers use this interpreter, regardless of PATH.
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
    with contextlib.nullcontext() if own_logging else _jvm_stderr_captured():
        return builder.getOrCreate()


def require_master(master: str) -> None:
    """Raise ``UsageError`` if no host of ``spark://host:port,host:port`` accepts a connection.

    Spark itself would silently retry for a minute and a half. Other kinds of masters, and malformed
    addresses, are left to Spark.
    """
    scheme, _, addresses = master.partition("://")
    if scheme != "spark":
        return
    refusals = []
    for address in addresses.split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            return
        try:
            with socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S):
                return
        except (OSError, OverflowError) as error:
            refusals.append(f"{address}: {getattr(error, 'strerror', None) or error}")
    raise UsageError(
        f"the spark engine cannot start: no master accepts a connection ({'; '.join(refusals)})"
    )


@contextlib.contextmanager
def _jvm_stderr_captured() -> Iterator[None]:
    """Give a JVM that is started in this block a standard error of its own.

    Its errors arrive as Python exceptions. Besides, it prints warnings when it starts, and stack
    traces when workers go away at its end. If it dies before it can be called, only its output has
    the reason.
    """
    with tempfile.TemporaryFile() as captured:
        sys.stderr.flush()
        own_stderr = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            yield
        except Exception as error:
            captured.seek(0)
            output = captured.read().decode(errors="replace")
            is_java_exception = hasattr(error, "java_exception")
            reason = (
                first_line(error) if is_java_exception else _reason(output) or first_line(error)
            )
            raise UsageError(f"the spark engine cannot start: {reason}") from None
        finally:
            os.dup2(own_stderr, 2)
            os.close(own_stderr)
