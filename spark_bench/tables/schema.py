"""The columns of the tables of a batch: their types and meanings.

The same texts are in the metadata of the Parquet files, as ``doc`` of each field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...protocol.errors import UsageError
from ..measuring.histogram import GAMMA, OPEN, ZERO_BUCKET
from ..planning.carry_out import STATUSES

TABLES = ("runs", "hist", "series", "samples", "cost")
"""The tables of a batch; the first four depend on the plan alone."""

BUCKET_RULE = (
    f"bucket b holds the values in (gamma^(b-1), gamma^b], gamma = 1.01/0.99 = {GAMMA:.12f}; the "
    "value 2*gamma^b/(gamma+1) stands for it and is at most 1 % off; "
    f"bucket {ZERO_BUCKET} holds what is 0 or less; bucket {OPEN} + b holds what had lasted as "
    "long as those of b and had not ended, its value is infinite. Counts of equal "
    "buckets can be added."
)

FIRST = {
    "run_id": "number of the run in its batch",
    "suite": "name of the suite",
    "configuration": "number of the combination of parameters; its runs differ in their seeds only",
    "seed": "of the simulation; every configuration has the same seeds",
}
MIDDLE = {
    "status": "; ".join(f"{name}: {text}" for name, text in STATUSES.items()),
    "problems": "which promise was broken, or what went wrong",
}
MEASURED = {
    "acknowledged": "records that the producers were told are stored",
    "failed": "records that the producers gave up",
    "retries": "batches that the producers sent again",
    "unanswered": "records that had no answer when the run ended",
    "unread": "acknowledged records that no consumer had read when the run ended, without those of "
    "the warm-up; only where clients read",
    "lost": "acknowledged records that cannot be read at the end, whatever they were promised",
    "lost_promised": "those of them that were acknowledged by all in-sync replicas, unless the run "
    "breaks that promise on purpose",
    "expired": "acknowledged records that retention, compaction or a deletion took",
    "duplicated": "records that are there twice at the end",
    "duplicated_promised": "those of them that idempotent producers sent with acks=all",
    "at_least": "columns of this row whose value is a lower bound: what they measure had not ended",
    "leader_changes": "how often a controller gave a partition another leader",
    "outages": "times in which a client waited for an acknowledgement of a partition and nobody "
    "got one, of those that ended; from 1 s on, or shorter if in it the leader died or changed, a "
    "client asked a broker that leads no more, or the ISR shrank",
    "outages_open": "those that had not ended, or in which everybody had given up",
    "unavailable_partition_s": "sum over all of them of the time without acknowledgement",
    "unavailable_ms": "the longest of them, the sum of the seven phases; or of those without an "
    "end, up to the end of the run (at_least)",
    "before_ms": "phase: until its cause struck",
    "detect_ms": "phase: until a controller hears of the expired session; where nothing was "
    "decided, until the cause was undone",
    "elect_ms": "phase: until the controller sends another leader its LeaderAndIsr request",
    "shrink_ms": "phase: until a smaller ISR is sent to the leader, or asked for by it",
    "restore_ms": "phase: until a replica was back, without which no broker may lead or a write is "
    "refused (NOT_ENOUGH_REPLICAS)",
    "propagate_ms": "phase: until the leader has what the controller sent",
    "client_ms": "phase: until the first acknowledgement after that",
}
LAST = {
    "events": "events of the outline: those of a trace but what clients and sessions report",
    "messages": "messages that were sent",
    "virtual_ms": "virtual time at the end",
    "fingerprint": "digest of the order of events; equal runs have equal ones",
    "reproduce": "the command that repeats the run",
}
METRICS = {
    "response_ms": "produce: from the record's arrival to its acknowledgement, open loop; "
    "records given up or never answered rank as worst",
    "closed_response_ms": "the same in a closed loop, which sends less while it waits",
    "service_ms": "produce: from the last time the record was sent to its acknowledgement",
    "end_to_end_ms": "from the record's arrival until a consumer has it; acknowledged records that "
    "were never read rank as worst",
    "partition_unavailable_ms": "each outage of a partition; those without an end rank as worst",
}
"""The metrics of histograms and samples, with their meanings."""

COLUMNS: dict[str, dict[str, tuple[str, str]]] = {
    "hist": {
        "run_id": ("int64", FIRST["run_id"]),
        "configuration": ("int32", "as in runs"),
        "metric": ("string", "what was measured"),
        "bucket": ("int32", BUCKET_RULE),
        "n": ("int64", "how many values fell into the bucket"),
        "value": ("double", "the value that stands for the bucket"),
    },
    "series": {
        "run_id": ("int64", FIRST["run_id"]),
        "configuration": ("int32", "as in runs"),
        "second": ("int32", "of virtual time since the run began"),
        "arrived": ("int64", "records that arrived at producers in this second"),
        "acknowledged": ("int64", "records that were acknowledged in it"),
        "failed": ("int64", "records that were given up in it"),
        "backlog": ("int64", "records that wait for an answer at its end"),
        "unavailable": ("int64", "partitions that are unavailable in the middle of it"),
    },
    "samples": {
        "run_id": ("int64", FIRST["run_id"]),
        "configuration": ("int32", "as in runs"),
        "metric": ("string", "what was measured"),
        "at_us": ("int64", "virtual time at which it was, in microseconds"),
        "value": ("double", "as it was measured"),
    },
    "cost": {
        "run_id": ("int64", FIRST["run_id"]),
        "engine": ("string", "what carried the run out"),
        "worker": ("string", "machine and process that did"),
        "wall_ms": ("double", "how long it took"),
    },
}
"""Table to its columns, with type and meaning. The columns of ``runs`` depend on the suite."""


def arrow() -> Any:
    """Import pyarrow and its Parquet module; raise ``UsageError`` if it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError("tables in Parquet need pyarrow: pip install 'fakekafka[spark]'") from None
    return pyarrow


