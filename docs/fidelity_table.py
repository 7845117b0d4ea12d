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

The scenarios below ran on brokers of Apache Kafka in ZooKeeper mode. After each step a recorder
wrote down what clients and a ZooKeeper client saw: leaders, epochs, ISRs, znodes and their
versions, metadata, error codes and messages, offsets, records and configurations. The tests run
the same scenarios in a simulation, through the code that also serves sockets, and compare the
results with the recordings. Some scenarios also run on a `Cluster`, over TCP and through the port
of its ZooKeeper; `python -m fakekafka.tests.fidelity compare --version 3.9 --tcp` runs all of them
that way.

`make oracle VERSION=3.9 NAMES=rolling` records scenarios again. It needs Java 17 and Maven, which
downloads the brokers. A recording is a text file in `tests/fidelity/recordings`. Where two
recordings of a step differ, the outcome in Kafka is left to chance, and both outcomes are accepted.

`make oracle-files VERSION=3.9` exchanges log directories in both directions: Kafka's
DumpLogSegments reads ours, a broker of Kafka starts on ours, and a broker of this project starts on
Kafka's, after a stop and after a crash. Continuous integration does not run it, because it would
download jars and start brokers each time.

`make oracle-random VERSION=3.9 N=20 SEED=1` runs random histories of 40 steps, drawn from a seed,
both in a simulation and on brokers of Kafka, and compares them. The kind of history alternates with
the seed: brokers crash, stop, freeze and restart while topics are created, moved, grown and
deleted; some histories add groups of the classic protocol, transactions, or both; one in five has
no faults.
Members join, sync, commit, leave and stop sending heartbeats, some with instance ids. Producers
begin and end transactions, write, fence each other and time out. Quotas, ACLs and configurations
are changed and described. Steps are drawn only if the release supports them and their outcome in
Kafka is not left to chance. A difference that appears twice is reduced to the shortest history that
shows it. The file with its steps in `tests/fidelity/histories/kept` becomes a scenario, which is
recorded like the others.
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
    yield "`equal`: the results are equal to the recording; `listed`: they differ as listed under"
    yield "Differences; `-`: the scenario does not apply to the release.\n"
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
    yield "Each version of each API that clients use is sent valid requests, and requests with an"
    yield "invalid value in each field. These requests are answered differently:\n"
    yield "| releases | APIs | what Kafka does |"
    yield "|---|---|---|"
    for wire_row in (*wire_differences.ROWS, *wire_differences.OLD_ROWS):
        apis = wire_row.apis.replace("|", ", ").replace(".*", "...")
        yield f"| {', '.join(wire_row.versions)} | {apis} | {wire_row.why} |"
    yield "\n## Values that are normalised\n"
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
