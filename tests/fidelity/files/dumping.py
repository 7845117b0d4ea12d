"""Runs Kafka's DumpLogSegments, and finds its complaints."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from fakekafka.tests.fidelity.sides import releases

COMPLAINTS = (
    "Mismatches in",
    "Non-consecutive offsets",
    "Found timestamp mismatch",
    "Found out of order timestamp",
    "isvalid: false",
    "is corrupt",
    "invalid",
    "trailing bytes",
    "Exception",
    "Error",
)
"""Words that DumpLogSegments prints about an invalid file."""

_READ_BY_ITSELF = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
_GAPS_ARE_FINE = "Non-consecutive offsets"
_DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
}


def dump(kafka_version: str, files: Sequence[Path], *options: str) -> str:
    """Return the output of a release's tool about files; raise ``CannotJudge`` without Java."""
    releases.require("java", "Java 17, to run Kafka's tools")
    jars = releases.jars(kafka_version)
    command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
    command += ["kafka.tools.DumpLogSegments", "--files", ",".join(map(str, files)), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return done.stdout + "".join(
        line + "\n" for line in done.stderr.splitlines() if not line.startswith(("log4j:", "SLF4J"))
    )


def complaints(kafka_version: str, log_directory: Path) -> Iterator[str]:
    """Yield the lines in which the tool complains of a partition's file in the directory."""
    for kind, (files, options) in sorted(_by_options(log_directory).items()):
        printed = dump(kafka_version, files, *options)
        is_compacted = kind != "plain"
        for line in printed.splitlines():
            if is_compacted and _GAPS_ARE_FINE in line:
                continue
            if any(word in line for word in COMPLAINTS):
                yield line
        for file in files:
            if f"Dumping {file}" not in printed:
                yield f"nothing was printed of {file}"


def _by_options(log_directory: Path) -> dict[str, tuple[list[Path], tuple[str, ...]]]:
    """Return the files for each run of the tool; "compacted" is in the names of such topics."""
    found: dict[str, tuple[list[Path], tuple[str, ...]]] = {}
    for file in sorted(log_directory.glob("*-*/*")):
        if file.suffix not in _READ_BY_ITSELF:
            continue
        topic = file.parent.name.rpartition("-")[0]
        kind = topic if topic in _DECODERS else "compacted" if "compacted" in topic else "plain"
        options = ("--deep-iteration", "--print-data-log")
        if topic in _DECODERS:
            options = ("--deep-iteration", _DECODERS[topic])
        found.setdefault(kind, ([], options))[0].append(file)
    return found