def documented(table: str, fields: Iterable[Any], docs: Mapping[str, str], about: Any) -> Any:
    """Return a schema with the meanings of fields; ``about`` are facts of the batch."""
    documented_fields = [
        field.with_metadata({"doc": docs[field.name]}) if docs.get(field.name) else field
        for field in fields
    ]
    metadata = {f"fakekafka.{name}": str(value) for name, value in about.items()}
    if table in ("hist", "samples"):
        metadata["fakekafka.bucket_rule"] = BUCKET_RULE
    return arrow().schema(documented_fields, metadata=metadata)


def fixed_schema(table: str, about: Mapping[str, Any]) -> Any:
    """Return the schema of a table other than ``runs``."""
    pyarrow = arrow()
    columns = COLUMNS[table]
    fields = [pyarrow.field(name, pyarrow.type_for_alias(kind)) for name, (kind, _) in
              columns.items()]  # fmt: skip
    return documented(table, fields, {name: doc for name, (_, doc) in columns.items()}, about)


def column_docs(measures: Mapping[str, str], parameters: Iterable[str]) -> dict[str, str]:
    """Return the meanings of the columns of ``runs``; ``measures`` are the suite's own."""
    docs = FIRST | MIDDLE | MEASURED | LAST | dict(measures)
    docs |= dict.fromkeys(parameters, "parameter")
    for metric, text in (METRICS | dict(measures)).items():
        stem, unit = metric.removesuffix("_ms"), "_ms" if metric.endswith("_ms") else ""
        for percent in ("50", "99", "99_9"):
            docs[f"{stem}_p{percent}{unit}"] = f"percentile of this run; {text}"
        docs[f"{stem}_max{unit}"] = f"largest of this run; {text}"
    return docs


_KINDS = {"run_id": "int64", "configuration": "int32", "seed": "int64", "events": "int64",
          "messages": "int64"}  # fmt: skip


def runs_schema(
    names: Iterable[str], rows: list[dict[str, Any]], parameters: Mapping[str, type], about: Any,
    docs: Mapping[str, str],
) -> Any:  # fmt: skip
    """Return the schema of ``runs``: first the plan, then measurements by name, then the rest."""
    pyarrow = arrow()
    aliases: dict[type, str] = {int: "int64", float: "double", str: "string", bool: "bool"}
    fields = []
    for name in ordered(names, parameters):
        if name in _KINDS:
            alias = _KINDS[name]
        elif name in parameters:
            alias = aliases[parameters[name]]
        else:
            values = (row[name] for row in rows if row.get(name) is not None)
            alias = aliases[type(next(values, 0.0))]
        fields.append(pyarrow.field(name, pyarrow.type_for_alias(alias)))
    return documented("runs", fields, docs, about)


def ordered(names: Iterable[str], parameters: Iterable[str]) -> list[str]:
    """Return the names of columns of ``runs`` in their order."""
    have = dict.fromkeys(names)
    known = [*FIRST, *parameters, *MIDDLE]
    rest = sorted(name for name in have if name not in known and name not in LAST)
    return [name for name in (*known, *rest, *LAST) if name in have]
