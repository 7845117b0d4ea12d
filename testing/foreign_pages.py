"""The check that no page of another site sent a request to a server of this machine."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def is_trusted_host(host: str, own: frozenset[str]) -> bool:
    """Return whether a Host header names this machine.

    A page of another site can have its own name lead here; the browser still sends that name.
    Addresses, names without a dot (as containers have) and ``own`` names are trusted.
    """
    name = urlsplit(f"//{host}").hostname
    if not name:
        return False
    if name in own or name.endswith((".localhost", ".internal")) or "." not in name.strip("[]"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def refusal(
    headers: Mapping[str, str], own: frozenset[str], what: str, *, is_visit: bool = False
) -> str | None:
    """The reason to refuse a request, or None. ``what`` is the server's name in the text.

    A page of another site cannot leave out what tells it from the server's own: its browser sends
    Host and Origin, or Referer, or Sec-Fetch-Site.

    ``is_visit`` is for the page itself, which holds nothing of the cluster: a link of another site
    may lead there.
    """
    host = headers.get("host", "")
    try:
        if not is_trusted_host(host, own):
            return f"the Host {host!r} is not this server's; ask it by its address"
    except ValueError:
        return f"the Host {host!r} is no host"
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        return f"{what} is not for pages of {origin}"
    if is_visit:
        return None
    referrer = headers.get("referer")  # of a browser that sends no Origin
    if origin is None and referrer is not None and urlsplit(referrer).netloc != host:
        return f"{what} is not for pages of {referrer}"
    if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return f"{what} is not for pages of other sites"
    return None
