"""From the name in a client's certificate to its principal: ``ssl.principal.mapping.rules``.

Kafka: ``SslPrincipalMapper`` (KIP-371, since 2.2).
"""

from __future__ import annotations

import re
from functools import partial

from ....protocol.errors import UsageError

_RULE = re.compile(r"\s*(?:DEFAULT|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*")
_REFERENCE = re.compile(r"\$(\d)")


class PrincipalRules:
    """The rules, tried in order; the first that matches the whole name decides."""

    __slots__ = ("_rules",)

    def __init__(self, text: str) -> None:
        """Raises ``UsageError`` for what is no list of rules."""
        self._rules: list[tuple[re.Pattern[str], str, str] | None] = []
        at = 0
        text = text.strip() or "DEFAULT"
        while True:
            match = _RULE.match(text, at)
            if match is None:
                raise UsageError(f"ssl.principal.mapping.rules: invalid rule {text[at:]!r}")
            pattern, replacement, case = match.groups()
            if pattern is None:
                self._rules.append(None)
            else:
                self._rules.append((re.compile(pattern), replacement, case))
            at = match.end()
            if at == len(text):
                return
            if text[at] != ",":
                raise UsageError(f"ssl.principal.mapping.rules: invalid rule {text[at:]!r}")
            at += 1

    def name(self, distinguished_name: str) -> str | None:
        """The principal's name, or None where no rule applies."""
        for rule in self._rules:
            if rule is None:
                return distinguished_name.strip()
            pattern, replacement, case = rule
            match = pattern.fullmatch(distinguished_name)
            if match is not None:
                found = _REFERENCE.sub(partial(_group, match), replacement)
                found = found.lower() if case == "L" else found.upper() if case == "U" else found
                return found.strip()
        return None


def _group(match: re.Match[str], reference: re.Match[str]) -> str:
    """Return what a group of the name holds; a reference to no group stays as it is."""
    number = int(reference[1])
    return match[number] or "" if number <= match.re.groups else reference[0]
