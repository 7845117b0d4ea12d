"""Derives ``messages.txt``, the fields of every message of Kafka, from a jar of its clients.

The jar carries a description of each request and response for the generator of Kafka's own code.
What is kept of it is what goes over the wire: names, types and versions.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("messages.txt")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_TYPES = ("request", "response")


def derive(jar: Path) -> str:
    """The table for all APIs that clients of that release know."""
    messages: list[tuple[int, str, list[str]]] = []
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("common/message/") and name.endswith(".json"):
                text = _COMMENT.sub("", archive.read(name).decode())
                description = json.loads(text)
                if description["type"] in _TYPES:
                    messages.append(
                        (description["apiKey"], description["type"], list(_lines(description)))
                    )
    messages.sort(key=lambda entry: entry[:2])
    return "".join(line + "\n" for _, _, lines in messages for line in lines)


def _lines(description: Mapping[str, Any]) -> Iterator[str]:
    api = re.sub("(Request|Response)$", "", description["name"])
    yield " ".join(
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
        yield " ".join(words)
        if children:
            yield from _fields(children, shared, depth + 1)
