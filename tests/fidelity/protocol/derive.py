"""Derives the table of Kafka's messages from a jar of its clients.

The jar contains the description of each request and response from which Kafka generates code. The
table keeps the names, types and versions of fields. The current table comes from 3.9; print it
again with ``python -m fakekafka.tests.fidelity.protocol.derive JAR``.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_TYPES = ("request", "response")
_HEARTBEAT = "68\tConsumerGroupHeartbeat"
_NEXT = ".serverAssignor\t"
_REGEX = ".subscribedTopicRegex\tstring\t1+\tnull=1+\tdefault=null\n"
AMENDMENTS = (
    (f"{_HEARTBEAT}\trequest", "\t0\t0+\n", "\t0-1\t0+\n"),
    (f"{_HEARTBEAT}\tresponse", "\t0\t0+\n", "\t0-1\t0+\n"),
    (f"{_HEARTBEAT}\trequest", _NEXT, _REGEX + _NEXT),
    ("1\tFetch\tresponse", "..topic\tstring\t0-12\n", "..topic\tstring\t0-12\tnull=0-5\n"),
)
"""Changes of the table from that release: message, text and its replacement.

Version 1 of ConsumerGroupHeartbeat is that of Kafka 4.0. The Scala code of 0.10 reads and writes
topics without a name.
"""


def derive(jar: Path) -> str:
    """Return the table of all APIs that clients of that release know."""
    messages: list[tuple[int, str, str]] = []
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("common/message/") and name.endswith(".json"):
                text = _COMMENT.sub("", archive.read(name).decode())
                description = json.loads(text)
                if description["type"] in _TYPES:
                    lines = "".join(f"{line}\n" for line in _lines(description))
                    messages.append((description["apiKey"], description["type"], lines))
    messages.sort(key=lambda entry: entry[:2])
    return "\n".join(_amended(lines) for _, _, lines in messages)


def _amended(lines: str) -> str:
    for message, found, instead in AMENDMENTS:
        if lines.startswith(f"{message}\t"):
            assert found in lines, f"{message} has changed"
            lines = lines.replace(found, instead, 1)
    return lines


def _lines(description: Mapping[str, Any]) -> Iterator[str]:
    api = re.sub("(Request|Response)$", "", description["name"])
    yield "\t".join(
        (
            str(description["apiKey"]),
            api,
            description["type"],
            description["validVersions"],
            description["flexibleVersions"],
        )
    )
    shared = {struct["name"]: struct["fields"] for struct in description.get("commonStructs", ())}
    yield from _fields(description["fields"], shared, 1)


def _fields(
    fields: list[Mapping[str, Any]], shared: Mapping[str, Any], depth: int
) -> Iterator[str]:
    for field in fields:
        kind = field["type"]
        element = kind.removeprefix("[]")
        children = field.get("fields") or shared.get(element)
        if children:
            kind = "[]" if kind.startswith("[]") else "{}"
        name = field["name"][0].lower() + field["name"][1:]
        words = ["." * depth + name, kind, field["versions"]]
        if "nullableVersions" in field:
            words.append(f"null={field['nullableVersions']}")
        if "tag" in field:
            words.append(f"tag={field['tag']}:{field['taggedVersions']}")
        if "default" in field:
            words.append(f"default={field['default']}")
        yield "\t".join(words)
        if children:
            yield from _fields(children, shared, depth + 1)


if __name__ == "__main__":
    print(derive(Path(sys.argv[1])), end="")
