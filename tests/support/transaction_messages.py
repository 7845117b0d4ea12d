"""Random answers about transactions, and the requests that kio's stand for."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol import transactions
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import OffsetCommitPartition
from fakekafka.protocol.values import TopicPartition
from hypothesis import strategies as st

_int16s = st.integers(-(2**15), 2**15 - 1)
_int32s = st.integers(-(2**31), 2**31 - 1)
_int64s = st.integers(-(2**63), 2**63 - 1)
_errors = st.sampled_from(sorted(ErrorCode))
_texts = st.text(max_size=12)
_partitions = st.builds(TopicPartition, st.sampled_from(["orders", "a", "b.c"]), _int32s)


def _some(strategy: Any, least: int = 0) -> Any:
    return st.lists(strategy, min_size=least, max_size=4).map(tuple)


_outcomes = _some(st.tuples(_partitions, _errors))
_results = st.builds(transactions.AddPartitionsToTxnResult, _texts, _outcomes)

RESPONSES: dict[int, Any] = {
    24: st.builds(transactions.AddPartitionsToTxnResponse, _some(_results, 1), _errors),
    25: st.builds(transactions.AddOffsetsToTxnResponse, _errors),
    26: st.builds(transactions.EndTxnResponse, _errors),
    27: st.builds(transactions.WriteTxnMarkersResponse, _some(st.tuples(_int64s, _outcomes))),
    28: st.builds(transactions.TxnOffsetCommitResponse, _outcomes),
    61: st.builds(
        transactions.DescribeProducersResponse,
        _some(
            st.builds(
                transactions.DescribedProducers,
                _partitions,
                _errors,
                _some(
                    st.builds(
                        transactions.ActiveProducer,
                        _int64s,
                        _int32s,
                        _int32s,
                        _int64s,
                        _int32s,
                        _int64s,
                    )
                ),
                st.none() | _texts,
            )
        ),
    ),
    65: st.builds(
        transactions.DescribeTransactionsResponse,
        _some(
            st.builds(
                transactions.DescribedTransaction,
                _texts,
                _errors,
                _texts,
                _int32s,
                st.integers(0, 4_000_000_000_000),
                _int64s,
                _int16s,
                _some(_partitions),
            )
        ),
    ),
    66: st.builds(
        transactions.ListTransactionsResponse,
        _errors,
        _some(_texts),
        _some(st.builds(transactions.ListedTransaction, _texts, _int64s, _texts)),
    ),
}


def _names(topics: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.name, number)
        for topic in topics
        for number in getattr(topic, "partition_indexes", getattr(topic, "partitions", ()))
    )


def _add_partitions(e: Any) -> Any:
    if hasattr(e, "transactions"):
        found = tuple(
            transactions.TransactionPartitions(
                t.transactional_id, t.producer_id, t.producer_epoch, _names(t.topics), t.verify_only
            )
            for t in e.transactions
        )
    else:
        found = (
            transactions.TransactionPartitions(
                e.v3_and_below_transactional_id,
                e.v3_and_below_producer_id,
                e.v3_and_below_producer_epoch,
                _names(e.v3_and_below_topics),
            ),
        )
    return transactions.AddPartitionsToTxnRequest(found)


def _write_markers(e: Any) -> Any:
    return transactions.WriteTxnMarkersRequest(
        tuple(
            transactions.TransactionMarker(
                m.producer_id,
                m.producer_epoch,
                m.transaction_result,
                _names(m.topics),
                m.coordinator_epoch,
            )
            for m in e.markers
        )
    )


def _txn_offset_commit(e: Any) -> Any:
    return transactions.TxnOffsetCommitRequest(
        e.transactional_id,
        e.group_id,
        e.producer_id,
        e.producer_epoch,
        tuple(
            OffsetCommitPartition(
                TopicPartition(topic.name, p.partition_index),
                p.committed_offset,
                getattr(p, "committed_leader_epoch", -1),
                p.committed_metadata or "",
            )
            for topic in e.topics
            for p in topic.partitions
        ),
        getattr(e, "generation_id", -1),
        getattr(e, "member_id", ""),
        getattr(e, "group_instance_id", None),
    )


EXPECTED: dict[int, Any] = {
    24: _add_partitions,
    25: lambda e: transactions.AddOffsetsToTxnRequest(
        e.transactional_id, e.producer_id, e.producer_epoch, e.group_id
    ),
    26: lambda e: transactions.EndTxnRequest(
        e.transactional_id, e.producer_id, e.producer_epoch, e.committed
    ),
    27: _write_markers,
    28: _txn_offset_commit,
    61: lambda e: transactions.DescribeProducersRequest(_names(e.topics)),
    65: lambda e: transactions.DescribeTransactionsRequest(e.transactional_ids),
    66: lambda e: transactions.ListTransactionsRequest(
        e.state_filters, e.producer_id_filters, getattr(e, "duration_filter", -1)
    ),
}
