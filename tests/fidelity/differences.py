"""The known differences between recordings of Kafka and this project, intended or not yet fixed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fakekafka.tests.fidelity.comparison import Difference

PER_RELEASE_MAX = 10


class Listed(NamedTuple):
    """A known difference; ``scenario``, ``step`` and ``key`` are regular expressions."""

    versions: Sequence[str]
    scenario: str
    step: str
    key: str
    why: str
    """What Kafka does, and in which class."""
    part: str = ".*"
    """Regular expression of the part of the value that differs; the rest must be equal."""

    def covers(self, kafka_version: str, scenario: str, difference: Difference) -> bool:
        return (
            kafka_version in self.versions
            and re.fullmatch(self.scenario, scenario) is not None
            and re.fullmatch(self.step, difference.step) is not None
            and re.fullmatch(self.key, difference.key) is not None
            and self._rest(difference.here) in map(self._rest, difference.kafka)
        )

    def _rest(self, value: str) -> str:
        return re.sub(self.part, "", value)


_SINCE_2_8 = ("3.9", "2.8")

LISTED: tuple[Listed, ...] = (
    Listed(
        _SINCE_2_8,
        "record_errors",
        "no keys",
        "responses r partitionResponses 0.*",
        "The error code and the indexes of the refused records are equal. Messages differ: those "
        "of LogValidator name topic and partition, and up to three are joined in one text.",
    ),
    Listed(
        ("3.9",),
        "levels_of_loggers",
        ".*",
        "responses .*",
        "The error codes are equal. The message of ZkAdminManager about an unknown logger has only "
        "its name, and that of ConfigAdminManager names the wrong broker instead of its own.",
    ),
    Listed(
        ("3.9",),
        "fetch_errors",
        "unknown partition|unknown topic",
        "abortedTransactions",
        "FetchResponse.partitionResponse returns an empty array of aborted transactions for an "
        "unknown partition, and null for every other error. No client reads the field.",
    ),
    Listed(
        ("2.8",),
        "reassign_goes_on_after_the_target_is_back|partitions_are_added_during_a_move",
        "look: thawed 2",
        "r-0",
        "When the target of a move has lost its session and returns, KafkaController of 2.8 elects "
        "a leader one more time than 3.9 and this project do. Two recordings of each show it.",
    ),
    Listed(
        ("0.10",),
        "(leader|controller|controller_that_leads|two_of_three)_freezes?",
        "look: froze .",
        "told: .*",
        "A follower that gets a new leader first waits for its old fetcher thread, whose request "
        "to the frozen broker lasts until replica.socket.timeout.ms (AbstractFetcherThread."
        "shutdown of 0.10). Until then the follower learns of no further changes. Later releases "
        "close the thread's connection.",
    ),
    Listed(
        ("0.10",),
        "rolling_restart|.*stop.*_start_.*",
        "look: .*",
        "(two|three)(-min2|-unclean)?-.",
        "KafkaController.shutdownBroker of 0.10 stops a broker's replicas one by one, in most "
        "cases before the broker ends. If its request handlers end first, the broker keeps "
        "fetching, and leaders add it to the ISR once more. Leaders and ISRs are equal in the end.",
        r"epoch \d+, znode \d+",
    ),
    Listed(
        ("0.10",),
        "fetch_errors",
        "no bytes|little",
        "records",
        "Messages of 0.10 are not batched, so FileMessageSet.read ends after the first message, "
        "which is returned whatever its size. Here, records of one request are stored as a batch.",
    ),
)


def is_listed(kafka_version: str, scenario: str) -> bool:
    """Return True if a difference is listed for the scenario."""
    return any(
        kafka_version in row.versions and re.fullmatch(row.scenario, scenario) for row in LISTED
    )


def split(
    kafka_version: str, scenario: str, found: Sequence[Difference]
) -> tuple[list[Difference], list[Listed]]:
    """Return the differences that are not listed, and the rows that cover the others."""
    unknown, used = [], []
    for difference in found:
        rows = [row for row in LISTED if row.covers(kafka_version, scenario, difference)]
        used += rows
        if not rows:
            unknown.append(difference)
    return unknown, used
