"""Raw requests are answered as Kafka answered them, field by field."""

from __future__ import annotations

import pytest
from fakekafka.protocol.api_versions import API_NAMES
from fakekafka.tests.fidelity.wire import answers, corpus, differences, playing

JUDGED = ("3.9", "2.8", "1.1", "0.10")
RECORDED = [
    pytest.param(
        kafka_version, API_NAMES[key], marks=pytest.mark.xdist_group(f"answers-{kafka_version}")
    )
    for kafka_version in JUDGED
    for key in corpus.asked_apis(kafka_version)
]


@pytest.mark.parametrize(("kafka_version", "api"), RECORDED)
def test_raw_requests_are_answered_as_kafka_answered_them(kafka_version: str, api: str) -> None:
    """Each version of each API gets valid requests and those with an invalid field.

    No listed difference may be in an error code, or in whether there is an answer.
    """
    found = playing.differences(kafka_version, api)
    unknown = differences.unlisted(kafka_version, api, found)
    assert unknown == [], "\n" + "\n".join(map(str, unknown))
    otherwise = differences.in_codes(found)
    assert otherwise == [], "\n" + "\n".join(map(str, otherwise))


@pytest.mark.parametrize(
    ("kafka_version", "asked", "least_equal"),
    [
        pytest.param("3.9", 5938, 5767, marks=pytest.mark.xdist_group("answers-3.9")),
        pytest.param("2.8", 4789, 4755, marks=pytest.mark.xdist_group("answers-2.8")),
        pytest.param("1.1", 1701, 1690, marks=pytest.mark.xdist_group("answers-1.1")),
        pytest.param("0.10", 640, 625, marks=pytest.mark.xdist_group("answers-0.10")),
    ],
)
def test_the_listed_differences_cover_no_more_answers_than_before(
    kafka_version: str, asked: int, least_equal: int
) -> None:
    """The listed differences cover no more answers than before."""
    count = differing = 0
    for key in corpus.asked_apis(kafka_version):
        api = API_NAMES[key]
        known = answers.load(kafka_version, api)
        assert known is not None
        count += len(known.steps)
        differing += len({d.step for d in playing.differences(kafka_version, api)})
    assert count == asked
    assert count - differing >= least_equal
