"""The text formats of checkpoint files."""

from __future__ import annotations

import pytest
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.log.checkpoint_formats import (
    CorruptCheckpoint,
    format_epochs,
    format_offsets,
    format_topic_id,
    parse_epochs,
    parse_offsets,
    parse_properties,
    parse_topic_id,
)


def test_offsets_round_trip() -> None:
    """DP-106: many lines are read back as they were written."""
    offsets = {TopicPartition(f"topic.{n % 7}", n): n * n for n in range(500)}
    assert parse_offsets(format_offsets(offsets)) == offsets


def test_the_text_is_kafkas() -> None:
    """DP-106: version, count, then topic, partition and offset with single spaces."""
    text = format_offsets({TopicPartition("a", 0): 5, TopicPartition("b-c", 12): 7})
    assert text == "0\n2\na 0 5\nb-c 12 7\n"
    assert format_epochs([0, 3], [0, 9]) == "0\n2\n0 0\n3 9\n"


def test_empty_file_has_no_entries() -> None:
    """DP-106: an empty file is an empty map."""
    assert parse_offsets("") == {}
    assert parse_epochs("") == ([], [])


@pytest.mark.parametrize(
    "text",
    ["1\n0\n", "x\n0\n", "0\n", "0\nx\n", "0\n2\na 0 5\n", "0\n1\na 0\n", "0\n1\na 0 five\n"],
)
def test_malformed_files_are_errors(text: str) -> None:
    """DP-106: unknown version, wrong count and bad numbers are I/O errors."""
    with pytest.raises(CorruptCheckpoint):
        parse_offsets(text)


def test_topic_ids_are_written_as_uuids() -> None:
    """Hexadecimal ids are written in Kafka's base64 form; ids in that form are kept."""
    text = format_topic_id("00112233445566778899aabbccddeeff")
    assert text == "version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w\n"
    assert parse_topic_id(text) == "ABEiM0RVZneImaq7zN3u_w"
    assert format_topic_id("ABEiM0RVZneImaq7zN3u_w") == text
    with pytest.raises(CorruptCheckpoint):
        parse_topic_id("version: 1\ntopic_id: x\n")


def test_properties_skip_comments() -> None:
    """meta.properties has key=value lines, and comments that are skipped."""
    assert parse_properties("#\n#date\nbroker.id=3\nversion=0\n") == {
        "broker.id": "3",
        "version": "0",
    }
