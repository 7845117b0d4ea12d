"""Configuration files of brokers in the format of Java's ``Properties``."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakekafka.cli.properties_file import parse_properties_file, read_config_file
from fakekafka.protocol.errors import UsageError

SERVER_PROPERTIES = """\
# What the brokers of a release are delivered with, in short.
broker.id=0
listeners=PLAINTEXT://:9092
num.network.threads=3
log.dirs=/tmp/kafka-logs
num.partitions=4
log.retention.hours=168
log.segment.bytes=1073741824
zookeeper.connect=localhost:2181
"""


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1\nb:2\nc 3\nd", {"a": "1", "b": "2", "c": "3", "d": ""}),
        ("  a = 1  \n\t# no\n! no\n\n", {"a": "1"}),
        ("a=1,\\\n    2,\\\n    3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=c:\\\\dir\\\\\nb=1", {"a": "c:\\dir\\", "b": "1"}),
        ("a\\ b\\:c=x\\ty\\u00e9", {"a b:c": "x\tyé"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_names_and_values_are_read_as_java_reads_them(text: str, values: dict[str, str]) -> None:
    """Comments, separators, continued lines and escapes are parsed as in Java."""
    assert parse_properties_file(text) == values


def test_a_files_values_have_effect_or_are_named(tmp_path: Path) -> None:
    """Configurations that options replace, or that have no effect, are left out with a remark."""
    path = tmp_path / "server.properties"
    path.write_text(SERVER_PROPERTIES)
    values, remarks = read_config_file(path, "2.8")
    assert values == {
        "num.partitions": "4",
        "log.segment.bytes": "1073741824",
        "log.retention.ms": str(168 * 3_600_000),
    }
    assert [remark.removeprefix(f"{path}: ") for remark in remarks] == [
        "broker.id is left out; use --first-broker-id",
        "listeners is left out; use --listener",
        "num.network.threads has no effect here",
        "log.dirs is left out; use --data-dir",
        "zookeeper.connect is left out; use --zookeeper-port",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log.retention.ms=5\nlog.retention.minutes=1\nlog.retention.hours=1", "5"),
        ("log.retention.hours=1\nlog.retention.minutes=1", "60000"),
        ("log.retention.hours=-1", "-1"),
    ],
)
def test_the_finest_unit_counts(text: str, expected: str, tmp_path: Path) -> None:
    """``log.retention.ms`` overrides minutes, and minutes override hours."""
    path = tmp_path / "p"
    path.write_text(text)
    assert read_config_file(path, "3.9")[0] == {"log.retention.ms": expected}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num.partition=3", "no configuration 'num.partition'; did you mean 'num.partitions'?"),
        ("log.retention.hours=soon", "log.retention.hours must be a whole number, not 'soon'"),
        (None, "cannot be read"),
    ],
)
def test_a_bad_file_is_refused(text: str | None, message: str, tmp_path: Path) -> None:
    """The error for a bad file names the mistake and suggests a correction."""
    path = tmp_path / "p"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_config_file(path, "3.9")
    assert message in str(caught.value)
