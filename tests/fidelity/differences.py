"""The places where Kafka shows something else than this project, on purpose or not yet mended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fakekafka.tests.fidelity.comparison import Difference

PER_RELEASE_MAX = 10


class Listed(NamedTuple):
    """A difference that is known; ``step`` and ``key`` are regular expressions."""

    versions: Sequence[str]
    scenario: str
    step: str
    key: str
    why: str
    """What Kafka does, and in which class."""
    part: str = ".*"
    """What of the value is otherwise, a regular expression; the rest of it must be equal."""

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
        "The error code and the records that are named are the same. LogValidator names topic and "
        "partition in its messages, and ProduceResponse lists up to three of them in one text.",
    ),
    Listed(
        ("3.9",),
        "levels_of_loggers",
        ".*",
        "responses .*",
        "The error codes are the same. ZkAdminManager says of a wrong logger only its name, and "
        "ConfigAdminManager names the wrong broker where it should name its own.",
    ),
    Listed(
        ("3.9",),
        "fetch_errors",
        "unknown partition|unknown topic",
        "abortedTransactions",
        "FetchResponse.partitionResponse leaves an empty array where a partition is unknown, and "
        "null for every other error; no client reads it.",
    ),
    Listed(
        ("2.8",),
        "reassign_goes_on_after_the_target_is_back|partitions_are_added_during_a_move",
        "look: thawed 2",
        "r-0",
        "When the target of a move has lost its session and is back, KafkaController of 2.8 "
        "elects a leader once more than 3.9 and this project, seen in two recordings of each.",
    ),
    Listed(
        ("0.10",),
        "(leader|controller|controller_that_leads|two_of_three)_freezes?",
        "look: froze .",
        "told: .*",
        "A follower that gets another leader waits for its old fetcher thread, whose request to "
        "the frozen broker ends after replica.socket.timeout.ms (AbstractFetcherThread.shutdown of "
        "0.10); later ones close its connection. Until then the broker hears nothing new.",
    ),
    Listed(
        ("0.10",),
        "rolling_restart|.*stop.*_start_.*",
        "look: .*",
        "(two|three)(-min2|-unclean)?-.",
        "KafkaController.shutdownBroker of 0.10 has replicas stopped one by one, which, it says, "
        "comes in time in most cases. A broker whose request handlers end before goes on fetching, "
        "and leaders take it into the ISR once more. Leaders and ISRs are the same in the end.",
        r"epoch \d+, znode \d+",
    ),
    Listed(
        ("0.10",),
        "fetch_errors",
        "no bytes|little",
        "records",
        "Messages of 0.10 stand alone, so FileMessageSet.read ends after the first one that had to "
        "fit. Here what was produced together is stored together.",
    ),
    Listed(
        ("0.10",),
        "znodes_of_a_cluster",
        "/brokers/ids/1",
        "version|listener_security_protocol_map",
        "ZkUtils.registerBrokerInZk of 0.10.1 knows no names of listeners (KIP-103, 0.10.2); here "
        "brokers of 0.10 have them.",
    ),
)


def is_listed(kafka_version: str, scenario: str) -> bool:
    """Return whether a row is about the scenario."""
    return any(
        kafka_version in row.versions and re.fullmatch(row.scenario, scenario) for row in LISTED
    )


def split(
    kafka_version: str, scenario: str, found: Sequence[Difference]
) -> tuple[list[Difference], list[Listed]]:
    """Differences that nobody has listed, and the rows that cover the others."""
    unknown, used = [], []
    for difference in found:
        rows = [row for row in LISTED if row.covers(kafka_version, scenario, difference)]
        used += rows
        if not rows:
            unknown.append(difference)
    return unknown, used
