"""The log of a served cluster: one line for each event, on standard error.

It reads the same feed of events as the page, and adds the warnings of the cluster itself. A thread
of its own writes the log, so that a slow reader delays nothing else.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any

from ..control.watching.events import EventFeed, EventQueue
from ..control.watching.snapshots import Event
from ..control.watching.words import DEBUG, ERROR, INFO, WARNING, level
from ..protocol.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

LEVELS = (INFO, DEBUG, "off")
FORMATS = ("auto", "rich", "plain", "json")
_RANKS = {DEBUG: 0, INFO: 1, WARNING: 2, ERROR: 3}
_STYLES = {DEBUG: "dim", INFO: "green", WARNING: "yellow", ERROR: "bold red"}
TOLD_AT_ONCE_MAX = 20
"""Maximum number of lines of one kind at a time: a lost broker may have led thousands of
partitions."""
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), 127, *range(128, 160))}
"""Escapes for characters that would break a line or move a terminal's cursor."""

Write = Callable[[str, Event], None]
"""Called with a level and an event, to write the event."""


def check_choice(option: str, value: str, known: tuple[str, ...]) -> str:
    """Raise ``UsageError`` for a value that is not known."""
    if value not in known:
        raise UsageError(f"{option} takes {', '.join(known[:-1])} or {known[-1]}, not {value!r}")
    return value


def writer(format_name: str, stream: IO[str]) -> Write:
    """Return a function that writes events; ``auto`` is rich on a terminal and plain elsewhere."""
    if format_name == "auto":
        format_name = "rich" if stream.isatty() else "plain"
    if format_name == "json":
        return lambda level, event: _write_json(stream, level, event)
    if format_name == "plain":
        return lambda level, event: _write_plain(stream, level, event)
    from rich.console import Console  # imported here, as few logs go to a terminal

    console = Console(file=stream, highlight=False, soft_wrap=True)
    return lambda level, event: _write_rich(console, level, event)


def _write_json(stream: IO[str], level: str, event: Event) -> None:
    when = datetime.fromtimestamp(event["at_ms"] / 1000).astimezone()
    fields = {name: value for name, value in event.items() if name not in ("id", "at_ms")}
    told = {"time": when.isoformat(timespec="milliseconds"), "level": level, **fields}
    stream.write(json.dumps(told) + "\n")
    stream.flush()


def _moment(event: Event) -> str:
    when = datetime.fromtimestamp(event["at_ms"] / 1000)
    return when.isoformat(" ", "milliseconds")


def _write_plain(stream: IO[str], level: str, event: Event) -> None:
    text = event["text"].translate(_CONTROL)
    line = f"{_moment(event)} {level.upper():7} {text}\n"
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(line.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _write_rich(console: Console, level: str, event: Event) -> None:
    from rich.text import Text

    line = Text()
    line.append(_moment(event)[11:], "dim")
    line.append(f" {level.upper():7} ", _STYLES[level])
    line.append(event["text"].translate(_CONTROL))
    console.print(line)


class _Records(logging.Handler):
    """A handler that passes the cluster's own log records on as events."""

    def __init__(self, put: Callable[[Event], None]) -> None:
        super().__init__()
        self._put = put

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}: {record.exc_info[1]!r}"
        shown = INFO if record.levelno < logging.WARNING else WARNING
        shown = DEBUG if record.levelno < logging.INFO else shown
        event: Event = {
            "type": "cluster",
            "at_ms": int(record.created * 1000),
            "logger": record.name,
            "level": ERROR if record.levelno >= logging.ERROR else shown,
            "text": f"{record.name.removeprefix('fakekafka.')}: {text}",
        }
        self._put(event)


class ServerLog:
    """Writes the events of a feed from a level upwards, until the log is closed."""

    def __init__(self, feed: EventFeed, least: str, write: Write, *, folds: bool = True) -> None:
        """``least`` is ``info`` or ``debug``; ``folds`` sums up many similar events in one line."""
        self._feed = feed
        self._folds = folds
        self._least = _RANKS[least]
        self._write = write
        self._news = threading.Event()
        self._ending = False
        self._queue: EventQueue = feed.subscribe(self._news.set)
        self._records = _Records(self._queue.put)
        logger = logging.getLogger("fakekafka")
        self._level_before = logger.level
        logger.addHandler(self._records)
        if least == DEBUG:
            logger.setLevel(logging.DEBUG)
        else:
            self._records.setLevel(logging.WARNING)
        self._thread = threading.Thread(target=self._run, name="fakekafka-log", daemon=True)
        self._thread.start()

    def tell(self, text: str, **fields: Any) -> None:
        """Write a line about the server itself."""
        at_ms = int(time.time() * 1000)
        self._queue.put({"type": "server", "at_ms": at_ms, **fields, "text": text})

    def close(self) -> None:
        """Write the remaining events and stop."""
        logger = logging.getLogger("fakekafka")
        logger.removeHandler(self._records)
        logger.setLevel(self._level_before)
        self._feed.unsubscribe(self._queue)
        self._ending = True
        self._news.set()
        self._thread.join(1.0)  # a reader that is stuck must not keep the process alive

    def _run(self) -> None:
        while True:
            self._news.wait()
            self._news.clear()
            is_last = self._ending
            try:
                self._write_all(self._queue.take())
            except (OSError, ValueError):  # the reader is gone; the cluster goes on
                return
            if is_last:
                return

    def _write_all(self, events: list[Event]) -> None:
        counts: Counter[str] = Counter()
        for event in events:
            shown = event["level"] if event["type"] == "cluster" else level(event)
            if _RANKS[shown] < self._least:
                continue
            event.setdefault("at_ms", int(time.time() * 1000))
            counts[event["type"]] += 1
            if not self._folds or counts[event["type"]] <= TOLD_AT_ONCE_MAX:
                self._write(shown, event)
        for kind, count in counts.items():
            left = count - TOLD_AT_ONCE_MAX
            if self._folds and left > 0:
                at_ms, text = int(time.time() * 1000), f"and {left} more like it at once: {kind}"
                self._write(INFO, {"type": kind, "at_ms": at_ms, "text": text})


def open_log(feed: EventFeed, least: str, format_name: str) -> ServerLog:
    """Start writing the log of a cluster to standard error."""
    write = writer(format_name, sys.stderr)
    return ServerLog(feed, least, write, folds=format_name != "json")
