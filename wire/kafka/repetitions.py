"""Requests that name something twice.

Kafka collects the entries of many requests in a map: the last entry of a key counts, and is
answered once, at the place of the first. Which requests these are depends on the release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, TypeVar

from ...protocol.versions import Behaviour
from .api import CodecAnswer

_T = TypeVar("_T")
Collector = Callable[[Any, int], Any]
"""Returns a request without repeated entries; takes the request and its version."""


def by_partition(entry: Any) -> object:
    """Return the partition of an entry, by which the entries of most requests differ."""
    return entry.topic_partition


def last_of_each(entries: Sequence[_T], key: Callable[[_T], object] = by_partition) -> Sequence[_T]:
    """Return the entries without those that a later entry of the same key overrides."""
    if len(entries) < 2:
        return entries
    last_entries = {key(entry): entry for entry in entries}
    return entries if len(last_entries) == len(entries) else tuple(last_entries.values())


def _identity(entry: _T) -> _T:
    return entry


def _collecting(field: str, key: Callable[[Any], object]) -> Collector:
    """Return a collector of the entries in a field of the request."""

    def collect(request: Any, _version: int) -> Any:
        if type(request) is CodecAnswer:
            return request
        entries = getattr(request, field)
        kept = last_of_each(entries, key)
        return request if kept is entries else replace(request, **{field: tuple(kept)})

    return collect


def _collect_old_commit(request: Any, version: int) -> Any:
    return _PARTITIONS(request, version) if version == 0 else request


def _collect_transaction(request: Any, _version: int) -> Any:
    transactions = (
        replace(transaction, partitions=tuple(dict.fromkeys(transaction.partitions)))
        for transaction in request.transactions
    )
    return replace(request, transactions=tuple(transactions))


_PARTITIONS = _collecting("partitions", by_partition)
_RESOURCES = _collecting("resources", itemgetter(0))


def collectors(flags: Behaviour) -> dict[int, Collector]:
    """Return the collectors of a release by API key; other APIs collect in every release."""
    collecting: tuple[tuple[int, bool, Collector], ...] = (
        (1, not flags.fetches_parsed_when_handled, _PARTITIONS),
        (8, flags.repeated_old_commits_answered_once, _collect_old_commit),
        (15, not flags.describe_groups_generated, _collecting("group_ids", _identity)),
        (20, not flags.delete_topics_generated, _collecting("topics", _identity)),
        (23, not flags.epoch_offsets_generated, _PARTITIONS),
        (24, flags.repeated_transaction_partitions_answered_once, _collect_transaction),
        (32, not flags.describe_configs_generated, _RESOURCES),
        (33, not flags.alter_configs_generated, _RESOURCES),
    )
    return {key: collector for key, collects, collector in collecting if collects}
