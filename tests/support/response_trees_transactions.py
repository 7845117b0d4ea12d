"""What the answers about transactions must show; see ``response_trees``."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol.errors import ErrorCode


def partition_results(partitions: Any, inner: str, code_name: str, see: Any) -> Any:
    topics: dict[str, list[Any]] = {}
    for name, error in partitions:
        tree = {"partition_index": name.partition, code_name: see(error)}
        topics.setdefault(name.topic, []).append(tree)
    return [{"name": topic, inner: trees} for topic, trees in topics.items()]


def fenced_since(first: int, version: int) -> Any:
    """Older clients see INVALID_PRODUCER_EPOCH for PRODUCER_FENCED."""
    return lambda error: 47 if error == 90 and version < first else error


def add_partitions(r: Any, version: int) -> Any:
    results = [
        {
            "transactional_id": result.transactional_id,
            "topic_results": partition_results(
                result.partitions,
                "results_by_partition",
                "partition_error_code",
                fenced_since(2, version),
            ),
        }
        for result in r.results
    ]
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "results_by_transaction": results,
        "results_by_topic_v3_and_below": results[0]["topic_results"] if results else [],
    }


def one_error(r: Any, version: int) -> Any:
    return {"throttle_time": 0, "error_code": fenced_since(2, version)(r.error)}


def write_markers(r: Any, version: int) -> Any:
    return {
        "markers": [
            {
                "producer_id": producer_id,
                "topics": partition_results(partitions, "partitions", "error_code", int),
            }
            for producer_id, partitions in r.markers
        ]
    }


def txn_offset_commit(r: Any, version: int) -> Any:
    def see(error: ErrorCode) -> int:
        return 15 if error == 14 and version < 2 else error

    return {
        "throttle_time": 0,
        "topics": partition_results(r.partitions, "partitions", "error_code", see),
    }


def describe_producers(r: Any, version: int) -> Any:
    topics: dict[str, list[Any]] = {}
    for described in r.partitions:
        tree = {
            "partition_index": described.topic_partition.partition,
            "error_code": described.error,
            "error_message": described.error_message,
            "active_producers": [
                {
                    "producer_id": producer.producer_id,
                    "producer_epoch": producer.producer_epoch,
                    "last_sequence": producer.last_sequence,
                    "last_timestamp": producer.last_timestamp,
                    "coordinator_epoch": producer.coordinator_epoch,
                    "current_txn_start_offset": producer.transaction_start_offset,
                }
                for producer in described.producers
            ],
        }
        topics.setdefault(described.topic_partition.topic, []).append(tree)
    trees = [{"name": topic, "partitions": found} for topic, found in topics.items()]
    return {"throttle_time": 0, "topics": trees}


def describe_transactions(r: Any, version: int) -> Any:
    states = []
    for transaction in r.transactions:
        topics: dict[str, list[int]] = {}
        for topic, number in transaction.partitions:
            topics.setdefault(topic, []).append(number)
        states.append(
            {
                "error_code": transaction.error,
                "transactional_id": transaction.transactional_id,
                "transaction_state": transaction.state,
                "transaction_timeout": transaction.timeout_ms,
                "transaction_start_time": transaction.start_time_ms,
                "producer_id": transaction.producer_id,
                "producer_epoch": transaction.producer_epoch,
                "topics": [
                    {"topic": topic, "partitions": numbers} for topic, numbers in topics.items()
                ],
            }
        )
    return {"throttle_time": 0, "transaction_states": states}


def list_transactions(r: Any, version: int) -> Any:
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "unknown_state_filters": list(r.unknown_states),
        "transaction_states": [
            {
                "transactional_id": transaction.transactional_id,
                "producer_id": transaction.producer_id,
                "transaction_state": transaction.state,
            }
            for transaction in r.transactions
        ],
    }


TREES: dict[int, Any] = {
    24: add_partitions,
    25: one_error,
    26: one_error,
    27: write_markers,
    28: txn_offset_commit,
    61: describe_producers,
    65: describe_transactions,
    66: list_transactions,
}
