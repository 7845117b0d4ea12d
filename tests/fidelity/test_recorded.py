"""A simulation shows what Kafka showed: each scenario, in each release that was recorded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fakekafka.tests.fidelity import catalogue, comparison, differences, recording, running
from fakekafka.tests.fidelity.sides.releases import RELEASES

NEWEST = next(iter(RELEASES))
RECORDED = [
    (kafka_version, name)
    for kafka_version in RELEASES
    for name, scenario in catalogue.all_scenarios().items()
    if not scenario.needs_sockets and recording.path(kafka_version, name).exists()
]


@pytest.mark.parametrize(
    ("kafka_version", "name"),
    [
        pytest.param(*known, marks=[] if known[0] == NEWEST else pytest.mark.slow)
        for known in RECORDED
    ],
    ids=lambda value: value,
)
def test_a_simulation_shows_what_kafka_showed(kafka_version: str, name: str) -> None:
    """Each step equals the recording, but for the listed differences."""
    known = recording.load(kafka_version, name)
    assert known is not None
    stage = running.simulate(catalogue.all_scenarios()[name], kafka_version)
    assert stage.notes == []
    found = comparison.differences(known, stage.steps)
    unknown, _ = differences.split(kafka_version, name, found)
    assert unknown == [], "\n" + "\n".join(map(str, unknown))


def test_few_differences_are_listed() -> None:
    """At most ten differences are listed for a release, each with a description."""
    for kafka_version in RELEASES:
        rows = [row for row in differences.LISTED if kafka_version in row.versions]
        assert len(rows) <= differences.PER_RELEASE_MAX
    assert all(len(row.why) > 40 for row in differences.LISTED)


@pytest.mark.parametrize(
    ("row", "kafka_version"),
    [(row, version) for row in differences.LISTED for version in row.versions],
    ids=lambda value: value if isinstance(value, str) else value.scenario[:20],
)
def test_each_row_is_about_something_that_differs(
    row: differences.Listed, kafka_version: str
) -> None:
    """A difference that was fixed must not be listed any more."""
    for version, name in RECORDED:
        if version == kafka_version and re.fullmatch(row.scenario, name):
            known = recording.load(version, name)
            assert known is not None
            stage = running.simulate(catalogue.all_scenarios()[name], version)
            found = comparison.differences(known, stage.steps)
            if row in differences.split(version, name, found)[1]:
                return
    pytest.fail("no recorded scenario differs so")


def test_a_row_may_be_about_a_part_of_a_value() -> None:
    """The rest of the value must equal that of Kafka."""
    row = differences.Listed(("0.10",), "s", ".*", ".*", "", r"epoch \d+")

    def covers(here: str) -> bool:
        kafka = ("leader 1, epoch 2", "leader 3, epoch 4")
        return row.covers("0.10", "s", comparison.Difference("look", "t-0", kafka, here))

    assert covers("leader 1, epoch 7")
    assert covers("leader 3, epoch 7")
    assert not covers("leader 2, epoch 2")


def test_each_recording_belongs_to_a_scenario() -> None:
    """A scenario that was renamed takes its recordings along."""
    known = catalogue.all_scenarios()
    strangers = [
        str(path)
        for kafka_version in RELEASES
        for path in sorted((recording.FOLDER / kafka_version).glob("*.txt"))
        if path.stem not in known or path.parent.name not in known[path.stem].versions
    ]
    assert strangers == []


def test_the_readme_has_the_number_of_recorded_scenarios() -> None:
    """The first screen of the README has the numbers of scenarios."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    counts = [len(list((recording.FOLDER / version).glob("*.txt"))) for version in ("3.9", "2.8")]
    assert f"[{counts[0]} scenarios on 3.9.1 and {counts[1]} on 2.8.2]" in readme
