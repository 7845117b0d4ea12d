"""The suites of the package: what a run of each shows."""

from __future__ import annotations

import statistics
from typing import Any

import pytest
from fakekafka.spark_bench.measuring.run import PHASES
from fakekafka.spark_bench.planning.carry_out import carry_out
from fakekafka.spark_bench.planning.plan import make_plan
from fakekafka.spark_bench.planning.suite import SUITES, find_source, load_suite
from fakekafka.spark_bench.tables.schema import column_docs

pytestmark = pytest.mark.slow


def row_of(suite: str, seed: int = 3, **values: Any) -> dict[str, Any]:
    """Return the row of one run, which must have kept every promise."""
    plan = make_plan(suite, 1, seed, values=values, matrix={})
    row = carry_out(plan, plan.specs[0]).row
    assert row["status"] == "ok", row["problems"]
    if "unavailable_ms" in row and "unavailable_ms" not in row.get("at_least", ""):
        assert sum(row[name] for name in PHASES) == pytest.approx(row["unavailable_ms"])
    return row


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_measures_its_declared_columns_and_explains_each(name: str) -> None:
    suite = load_suite(find_source(name))
    small = {"kafka-5642": {"part": 500}, "produce-latency": {"rate_per_s": 200}}
    row = row_of(name, **small.get(name, {}))
    for measure in suite.measures:
        stem = measure.removesuffix("_ms")
        assert measure in row or f"{stem}_p50_ms" in row
    assert row[suite.headline] is not None
    docs = column_docs(suite.measures, suite.parameters)
    assert [column for column in row if column not in docs and column not in suite.parameters] == []


def test_a_longer_session_timeout_is_felt() -> None:
    short = row_of("old-vs-new", kafka_version="2.8", own_defaults=False)
    own = row_of("old-vs-new", kafka_version="2.8", own_defaults=True)
    assert 4_000 < short["unavailable_ms"] < 9_000
    assert own["unavailable_ms"] > 12_000


def test_a_shutdown_in_control_is_not_felt_and_older_releases_need_longer() -> None:
    """KAFKA-5642: 0.10 sends its ZooKeeper requests one by one, 1.1 ten at a time."""
    old = row_of("controlled-shutdown", kafka_version="0.10", partitions=60)
    new = row_of("controlled-shutdown", kafka_version="1.1", partitions=60)
    assert old["in_control"]
    assert new["in_control"]
    assert old["shutdown_ms"] > 3 * new["shutdown_ms"]
    assert new["response_max_ms"] < 2_000


def test_a_controller_that_resigns_is_replaced_at_once_and_a_dead_one_after_its_session() -> None:
    resigns = row_of("controller-failover", crashes=False)
    dies = row_of("controller-failover", crashes=True)
    assert resigns["failover_ms"] < 200
    assert dies["elected_ms"] > 4_000
    assert dies["failover_ms"] == pytest.approx(dies["elected_ms"] + dies["takeover_ms"])


def test_restarts_in_control_are_felt_less_than_kills() -> None:
    gentle = row_of("rolling-restart", in_control=True)
    rough = row_of("rolling-restart", in_control=False)
    assert gentle["response_max_ms"] < 2_000
    assert rough["response_max_ms"] > 4_000
    assert rough["outages"] > 0


def test_a_short_lag_time_drops_a_slow_follower_and_a_long_one_waits() -> None:
    short = row_of("isr-churn", lag_time_ms=2_000, stall_ms=6_000, stalls=2)
    long = row_of("isr-churn", lag_time_ms=30_000, stall_ms=6_000, stalls=2)
    assert short["isr_shrinks"] == short["isr_expands"] > 0
    assert long["isr_shrinks"] == 0
    assert long["response_max_ms"] > short["response_max_ms"]


def test_replicas_and_linger_cost_latency() -> None:
    alone = row_of("produce-latency", replication_factor=1, rate_per_s=300)
    three = row_of("produce-latency", replication_factor=3, rate_per_s=300)
    first = row_of("produce-latency", acks="1", rate_per_s=300)
    lingers = row_of("produce-latency", linger_ms=20, rate_per_s=300)
    assert three["response_p50_ms"] > 1.2 * alone["response_p50_ms"]
    assert first["response_p50_ms"] < three["response_p50_ms"]
    assert 8 < lingers["response_p50_ms"] < lingers["response_max_ms"] < 30


def test_an_unclean_election_trades_records_for_time() -> None:
    clean = row_of("unclean", unclean=False)
    unclean = row_of("unclean", unclean=True)
    assert clean["lost"] == 0
    assert unclean["lost"] > 50
    assert unclean["unavailable_ms"] < clean["unavailable_ms"] - 10_000


def test_a_dead_member_is_noticed_after_its_session_timeout() -> None:
    leaves = row_of("rebalance", change="leave")
    dies = row_of("rebalance", change="crash", session_timeout_ms=10_000)
    assert leaves["rebalance_ms"] < 4_000
    assert 6_000 < dies["rebalance_ms"] < 15_000
    assert dies["stall_max_ms"] > 6_000


def test_a_move_takes_as_long_as_the_bytes_need_on_the_link() -> None:
    """A move takes as long as its bytes on the link: two brokers send 100 MB at 50 MB/s each."""
    row = row_of("reassignment", stored_mb=100.0, link_mb_per_s=50.0)
    assert row["moved_mb"] == pytest.approx(100, rel=0.02)
    assert 1_000 < row["move_ms"] < 8_000
    slow = row_of("reassignment", stored_mb=100.0, link_mb_per_s=10.0)
    assert slow["move_ms"] > 3 * row["move_ms"]


def test_a_client_of_a_machine_without_power_waits_for_its_request_timeout() -> None:
    """A client of a machine without power waits for its request timeout, while a killed broker's
    client learns of the death and retries. Medians are compared, as a follower may wait a second
    before it fetches again.
    """

    def median_ms(**values: Any) -> float:
        rows = [row_of("clients", seed, **values) for seed in range(1, 6)]
        return float(statistics.median(row["client_ms"] for row in rows))

    told_ms = median_ms(retry_backoff_ms=100)
    assert told_ms < 400
    assert median_ms(retry_backoff_ms=1000) > 3 * told_ms
    silent = [row_of("clients", seed, silently=True, request_timeout_ms=15_000) for seed in (1, 2)]
    assert [15_000 < row["unavailable_ms"] < 15_500 for row in silent] == [True, True]


def test_published_ratios_of_kafka_5642_come_out_within_a_quarter() -> None:
    """Ratios published for KAFKA-5642 are met within a quarter by runs of whole clusters."""
    suite = load_suite(find_source("kafka-5642"))
    for pair in suite.published:
        above, below = (row_of("kafka-5642", **pair[side])["scaled_s"] for side in
                        ("above", "below"))  # fmt: skip
        wanted = pair["published"][0] / pair["published"][1]
        assert above / below == pytest.approx(wanted, rel=0.25), pair["title"]
