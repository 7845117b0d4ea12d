"""Writes the page about the scenarios recorded on brokers of Kafka, and the differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fakekafka.tests.fidelity import catalogue, differences, recording
from fakekafka.tests.fidelity.sides.releases import RELEASES
from fakekafka.tests.fidelity.stage.normalisation import LEFT_OUT, ORDER, ROWS
from fakekafka.tests.fidelity.wire import answers, corpus
from fakekafka.tests.fidelity.wire import differences as wire_differences

_INTRODUCTION = """\
# Recordings of Kafka

Brokers of Apache Kafka in ZooKeeper mode ran the scenarios below. What clients and a ZooKeeper
client saw after each step was recorded: leaders, epochs, ISRs, znodes and their versions, metadata,
error codes and messages, offsets, records, configurations. The tests run the same scenarios in a
simulation, through the code that serves sockets, and compare. Some run once more on a `Cluster`,
over TCP and the port of its ZooKeeper; `python -m fakekafka.tests.fidelity compare --version 3.9
--tcp` runs all of them so.

`make oracle VERSION=3.9 NAMES=rolling` records again; it needs Java 17 and Maven, which loads the
brokers. A recording is a text file in `tests/fidelity/recordings`. Where two recordings of a step
differ, Kafka leaves it to chance, and both outcomes are taken for right.

`make oracle-files VERSION=3.9` carries log directories both ways: Kafka's DumpLogSegments reads
ours, a broker of Kafka goes on with ours, and ours goes on with those of Kafka, after a stop and
after a crash. Continuous integration leaves it out: it would load jars and start brokers each time.

`make oracle-random VERSION=3.9 N=20 SEED=1` goes further: histories of 40 steps, drawn from a seed,
run in a simulation and on brokers of Kafka beside it. The seeds take turns: brokers crash, stop,
freeze and come back while topics are created, moved, grown and deleted; groups of the classic
protocol join them, or transactions, or both; one history in five has no faults. Members join, sync,
commit, leave and fall silent, some with instance ids; producers begin, write, end, fence each other
and run out of time; quotas, ACLs and configurations are changed and described. A release is asked
only for what it has. Only such steps are drawn whose outcome Kafka does not leave to chance. What
differs twice is cut down to the shortest history that shows it. The file with its steps becomes a
scenario in `tests/fidelity/histories/kept`, and is recorded as the others are.
"""


def fidelity_page(source_note: str) -> str:
    """Return the page: scenarios by release, differences, and values normalised for comparing."""
    return "\n".join([source_note, _INTRODUCTION, *_lines()]) + "\n"


def recorded_count(kafka_version: str) -> int:
    """Return the number of scenarios that were recorded on a release."""
    return len(list((recording.FOLDER / kafka_version).glob("*.txt")))


def answers_count(kafka_version: str) -> int:
    """Return the number of raw requests with a recorded answer."""
    found = (answers.load(kafka_version, api) for api in corpus.asked_names(kafka_version))
    return sum(len(known.steps) for known in found if known is not None)


def _lines() -> Iterator[str]:
    yield "| release | scenarios | raw requests | differences |"
    yield "|---|---|---|---|"
    for version, release in RELEASES.items():
        listed = sum(version in row.versions for row in differences.LISTED)
        yield (
            f"| {version} ({release.version}) | {recorded_count(version)} "
            f"| {answers_count(version)} | {listed} |"
        )
    yield "\n## Scenarios\n"
    yield "`-`: the release has no such thing; `listed`: see the differences.\n"
    yield "| scenario | " + " | ".join(RELEASES) + " |"
    yield "|---" * (len(RELEASES) + 1) + "|"
    for name, scenario in catalogue.all_scenarios().items():
        cells = [_cell(name, scenario.versions, version) for version in RELEASES]
        if any(cell in ("equal", "listed") for cell in cells):
            yield f"| {scenario.about} | " + " | ".join(cells) + " |"
    yield "\n## Differences\n"
    yield "| releases | scenario | what Kafka does |"
    yield "|---|---|---|"
    for row in differences.LISTED:
        names = row.scenario.replace("|", ", ")
        yield f"| {', '.join(row.versions)} | {names} | {row.why} |"
    yield "\n## Differences in raw requests\n"
    yield "Every API that clients use is asked in every version, rightly and wrongly in each field."
    yield "These are answered otherwise:\n"
    yield "| releases | APIs | what Kafka does |"
    yield "|---|---|---|"
    for wire_row in (*wire_differences.ROWS, *wire_differences.OLD_ROWS):
        apis = wire_row.apis.replace("|", ", ").replace(".*", "...")
        yield f"| {', '.join(wire_row.versions)} | {apis} | {wire_row.why} |"
    yield "\n## What is made equal\n"
    yield "| fields | why |"
    yield "|---|---|"
    for normalised in ROWS:
        yield f"| {', '.join(normalised.fields)} | {normalised.reason} |"
    for field, reason in LEFT_OUT.items():
        yield f"| {field} | {reason} |"
    yield f"| the order of arrays | {ORDER} |"


def _cell(name: str, versions: Sequence[str], version: str) -> str:
    if version not in versions:
        return "-"
    if not recording.path(version, name).exists():
        return "not recorded"
    return "listed" if differences.is_listed(version, name) else "equal"
