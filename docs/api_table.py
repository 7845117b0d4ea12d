"""Writes the table of APIs with the versions that the emulated releases offer."""

from __future__ import annotations

from collections.abc import Sequence

_INTRODUCTION = """\
# APIs

What a broker offers to clients, as its ApiVersions answer says. Apart from `"0.10"` and `"0.10.2"`
([why](limitations.md#known-deviations)) the answer is that of a real broker with ZooKeeper. Below
are the judged releases, whose recorded answers are compared byte by byte in
`tests/wire/kafka/test_offered_versions.py`. What the [other releases](versions.md) offer is in
`protocol/releases/apis.tsv`.

`-` means that the release does not have the API. A request in a version that is not offered closes
the connection, as in Kafka, and a log line says why; only ApiVersions is answered in any version.
"""

_NOTES = {
    4: "between brokers: advertised as in Kafka, and whoever sends it is disconnected",
    56: "between brokers: answered STALE_BROKER_EPOCH or NOT_CONTROLLER to whoever is no broker",
    58: "between brokers: advertised, and whoever sends it is disconnected, as in Kafka",
    57: "no feature is supported with ZooKeeper: every update is refused with Kafka's reason",
    68: "refused with UNSUPPORTED_VERSION, as in Kafka with ZooKeeper, unless "
    "[switched on](../guides/consumer-groups.md#the-consumer-protocol)",
}
_NOTES.update(dict.fromkeys((5, 6, 7), _NOTES[4]))
_NOTES[67] = _NOTES[56]
_NOTES[69] = _NOTES[68]


def api_page(source_note: str) -> str:
    """Return the page with a row for each API: the versions that each release offers."""
    from fakekafka.protocol import api_versions, versions
    from fakekafka.wire.kafka.registry import CODEC_RANGES

    shown = versions.JUDGED_VERSIONS
    offered = {v: api_versions.offered_ranges(v, CODEC_RANGES) for v in shown}
    missing = {v: api_versions.release_ranges(v).keys() - offered[v].keys() for v in shown}
    lines = [
        source_note,
        _INTRODUCTION,
        "| key | API | " + " | ".join(shown) + " | note |",
        "|---|---|" + "---|" * (len(shown) + 1),
    ]
    for key, name in api_versions.API_NAMES.items():
        cells = [_cell(offered[v].get(key), key in missing[v]) for v in shown]
        lines.append(f"| {key} | {name} | {' | '.join(cells)} | {_NOTES.get(key, '')} |")
    return "\n".join(lines) + "\n"


def _cell(offered: Sequence[int] | None, is_missing: bool) -> str:
    if offered is None:
        return "not yet" if is_missing else "-"
    low, high = offered
    return str(low) if low == high else f"{low} to {high}"
